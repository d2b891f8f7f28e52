internal import Glibc
internal import Synchronization

/// How connections are dropped.
enum DropManner: String, Sendable, CaseIterable {
    /// With GOAWAY. Open streams still get their responses.
    case goAway = "goaway"
    /// An orderly end of the connection without GOAWAY.
    case close
    /// A reset of the TCP connection.
    case reset
}

/// The state that the threads of an endpoint share with each other and with its controller.
final class EndpointShared: Sendable {
    private let connectionCount = Atomic<UInt64>(0)
    private let stopping = Atomic<Bool>(false)
    private let current: Mutex<ScenarioRun?>
    private let threads = Mutex<[EndpointThread]>([])
    private let open = Atomic<Int>(0)
    private let requests = Atomic<UInt64>(0)
    private let accepted = Atomic<UInt64>(0)
    private let drops = Mutex(Drops())
    private let restart = Mutex(Restart())
    private let outOfFiles = Atomic<Bool>(false)

    /// The last order to drop all connections, and how far the threads have carried it out.
    private struct Drops {
        var order = (number: UInt64(0), manner: DropManner.goAway)
        var threadsDone = 0
        var connections = 0
    }

    /// Counts of connections and requests.
    struct Counts {
        var connections: UInt64 = 0
        var requests: UInt64 = 0
        /// Accepted requests.
        var accepted: UInt64 = 0
    }

    /// The last order to restart the counts, and how many threads have carried it out.
    private struct Restart {
        var number: UInt64 = 0
        var threadsDone = 0
        /// Counts that belong to the time before the restart.
        var earlier = Counts()
    }

    init(scenario: ScenarioRun?) {
        current = Mutex(scenario)
    }

    /// Returns the number of the next connection, from 1.
    func nextConnection() -> UInt64 {
        connectionCount.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Whether a connection could not be accepted because no more files could be opened.
    var wasOutOfFiles: Bool { outOfFiles.load(ordering: .relaxed) }

    /// Returns whether accepting a connection failed because no more files can be opened. The
    /// connection then stays in the queue, so the next attempt would fail at once.
    func isOutOfFiles(errno number: Int32) -> Bool {
        guard number == EMFILE || number == ENFILE else { return false }
        outOfFiles.store(true, ordering: .relaxed)
        return true
    }

    /// Whether the threads must end. It is set before the threads are woken.
    var isStopping: Bool {
        get { stopping.load(ordering: .acquiring) }
        set { stopping.store(newValue, ordering: .releasing) }
    }

    /// The current scenario; the threads read it again when they are woken.
    var scenario: ScenarioRun? {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// Sets the threads that are woken after a change.
    func setThreads(_ all: [EndpointThread]) { threads.withLock { $0 = all } }

    /// Wakes all threads to read the shared state.
    func wake() {
        for thread in threads.withLock({ $0 }) { thread.wake() }
    }

    /// The number of the last order to drop all connections, and the way in which they are dropped.
    var dropOrder: (number: UInt64, manner: DropManner) { drops.withLock { $0.order } }

    /// Orders all threads to drop their connections. Returns the number of the order.
    func orderDrop(_ manner: DropManner) -> UInt64 {
        let number = drops.withLock { drops in
            drops = Drops(order: (drops.order.number + 1, manner))
            return drops.order.number
        }
        wake()
        return number
    }

    /// Reports that a thread has carried out an order.
    func finishedDrop(_ number: UInt64, connections: Int) {
        drops.withLock { drops in
            // Threads that report late on an older order do not count.
            assert(number <= drops.order.number, "an order is given before it is carried out")
            guard drops.order.number == number else { return }
            drops.threadsDone += 1
            drops.connections += connections
        }
    }

    /// Returns the number of connections that were dropped by an order; nil until all threads have
    /// carried it out.
    func dropped(by number: UInt64) -> Int? {
        let threads = threads.withLock { $0.count }
        return drops.withLock { drops in
            drops.order.number != number || drops.threadsDone >= threads ? drops.connections : nil
        }
    }

    /// The number of the last order to restart the counts.
    var restartOrder: UInt64 { restart.withLock { $0.number } }

    /// Orders all threads to publish their counts, so that none of them publishes requests of
    /// earlier clients after the restart. Returns the number of the order.
    func orderRestart() -> UInt64 {
        let number = restart.withLock { restart in
            restart.number += 1
            restart.threadsDone = 0
            return restart.number
        }
        wake()
        return number
    }

    /// Reports that a thread has published its counts.
    func finishedRestart(_ number: UInt64) {
        restart.withLock { restart in
            assert(number <= restart.number, "an order is given before it is carried out")
            if restart.number == number { restart.threadsDone += 1 }
        }
    }

    /// Whether all threads have carried out an order, or another one has replaced it.
    func isReadyToRestart(_ number: UInt64) -> Bool {
        let threads = threads.withLock { $0.count }
        return restart.withLock { $0.number != number || $0.threadsDone >= threads }
    }

    /// Restarts `countsSinceRestart` at 0.
    func restartCounts() {
        let counts = totalCounts
        restart.withLock { $0.earlier = counts }
    }

    /// The counts since the last restart. They lag by at most one event-loop iteration.
    var countsSinceRestart: Counts {
        let earlier = restart.withLock { $0.earlier }
        let total = totalCounts
        return Counts(
            connections: total.connections - earlier.connections,
            requests: total.requests - earlier.requests,
            accepted: total.accepted - earlier.accepted)
    }

    /// The counts since the start. They lag by at most one event-loop iteration.
    var totalCounts: Counts {
        Counts(
            connections: connectionCount.load(ordering: .relaxed),
            requests: requests.load(ordering: .relaxed),
            accepted: accepted.load(ordering: .relaxed))
    }

    /// Current number of open connections. It lags by at most one event-loop iteration.
    var openConnections: Int { open.load(ordering: .relaxed) }

    /// Adds a thread's counts since its last call: the change in its open connections, its requests
    /// and its accepted requests.
    func publish(opened: Int, requests more: UInt64, accepted moreAccepted: UInt64) {
        open.wrappingAdd(opened, ordering: .relaxed)
        requests.wrappingAdd(more, ordering: .relaxed)
        accepted.wrappingAdd(moreAccepted, ordering: .relaxed)
    }
}
