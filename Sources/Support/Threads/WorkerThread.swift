internal import Glibc
internal import Synchronization

/// A thread that runs one closure. A caller that must not wait for it lets it go: then it ends
/// with its closure, or with the process.
package final class WorkerThread: @unchecked Sendable {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        let hasEnded = Atomic<Bool>(false)
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let body: Body
    private var handle = pthread_t()
    private var isJoined = false

    /// - Throws: Where the system gives no more threads (exit 1).
    package init(_ run: @escaping @Sendable () -> Void) throws(BroadsideError) {
        body = Body(run)
        // SAFETY: the thread takes the reference that is passed to it, once; where none was
        // started, it is released here. `handle` is set before pthread_create returns, and the
        // thread does not read it.
        let retained = unsafe Unmanaged.passRetained(body)
        let error = unsafe pthread_create(
            &handle, nil,
            { argument in
                let body = unsafe Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                body.run()
                body.hasEnded.store(true, ordering: .releasing)
                return nil
            }, retained.toOpaque())
        guard error == 0 else {
            unsafe retained.release()
            isJoined = true
            throw BroadsideError(
                "a thread can't be started: \(describe(errno: error)): raise the limit on processes "
                    + "(ulimit -u, a container's pids limit), or use fewer --reactors", exitCode: 1)
        }
    }

    deinit {
        if !isJoined { pthread_detach(handle) }
    }

    /// True once its closure has returned.
    package var hasEnded: Bool { body.hasEnded.load(ordering: .acquiring) }

    /// Starts so many threads at the same time, and ends them: better known before a run than in it.
    ///
    /// - Throws: Where the system does not give as many (exit 1).
    package static func checkThatSystemGives(_ count: Int) throws(BroadsideError) {
        let gate = BlockingQueue<Void>()
        var threads: [WorkerThread] = []
        defer {
            gate.close()
            for thread in threads { thread.join() }
        }
        for _ in 0..<count { threads.append(try WorkerThread { _ = gate.take() }) }
    }

    /// Waits for the thread's end. Called once.
    package func join() {
        precondition(!isJoined)
        isJoined = true
        pthread_join(handle, nil)
    }
}
