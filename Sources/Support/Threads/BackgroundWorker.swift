/// A thread for work that may block, whose results a thread takes that must not: one job at a time, and of
/// those that wait the latest. Nobody waits for it: it ends with its owner, or with the process.
package final class BackgroundWorker<Job, Result>: @unchecked Sendable {
    private let work: @Sendable (Job) -> Result
    private let state = State()

    /// What both threads know; the thread keeps no more than this and `work`.
    private final class State: @unchecked Sendable {
        let monitor = Monitor()
        // Behind `monitor`:
        var job: Job?
        var result: Result?
        var isWorking = false
        var hasThread = false
        var isClosed = false
    }

    /// - Parameter work: What is done with a job, on the worker's thread.
    package init(_ work: @escaping @Sendable (Job) -> Result) { self.work = work }

    deinit {
        state.monitor.locked {
            state.isClosed = true
            state.monitor.signal()
        }
    }

    /// Whether nothing is done, nothing waits, and no result is there to be taken.
    package var isIdle: Bool {
        state.monitor.locked { state.job == nil && !state.isWorking && state.result == nil }
    }

    /// Has a job done, in place of one that waits.
    ///
    /// - Parameter job: What is done next.
    /// - Throws: Where the system gives no thread (exit 1); the job is forgotten.
    package func put(_ job: Job) throws(BroadsideError) {
        let hasThread = state.monitor.locked {
            state.job = job
            state.monitor.signal()
            return state.hasThread
        }
        guard !hasThread else { return }
        do throws(BroadsideError) {
            // Not `self`: the thread would keep its owner.
            let (state, work) = (state, work)
            _ = try WorkerThread { Self.workForever(state, work) }
            state.monitor.locked { state.hasThread = true }
        } catch {
            state.monitor.locked { state.job = nil }
            throw error
        }
    }

    /// The latest result that was not taken yet; nil where there is none.
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
            }
        }
    }

    /// Waits for a job; nil once nobody is left to take a result.
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
