internal import Glibc
internal import Synchronization

/// A thread that runs one closure. A caller that must not wait releases this object; the thread
/// then ends with its closure or with the process.
package final class WorkerThread: @unchecked Sendable {
    private final class End: Sendable {
        let isReached = Atomic<Bool>(false)
        /// The kernel's number of the thread; 0 if the thread does not run yet, or has no number in
        /// `/proc`.
        let number = Atomic<Int>(0)
    }

    /// The state that only the thread retains. So the end of the thread releases everything that
    /// the closure captured, even if that includes the `WorkerThread` itself.
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

    /// Starts a thread, which works for the same hosted run as the calling thread.
    ///
    /// - Parameters:
    ///   - option: The option that determines the number of threads; named in the error. Nil: none.
    ///   - run: The closure to run.
    /// - Throws: If the system provides no more threads (exit code 1).
    package init(
        fewer option: String? = "reactors", _ run: @escaping @Sendable () -> Void
    ) throws(BroadsideError) {
        let work: @Sendable () -> Void
        if let host = HostedRun.current {
            work = { HostedRun.$current.withValue(host, operation: run) }
        } else {
            work = run
        }
        // SAFETY: the thread takes the reference passed to it exactly once; if no thread was
        // started, it is released here. `handle` is set before pthread_create returns, and the
        // thread does not read it.
        let retained = unsafe Unmanaged.passRetained(Body(work, end))
        let error = unsafe pthread_create(
            &handle, nil,
            { argument in
                let body = unsafe Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                body.end.number.store(SystemCall.threadNumber ?? 0, ordering: .relaxed)
                body.run()
                body.end.isReached.store(true, ordering: .releasing)
                return nil
            }, retained.toOpaque())
        guard error == 0 else {
            unsafe retained.release()
            isJoined = true
            throw BroadsideError(
                "a thread can't be started: \(describe(errno: error)): "
                    + Self.advice(errno: error, fewer: option), exitCode: 1)
        }
    }

    /// Returns what to do if no thread can be started.
    ///
    /// - Parameters:
    ///   - number: The error number that pthread_create(3) returned.
    ///   - option: The option that determines the number of threads; nil: none.
    static func advice(errno number: Int32, fewer option: String?) -> String {
        // Limits cause EAGAIN. After ENOSYS from clone3, the C library uses clone.
        guard number != EPERM else {
            return "allow clone3 and clone in the container's seccomp profile, or let it refuse "
                + "clone3 with ENOSYS"
        }
        let limits = Self.limits(
            addressSpace: SystemCall.addressSpaceLimit, data: SystemCall.dataLimit)
        return "raise the limit on " + limits + (option.map { ", or use fewer --\($0)" } ?? "")
    }

    /// Returns the limits that may keep a thread from starting, for messages.
    ///
    /// - Parameters:
    ///   - addressSpace: Limit on address space, bytes; nil if there is none.
    ///   - data: Limit on data, bytes; nil if there is none.
    static func limits(addressSpace: UInt64?, data: UInt64?) -> String {
        let ofMemory =
            (addressSpace == nil ? [] : ["ulimit -v"])
            + (data == nil ? [] : ["ulimit -d, LimitDATA= in a unit"])
        return (ofMemory.isEmpty ? "" : "memory (\(ofMemory.joined(separator: ", "))) or on ")
            + "processes (ulimit -u, a container's pids limit)"
    }

    deinit {
        if !isJoined { pthread_detach(handle) }
    }

    /// True once the closure has returned.
    package var hasEnded: Bool { end.isReached.load(ordering: .acquiring) }

    /// Starts and ends the given number of threads simultaneously, so that a shortage is detected
    /// before a run instead of during it.
    ///
    /// - Parameter option: The option that determines the number of threads; named in the error.
    ///   Nil: none.
    /// - Throws: If the system provides fewer threads (exit code 1).
    package static func checkThatSystemGives(
        _ count: Int, fewer option: String? = "reactors"
    ) throws(BroadsideError) {
        let gate = BoundedQueue<Void>(limit: 1)
        var threads: [WorkerThread] = []
        defer {
            gate.close()
            for thread in threads { thread.joinAndRelease() }
        }
        for _ in 0..<count {
            threads.append(try WorkerThread(fewer: option) { _ = gate.take() })
        }
    }

    /// Waits until the thread has ended and the kernel has released it. A join alone returns
    /// shortly before the kernel reduces the user's number of threads, so a thread that is started
    /// right after the join could exceed the user's limit.
    func joinAndRelease() {
        join()
        let number = end.number.load(ordering: .relaxed)
        guard number > 0 else { return }
        let path = "/proc/self/task/\(number)"
        for attempt in 0..<Self.attemptsLimit {
            guard SystemCall.exists(path) else { return }
            if attempt < Self.attemptsAtOnce { sched_yield() } else { usleep(1000) }
        }
    }

    /// Maximum number of checks of whether the kernel has released a thread. Together they take
    /// about a second. The release takes microseconds unless a debugger holds the thread.
    private static var attemptsLimit: Int { 1000 }
    /// Number of initial checks of whether the kernel has released a thread, without a pause
    /// between the checks.
    private static var attemptsAtOnce: Int { 20 }

    /// Waits for the thread's end. Must be called exactly once.
    package func join() {
        precondition(!isJoined)
        isJoined = true
        pthread_join(handle, nil)
    }
}
