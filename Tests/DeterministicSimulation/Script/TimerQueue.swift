import Broadside
import BroadsideEngine

/// An event of the simulation.
enum SimulationEvent {
    /// A reactor runs an iteration: it gets its completions and decides. `ticket` identifies stale
    /// events.
    case turn(reactor: Int, ticket: Int)
    /// A completion of the current process arrives in a reactor's inbox.
    case deliver(reactor: Int, epoch: Int, ReactorCompletion)
    case connected(link: Int, errno: Int32)
    case sendDone(link: Int)
    /// `sentAt`: time at which the client sent the bytes.
    case bytesToServer(link: Int, [UInt8], sentAt: UInt64)
    /// The client's end of the connection arrives at the server.
    case endToServer(link: Int)
    case bytesToClient(link: Int, [UInt8])
    /// The server's end of the connection arrives at the client: in an orderly way (0) or by a
    /// reset.
    case endToClient(link: Int, errno: Int32)
    case closed(link: Int)
    case server(link: Int, ServerAct)
    /// A legacy gateway sends its error response, or decides to shut down.
    case gatewaySpeaks(link: Int)
    case gatewayLeaves(link: Int)
    case writeDone(reactor: Int, epoch: Int)
    case syncDone(reactor: Int, epoch: Int)
    /// The list's slow disk returns a chunk.
    case readChunk(reactor: Int, epoch: Int, rowLimit: Int)
    /// Latest time at which reactors learn that the list has changed.
    case changesTold(epoch: Int)
    /// The operator stops the run. With the second signal, it stops at once.
    case signal(epoch: Int, isSecond: Bool)
    /// The whole process is stopped for a time (SIGSTOP, a frozen container).
    case freeze(epoch: Int, UInt64)
    /// A newer attempt claims the ledger while the process still runs, and reads it.
    case claim(epoch: Int)
    /// The operator changes the rate.
    case rate(epoch: Int, UInt64?)
    /// The operator pauses the run for a time; nil: the run continues.
    case pause(epoch: Int, UInt64?)
    /// The run gets more connections.
    case growth(epoch: Int, connections: Int, reactors: Int)
    /// The provider token that is wanted is made.
    case renewal(epoch: Int)
    /// The operator has the credentials read again.
    case reload(epoch: Int)
    /// All faults end.
    case calm(epoch: Int)
    /// Quiet hours begin in a zone whose rows the process sends.
    case quiet(epoch: Int)
    /// The process dies.
    case death(epoch: Int, isPowerCut: Bool)

    /// Whether the process itself handles the event, which must therefore wait while the process is
    /// frozen. Kernel, network, servers and deaths do not wait.
    var isOfProcess: Bool {
        switch self {
        case .turn, .readChunk, .changesTold, .signal, .rate, .pause, .growth, .renewal, .reload,
            .quiet:
            true
        default: false
        }
    }

    /// Whether the event has no effect on a dead process.
    var isOfLiving: Bool {
        switch self {
        case .writeDone, .syncDone, .deliver, .freeze, .claim, .calm, .death, .connected,
            .sendDone, .closed:
            true
        default: isOfProcess
        }
    }
}

/// Events in the order in which they happen: by time, and at equal times in the order of their
/// creation.
struct TimerQueue {
    private struct Entry {
        var time: UInt64
        var sequence: UInt64
        var event: SimulationEvent

        func comesBefore(_ other: Entry) -> Bool {
            (time, sequence) < (other.time, other.sequence)
        }
    }

    private var heap: [Entry] = []
    private var sequence: UInt64 = 0

    var isEmpty: Bool { heap.isEmpty }

    mutating func insert(_ event: SimulationEvent, at time: UInt64) {
        sequence += 1
        heap.append(Entry(time: time, sequence: sequence, event: event))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].comesBefore(heap[parent]) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func popFirst() -> (time: UInt64, event: SimulationEvent)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.time, first.event)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].comesBefore(heap[least]) { least = child }
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
