internal import Glibc
internal import Ring
internal import Support
internal import Synchronization

/// A thread that serves until it is stopped, and what it has to say at its end.
final class EndpointThread: Sendable {
    /// Serves: gets the descriptor that becomes readable to stop it, and calls the closure once it
    /// accepts connections.
    typealias Body =
        @Sendable (Int32, @escaping () -> Void) throws(RingError) -> SimulatorTotals

    private struct State {
        var isReady = false
        var error: RingError?
        var totals = SimulatorTotals()
    }

    private final class Start {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
        /// Becomes readable when the state is worth a look.
        let ready: EventDescriptor
        let stop: EventDescriptor

        init() throws(RingError) {
            ready = try EventDescriptor()
            stop = try EventDescriptor()
        }
    }

    private let shared: Shared
    private let handle: pthread_t

    init(_ body: @escaping Body) throws(RingError) {
        let shared = try Shared()
        self.shared = shared
        let start = Start {
            do throws(RingError) {
                let totals = try body(shared.stop.descriptor) {
                    shared.state.withLock { $0.isReady = true }
                    shared.ready.signal()
                }
                shared.state.withLock { $0.totals = totals }
            } catch {
                shared.state.withLock { $0.error = error }
                shared.ready.signal()
            }
        }
        var handle = pthread_t()
        // SAFETY: the argument is retained once, for the thread, which releases it; a thread that
        // can't be made traps.
        let argument = unsafe Unmanaged.passRetained(start).toOpaque()
        let error = unsafe pthread_create(
            &handle, nil,
            { argument in
                let start = unsafe Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                start.run()
                return nil
            }, argument)
        precondition(error == 0, "a thread can't be started: \(describe(errno: error))")
        self.handle = handle
    }

    /// Waits until connections are accepted; throws why they never will be.
    func waitUntilReady() throws(RingError) {
        while SystemCall.readCounter(shared.ready.descriptor) < 0, errno == EINTR {}
        if let error = shared.state.withLock({ $0.error }) { throw error }
    }

    /// Tells the thread to look at what it shares: it may be told to end.
    func wake() {
        shared.stop.signal()
    }

    /// Waits for its end. Called once.
    func join() -> SimulatorTotals {
        pthread_join(handle, nil)
        return shared.state.withLock { $0.totals }
    }
}
