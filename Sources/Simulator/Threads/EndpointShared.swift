internal import Synchronization

/// What the threads of an endpoint share, with each other and with who controls it.
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

    /// The number of the next connection, from 1.
    func nextConnection() -> UInt64 {
        connectionCount.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// How many connections there were.
    var connections: UInt64 { connectionCount.load(ordering: .relaxed) }

    /// Whether the threads are to end; set before they are woken.
    var isStopping: Bool {
        get { stopping.load(ordering: .acquiring) }
        set { stopping.store(newValue, ordering: .releasing) }
    }

    /// The scenario that is being played; the threads look again when they are woken.
    var scenario: ScenarioRun? {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// Who looks when something changed.
    func setThreads(_ all: [EndpointThread]) { threads.withLock { $0 = all } }

    /// Makes all threads look at what they share.
    func wake() {
        for thread in threads.withLock({ $0 }) { thread.wake() }
    }

    /// A thread's connections that came and went, and requests since it last said so.
    func publish(opened: Int, requests more: UInt64, accepted moreAccepted: UInt64) {
        open.wrappingAdd(opened, ordering: .relaxed)
        requests.wrappingAdd(more, ordering: .relaxed)
        accepted.wrappingAdd(moreAccepted, ordering: .relaxed)
    }

    /// Open connections, requests and accepted ones, a turn old at most.
    var counts: (open: Int, requests: UInt64, accepted: UInt64) {
        (
            open.load(ordering: .relaxed), requests.load(ordering: .relaxed),
            accepted.load(ordering: .relaxed)
        )
    }
}
