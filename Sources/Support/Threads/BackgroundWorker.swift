internal import Glibc

/// A thread for blocking work on behalf of a thread that must not block. It runs one job at a time
/// and keeps only the latest pending one. It ends with its owner or with the process, without being
/// waited for.
package final class BackgroundWorker<Job, Result>: @unchecked Sendable {
    private let work: @Sendable (Job) -> Result
    private let state: State

    /// The state that the owner shares with the worker's thread. That thread retains only this
    /// state and `work`.
    private final class State: @unchecked Sendable {
        let monitor = Monitor()
        // Protected by `monitor`:
        var job: Job?
        var result: Result?
        var isWorking = false
        var hasThread = false
        var isClosed = false
        /// The owner's thread, which each result wakes; nil if results wake no thread.
        let waiter: pthread_t?

        init(waiter: pthread_t?) { self.waiter = waiter }
    }

    /// - Parameters:
    ///   - wakes: Whether each result wakes the calling thread by `SignalWatch.notify`. If so, only
    ///     that thread may release this object.
    ///   - work: Processes a job on the worker's thread.
    package init(wakes: Bool = false, _ work: @escaping @Sendable (Job) -> Result) {
        self.work = work
        state = State(waiter: wakes ? pthread_self() : nil)
    }

    deinit {
        state.monitor.locked {
            state.isClosed = true
            state.monitor.signal()
        }
    }

    /// Whether the worker is idle: no job is running or pending, and no result is available.
    package var isIdle: Bool {
        state.monitor.locked { state.job == nil && !state.isWorking && state.result == nil }
    }

    /// Submits a job, which replaces a pending one.
    ///
    /// - Parameter job: The next job.
    /// - Throws: If the system provides no thread (exit code 1); the job is then discarded.
    package func put(_ job: Job) throws(BroadsideError) {
        let hasThread = state.monitor.locked {
            state.job = job
            state.monitor.signal()
            return state.hasThread
        }
        guard !hasThread else { return }
        do throws(BroadsideError) {
            // The thread must not capture `self`, because it would then keep its owner alive.
            let (state, work) = (state, work)
            _ = try WorkerThread { Self.workForever(state, work) }
            state.monitor.locked { state.hasThread = true }
        } catch {
            state.monitor.locked { state.job = nil }
            throw error
        }
    }

    /// Takes the latest result; nil if there is none.
    package func take() -> Result? {
        state.monitor.locked {
            defer { state.result = nil }
            return state.result
        }
    }

    private static func workForever(_ state: State, _ work: (Job) -> Result) {
        while let job = next(state) {
            let result = work(job)
            state.monitor.locked {
                assert(state.isWorking, "a result is that of the job which was taken")
                state.result = result
                state.isWorking = false
                // If the owner is gone, its thread may have ended, so it is not notified.
                if let waiter = state.waiter, !state.isClosed { SignalWatch.notify(waiter) }
            }
        }
    }

    /// Waits for a job; nil once the owner is gone.
    private static func next(_ state: State) -> Job? {
        state.monitor.locked {
            while state.job == nil, !state.isClosed { state.monitor.wait() }
            guard !state.isClosed, let job = state.job else { return nil }
            assert(!state.isWorking, "one job at a time")
            state.job = nil
            state.isWorking = true
            return job
        }
    }
}
