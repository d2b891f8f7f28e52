internal import BroadsideRing
internal import BroadsideSupport
internal import Glibc
internal import Synchronization

/// A thread that serves until it is stopped, and its totals.
final class EndpointThread: Sendable {
    /// The thread's work. It receives a descriptor, which becomes readable when the thread must
    /// stop. It calls the closure once it accepts connections.
    typealias Body =
        @Sendable (Int32, @escaping () -> Void) throws(RingError) -> SimulatorTotals

    private struct State {
        var error: RingError?
        var totals = SimulatorTotals()
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
        /// Descriptor that becomes readable when the shared state has changed.
        let ready: EventDescriptor
        let stop: EventDescriptor

        init() throws(RingError) {
            ready = try EventDescriptor()
            stop = try EventDescriptor()
        }
    }

    private let shared: Shared
    private let thread: WorkerThread

    init(_ body: @escaping Body) throws(SimulatorError) {
        let shared: Shared
        do throws(RingError) {
            shared = try Shared()
        } catch {
            throw SimulatorError(error)
        }
        self.shared = shared
        thread = try SimulatorError.converted { () throws(BroadsideError) in
            try WorkerThread(fewer: "threads") {
                do throws(RingError) {
                    let totals = try body(shared.stop.descriptor) { shared.ready.signal() }
                    shared.state.withLock { $0.totals = totals }
                } catch {
                    shared.state.withLock { $0.error = error }
                    shared.ready.signal()
                }
            }
        }
    }

    /// Waits until the thread accepts connections. Throws the thread's error if it can't.
    func waitUntilReady() throws(SimulatorError) {
        while SystemCall.readCounter(shared.ready.descriptor) < 0, errno == EINTR {}
        if let error = shared.state.withLock({ $0.error }) { throw SimulatorError(error) }
    }

    /// Wakes the thread, so that it reads the shared state and ends if it must stop.
    func wake() {
        shared.stop.signal()
    }

    /// Waits for the thread to end. Must be called exactly once.
    func join() -> SimulatorTotals {
        thread.join()
        return shared.state.withLock { $0.totals }
    }
}
