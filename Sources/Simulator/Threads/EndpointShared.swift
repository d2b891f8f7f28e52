internal import Synchronization

/// The state that the threads of an endpoint share with each other and with its controller.
final class EndpointShared: Sendable {
    private let connectionCount = Atomic<UInt64>(0)
    private let stopping = Atomic<Bool>(false)
    private let current: Mutex<ScenarioRun?>
    private let threads = Mutex<[EndpointThread]>([])
    private let open = Atomic<Int>(0)
    private let requests = Atomic<UInt64>(0)
    private let accepted = Atomic<UInt64>(0)

    init(scenario: ScenarioRun?) {
        current = Mutex(scenario)
    }

    /// Returns the number of the next connection, from 1.
    func nextConnection() -> UInt64 {
        connectionCount.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Total number of connections.
    var connections: UInt64 { connectionCount.load(ordering: .relaxed) }

    /// Whether the threads are to end; set before they are woken.
    var isStopping: Bool {
        get { stopping.load(ordering: .acquiring) }
        set { stopping.store(newValue, ordering: .releasing) }
    }

    /// The current scenario; the threads read it again when they are woken.
    var scenario: ScenarioRun? {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// Sets the threads to wake after a change.
    func setThreads(_ all: [EndpointThread]) { threads.withLock { $0 = all } }

    /// Wakes all threads to read the shared state.
    func wake() {
        for thread in threads.withLock({ $0 }) { thread.wake() }
    }

    /// Adds a thread's change in open connections, and its requests since the last call.
    func publish(opened: Int, requests more: UInt64, accepted moreAccepted: UInt64) {
        open.wrappingAdd(opened, ordering: .relaxed)
        requests.wrappingAdd(more, ordering: .relaxed)
        accepted.wrappingAdd(moreAccepted, ordering: .relaxed)
    }

    /// Open connections, requests and accepted requests, at most one iteration old.
    var counts: (open: Int, requests: UInt64, accepted: UInt64) {
        (
            open.load(ordering: .relaxed), requests.load(ordering: .relaxed),
            accepted.load(ordering: .relaxed)
        )
    }
}
