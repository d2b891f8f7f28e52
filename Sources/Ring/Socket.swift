// What <sys/socket.h> declares is found under whichever of the two the compiler read first.
internal import CBroadsideLiburing
import Glibc

/// The few socket calls that happen before or beside the ring. None of them waits.
///
/// Sockets stay in blocking mode: io_uring waits for readiness itself and never blocks the caller.
public enum Socket {
    /// A TCP socket of the address' family, closed on exec, without Nagle's delay.
    ///
    /// Records are filled before they are sent, so holding small segments back only adds latency.
    public static func stream(for address: SocketAddress) throws(RingError) -> Int32 {
        let descriptor = socket(
            address.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else {
            throw RingError(.socket, code: errno, subject: address.description)
        }
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
        return descriptor
    }

    /// A listening socket. Port 0 lets the kernel choose; `localAddress` then tells which.
    ///
    /// SO_REUSEADDR for quick restarts; `sharedPort` (SO_REUSEPORT) so that several rings may each
    /// listen on one port.
    public static func listen(
        on address: SocketAddress, backlog: Int32 = 1024, sharedPort: Bool = false
    ) throws(RingError) -> Int32 {
        let descriptor = try stream(for: address)
        set(descriptor, SOL_SOCKET, SO_REUSEADDR)
        if sharedPort { set(descriptor, SOL_SOCKET, SO_REUSEPORT) }
        // SAFETY: `lend` keeps the address in memory of the size that it names during the call.
        guard address.lend({ unsafe Glibc.bind(descriptor, $0, $1) }) == 0 else {
            let code = errno
            close(descriptor)
            throw RingError(.bind, code: code, subject: address.description)
        }
        guard Glibc.listen(descriptor, backlog) == 0 else {
            let code = errno
            close(descriptor)
            throw RingError(.listen, code: code, subject: address.description)
        }
        return descriptor
    }

    /// The address that a socket is bound to.
    public static func localAddress(of descriptor: Int32) throws(RingError) -> SocketAddress {
        var storage = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var failure: Int32 = 0
        // SAFETY: every address begins like `sockaddr`; getsockname sets at most the `count` bytes
        // that the storage has, which are zero before, and the address is copied before the storage
        // ends.
        let address: SocketAddress? = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard unsafe getsockname(descriptor, address, &count) == 0 else {
                    failure = errno
                    return nil
                }
                return unsafe SocketAddress(address, count: count)
            }
        }
        guard let address else {
            throw RingError(.localAddress, code: failure == 0 ? EAFNOSUPPORT : failure)
        }
        return address
    }

    /// Turns Nagle's delay off; for accepted sockets.
    public static func disableDelay(_ descriptor: Int32) {
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
    }

    /// Connects and waits for it, beside any ring; a send timeout of the socket bounds the wait.
    ///
    /// - Returns: An error number; 0 for success.
    public static func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
        // SAFETY: `lend` keeps the address in memory of the size that it names during the call.
        address.lend { unsafe Glibc.connect(descriptor, $0, $1) == 0 ? 0 : errno }
    }

    /// Closes a descriptor that no operation is in flight on. Errors are of no use here: the
    /// descriptor is gone either way (close(2)).
    public static func close(_ descriptor: Int32) {
        _ = Glibc.close(descriptor)
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32) {
        var on: Int32 = 1
        // A failure costs speed or a restart's delay, never correctness.
        // SAFETY: the kernel reads the four bytes of `on`, a local, during the call.
        _ = unsafe setsockopt(
            descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
    }
}
