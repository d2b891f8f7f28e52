internal import CBroadsideLiburing
import Glibc

/// Kernel counter with which another thread wakes a waiting ring. The ring reads or polls
/// `descriptor`; any thread calls `signal`.
public struct EventDescriptor: ~Copyable, Sendable {
    /// The eventfd, for `Ring.read` (8 bytes) or `Ring.poll`.
    public let descriptor: Int32

    /// Creates a counter at zero, closed on exec.
    public init() throws(RingError) {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC))
        guard descriptor >= 0 else { throw RingError(.eventDescriptor, code: errno) }
    }

    deinit { _ = Glibc.close(descriptor) }

    /// Adds one to the counter. Does not block in practice, because the counter would have to reach
    /// 2^64 - 1.
    public func signal() { Self.signal(descriptor) }

    /// Adds one to the counter behind a descriptor; safe in a signal handler.
    static func signal(_ descriptor: Int32) {
        var one: UInt64 = 1
        // SAFETY: the kernel reads the eight bytes of `one`, a local, during the call.
        _ = unsafe Glibc.write(descriptor, &one, MemoryLayout<UInt64>.size)
    }
}
