internal import Glibc
import Ring
internal import Synchronization

/// A thread that runs one closure. Joined before the run ends: none outlives it.
final class WorkerThread: @unchecked Sendable {
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private var handle = pthread_t()
    private var isJoined = false

    init(_ run: @escaping @Sendable () -> Void) {
        let body = unsafe Unmanaged.passRetained(Body(run))
        let error = unsafe pthread_create(
            &handle, nil,
            { argument in
                let body = unsafe Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                body.run()
                return nil
            }, body.toOpaque())
        precondition(error == 0, "a thread can't be started: \(describe(errno: error))")
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
