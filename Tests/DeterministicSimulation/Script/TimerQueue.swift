import Broadside
import BroadsideEngine

/// What happens at an instant of the simulation.
enum SimulationEvent {
    /// A reactor wakes: it gets its completions and decides. `ticket` tells stale wakes from due
    /// ones.
    case turn(reactor: Int, ticket: Int)
    /// A completion of the current process lands in a reactor's inbox.
    case deliver(reactor: Int, epoch: Int, ReactorCompletion)
    case connected(link: Int, errno: Int32)
    case sendDone(link: Int)
    /// `sentAt`: when they left the client's hands.
    case bytesToServer(link: Int, [UInt8], sentAt: UInt64)
    /// The client's end arrives at the server.
    case endToServer(link: Int)
    case bytesToClient(link: Int, [UInt8])
    /// The server's end arrives at the client: in order (0) or by reset.
    case endToClient(link: Int, errno: Int32)
    case closed(link: Int)
    case server(link: Int, ServerAct)
    /// A legacy gateway says its last word, or decides to.
    case gatewaySpeaks(link: Int)
    case gatewayLeaves(link: Int)
    case writeDone(reactor: Int, epoch: Int)
    case syncDone(reactor: Int, epoch: Int)
    /// The list, on a slow disk, gives a chunk.
    case readChunk(reactor: Int, epoch: Int, rowLimit: Int)
    /// Reactors learn that the list has changed, at the latest.
    case changesTold(epoch: Int)
    /// The operator's word to stop; the second time at once.
    case signal(epoch: Int, isSecond: Bool)
    /// The process is stopped as a whole (SIGSTOP, a frozen container), for so long.
    case freeze(epoch: Int, UInt64)
    /// A newer attempt claims the ledger while the process still runs, and reads it.
    case claim(epoch: Int)
    /// The operator changes the rate.
    case rate(epoch: Int, UInt64?)
    /// The operator pauses the run for so long; nil: has it continue.
    case pause(epoch: Int, UInt64?)
    /// The run gets more connections.
    case growth(epoch: Int, connections: Int, reactors: Int)
    /// The provider token that is wanted is made and kept.
    case renewal(epoch: Int)
    /// The operator has the credentials read again.
    case reload(epoch: Int)
    /// All becomes well.
    case calm(epoch: Int)
    /// Quiet hours begin in a zone whose rows the process sends.
    case quiet(epoch: Int)
    /// The process dies here.
    case death(epoch: Int, isPowerCut: Bool)

    /// Whether it is the process' own doing, and has to wait while that is stopped. Kernel, network, servers
    /// and death do not.
    var isOfProcess: Bool {
        switch self {
        case .turn, .readChunk, .changesTold, .signal, .rate, .pause, .growth, .renewal, .reload,
            .quiet:
            true
        default: false
        }
    }

    /// Whether it means nothing to a process that died.
    var isOfLiving: Bool {
        switch self {
        case .writeDone, .syncDone, .deliver, .freeze, .claim, .calm, .death, .connected,
            .sendDone, .closed:
            true
        default: isOfProcess
        }
    }
}

/// Events in the order in which they happen: by time, and at one time in the order they were made.
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
