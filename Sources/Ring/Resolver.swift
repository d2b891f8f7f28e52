// What <sys/socket.h> declares is found under whichever of the two the compiler read first.
internal import CBroadsideLiburing
import Glibc

/// Names to addresses.
public enum Resolver {
    /// The TCP addresses of a host, in the order that the system prefers them (RFC 6724).
    ///
    /// Waits for the name server: call it on a thread of its own, never on a reactor's. Numeric
    /// addresses, bracketed or not, come back without any look-up.
    public static func resolve(
        _ host: String, port: UInt16
    ) throws(RingError) -> [SocketAddress] {
        if let numeric = SocketAddress(numeric: host, port: port) { return [numeric] }
        // SAFETY: the hints and the host's text outlive the call. The list is getaddrinfo's until
        // `freeaddrinfo`; each entry of it has `ai_addrlen` bytes at `ai_addr`, copied here, and a
        // next one or none.
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { throw RingError(.resolve, code: code, subject: host) }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry = unsafe list
        while let current = unsafe entry {
            if let raw = unsafe current.pointee.ai_addr,
                var address = unsafe SocketAddress(raw, count: current.pointee.ai_addrlen)
            {
                address.port = port
                if !addresses.contains(address) { addresses.append(address) }
            }
            unsafe entry = current.pointee.ai_next
        }
        guard !addresses.isEmpty else {
            throw RingError(.resolve, code: EAI_NONAME, subject: host)
        }
        return addresses
    }
}
