internal import Glibc
import Ring
internal import Synchronization

/// A thread that runs one closure. Whoever must not wait for what it does lets it go: then it ends
/// by itself, or with the process.
final class WorkerThread: @unchecked Sendable {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        let hasEnded = Atomic<Bool>(false)
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let body: Body
    private var handle = pthread_t()
    private var isJoined = false

    /// - Throws: Where the system gives no more threads (exit 1).
    init(_ run: @escaping @Sendable () -> Void) throws(BroadsideError) {
        body = Body(run)
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
    var hasEnded: Bool { body.hasEnded.load(ordering: .acquiring) }

    /// Starts so many threads at the same time, and ends them: better known before a run than in it.
    ///
    /// - Throws: Where the system does not give as many (exit 1).
    static func checkThatSystemGives(_ count: Int) throws(BroadsideError) {
        let gate = BlockingQueue<Void>()
        var threads: [WorkerThread] = []
        defer {
            gate.close()
            for thread in threads { thread.join() }
        }
        for _ in 0..<count { threads.append(try WorkerThread { _ = gate.take() }) }
    }

    /// Waits for the thread's end. Called once.
    func join() {
        precondition(!isJoined)
        isJoined = true
        pthread_join(handle, nil)
    }
}

/// What other threads have for a reactor: completions that do not come from its ring. An eventfd
/// tells the ring that something lies here.
final class Inbox: @unchecked Sendable {
    private let event: EventDescriptor
    private let waiting = Mutex<[ReactorCompletionBox]>([])

    /// A completion on its way between threads; the chunk in it is handed over, not shared.
    struct ReactorCompletionBox: @unchecked Sendable {
        let completion: ReactorCompletion
    }

    init() throws(BroadsideError) {
        do {
            event = try EventDescriptor()
        } catch {
            throw BroadsideError("\(error)", exitCode: 1)
        }
    }

    /// Readable while something lies here.
    var eventDescriptor: Int32 { event.descriptor }

    func put(_ completion: ReactorCompletion) {
        let box = ReactorCompletionBox(completion: completion)
        waiting.withLock { $0.append(box) }
        wake()
    }

    /// Wakes the reactor without telling it anything: it looks at the shared state.
    func wake() {
        event.signal()
    }

    func takeAll() -> [ReactorCompletionBox] {
        waiting.withLock { waiting in
            defer { waiting.removeAll(keepingCapacity: true) }
            return waiting
        }
    }
}

/// What an error number means, in words.
package func describe(errno number: Int32) -> String {
    unsafe String(cString: unsafe strerror(number))
}

/// The time, asked in one place.
enum Clock {
    /// What the calling thread has used so far.
    static func threadUse(_ now: Now) -> ThreadUse {
        var cpu = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu)
        return ThreadUse(
            cpuNanoseconds: UInt64(cpu.tv_sec) * second + UInt64(cpu.tv_nsec),
            atNanoseconds: now.nanoseconds)
    }

    static func now() -> Now {
        var monotonic = timespec()
        var wall = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &monotonic)
        unsafe clock_gettime(CLOCK_REALTIME, &wall)
        return Now(
            nanoseconds: UInt64(monotonic.tv_sec) * second + UInt64(monotonic.tv_nsec),
            wallMilliseconds: UInt64(wall.tv_sec) * 1000 + UInt64(wall.tv_nsec) / 1_000_000)
    }
}
