// Declarations of <sys/socket.h> belong to whichever of the two modules the compiler read first.
internal import CBroadsideLiburing
import Glibc

/// Socket calls that are made outside the ring. Only `connect` blocks.
///
/// Sockets stay in blocking mode: io_uring waits for readiness itself and never blocks the caller.
public enum Socket {
    /// Creates a TCP socket of the address' family, closed on exec, without Nagle's delay.
    ///
    /// Records are filled before they are sent, so delaying small segments only adds latency.
    ///
    /// - Parameter unsentLimit: Number of bytes that the kernel may hold without having sent them
    ///   (TCP_NOTSENT_LOWAT); the last write may exceed it. nil: as many as its buffers take.
    public static func stream(
        for address: SocketAddress, unsentLimit: Int32? = nil
    ) throws(RingError) -> Int32 {
        let descriptor = socket(
            address.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else {
            throw RingError(.socket, code: errno, subject: address.description)
        }
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
        if let unsentLimit { set(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, unsentLimit) }
        return descriptor
    }

    /// Creates a listening socket. With port 0, the kernel chooses a port; see `localAddress`.
    ///
    /// SO_REUSEADDR permits quick restarts; `sharedPort` (SO_REUSEPORT) lets several rings listen
    /// on one port.
    public static func listen(
        on address: SocketAddress, backlog: Int32 = 1024, sharedPort: Bool = false
    ) throws(RingError) -> Int32 {
        let descriptor = try bound(to: address, sharedPort: sharedPort)
        guard Glibc.listen(descriptor, backlog) == 0 else {
            let code = errno
            close(descriptor)
            throw RingError(.listen, code: code, subject: address.description)
        }
        return descriptor
    }

    /// Checks that a socket could listen on an address. No connection is accepted meanwhile.
    public static func checkFree(_ address: SocketAddress) throws(RingError) {
        close(try bound(to: address, sharedPort: false))
    }

    private static func bound(
        to address: SocketAddress, sharedPort: Bool
    ) throws(RingError) -> Int32 {
        let descriptor = try stream(for: address)
        set(descriptor, SOL_SOCKET, SO_REUSEADDR)
        if sharedPort { set(descriptor, SOL_SOCKET, SO_REUSEPORT) }
        // SAFETY: `lend` keeps the address, of the stated size, in memory during the call.
        guard address.lend({ unsafe Glibc.bind(descriptor, $0, $1) }) == 0 else {
            let code = errno
            close(descriptor)
            throw RingError(.bind, code: code, subject: address.description)
        }
        return descriptor
    }

    /// Address that a socket is bound to.
    public static func localAddress(of descriptor: Int32) throws(RingError) -> SocketAddress {
        try address(of: descriptor, isPeer: false)
    }

    /// Address that a socket is connected to.
    public static func peerAddress(of descriptor: Int32) throws(RingError) -> SocketAddress {
        try address(of: descriptor, isPeer: true)
    }

    private static func address(
        of descriptor: Int32, isPeer: Bool
    ) throws(RingError) -> SocketAddress {
        var storage = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var failure: Int32 = 0
        // SAFETY: each address begins like `sockaddr`; getsockname and getpeername set at most the
        // `count` bytes of the zeroed storage, and the address is copied before the storage ends.
        let address: SocketAddress? = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let result =
                    isPeer
                    ? unsafe getpeername(descriptor, address, &count)
                    : unsafe getsockname(descriptor, address, &count)
                guard result == 0 else {
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

    /// Disables Nagle's delay, for accepted sockets.
    public static func disableDelay(_ descriptor: Int32) {
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
    }

    /// Connects a socket outside of any ring. Blocks until the connection is established or fails;
    /// the socket's send timeout limits the wait.
    ///
    /// - Returns: An error number; 0 for success.
    public static func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
        // SAFETY: `lend` keeps the address, of the stated size, in memory during the call.
        address.lend { unsafe Glibc.connect(descriptor, $0, $1) == 0 ? 0 : errno }
    }

    /// Aborts a TCP connection: Linux sends RST at once (connect(2), AF_UNSPEC), even while
    /// operations in flight still hold the socket.
    public static func disconnect(_ descriptor: Int32) {
        var nowhere = sockaddr()
        nowhere.sa_family = sa_family_t(AF_UNSPEC)
        // SAFETY: the kernel reads the address, a local variable, during the call.
        _ = unsafe Glibc.connect(descriptor, &nowhere, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Closes a descriptor that has no operations in flight. Errors are ignored, because the
    /// descriptor is closed in any case (close(2)).
    public static func close(_ descriptor: Int32) {
        _ = Glibc.close(descriptor)
    }

    private static func set(
        _ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32 = 1
    ) {
        var value = value
        // A failure costs speed or delays a restart, but is harmless. SAFETY: the kernel reads the
        // four bytes of `value`, a local, during the call.
        _ = unsafe setsockopt(
            descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
