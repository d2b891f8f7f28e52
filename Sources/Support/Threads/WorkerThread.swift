internal import Glibc
internal import Synchronization

/// A thread that runs one closure. A caller that must not wait for it lets it go: then it ends
/// with its closure, or with the process.
package final class WorkerThread: @unchecked Sendable {
    private final class End: Sendable {
        let isReached = Atomic<Bool>(false)
    }

    /// What the thread alone keeps: with its end everything is let go of that the closure used, even if
    /// that is what keeps this.
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        let end: End

        init(_ run: @escaping @Sendable () -> Void, _ end: End) {
            self.run = run
            self.end = end
        }
    }

    private let end = End()
    private var handle = pthread_t()
    private var isJoined = false

    /// - Parameters:
    ///   - option: The option that asks for many threads, for the error.
    ///   - run: What it runs.
    /// - Throws: Where the system gives no more threads (exit 1).
    package init(
        fewer option: String = "reactors", _ run: @escaping @Sendable () -> Void
    ) throws(BroadsideError) {
        // SAFETY: the thread takes the reference that is passed to it, once; where none was
        // started, it is released here. `handle` is set before pthread_create returns, and the
        // thread does not read it.
        let retained = unsafe Unmanaged.passRetained(Body(run, end))
        let error = unsafe pthread_create(
            &handle, nil,
            { argument in
                let body = unsafe Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                body.run()
                body.end.isReached.store(true, ordering: .releasing)
                return nil
            }, retained.toOpaque())
        guard error == 0 else {
            unsafe retained.release()
            isJoined = true
            throw BroadsideError(
                "a thread can't be started: \(describe(errno: error)): raise the limit on processes "
                    + "(ulimit -u, a container's pids limit), or use fewer --\(option)",
                exitCode: 1)
        }
    }

    deinit {
        if !isJoined { pthread_detach(handle) }
    }

    /// True once its closure has returned.
    package var hasEnded: Bool { end.isReached.load(ordering: .acquiring) }

    /// Starts so many threads at the same time, and ends them: better known before a run than in it.
    ///
    /// - Throws: Where the system does not give as many (exit 1).
    package static func checkThatSystemGives(_ count: Int) throws(BroadsideError) {
        let before = taskCount
        defer { awaitTasks(before) }
        let gate = BoundedQueue<Void>(limit: 1)
        var threads: [WorkerThread] = []
        defer {
            gate.close()
            for thread in threads { thread.join() }
        }
        for _ in 0..<count { threads.append(try WorkerThread { _ = gate.take() }) }
    }

    /// Threads that the kernel counts for this process; nil where it does not tell.
    static var taskCount: Int? {
        SystemCall.names(inDirectory: "/proc/self/task")?.count
    }

    /// Waits until the kernel has let go of threads that were joined: a join ends with a thread's last
    /// access to memory, a moment before the kernel takes the thread off the user's limit. Others that are
    /// started in that moment would be one too many.
    static func awaitTasks(_ count: Int?) {
        guard let count else { return }
        for _ in 0..<taskTimeoutMilliseconds {
            guard let now = taskCount, now > count else { return }
            usleep(1000)
        }
    }

    /// The longest wait for that; it takes microseconds where no debugger holds the threads.
    private static var taskTimeoutMilliseconds: Int { 1000 }

    /// Waits for the thread's end. Called once.
    package func join() {
        precondition(!isJoined)
        isJoined = true
        pthread_join(handle, nil)
    }
}
