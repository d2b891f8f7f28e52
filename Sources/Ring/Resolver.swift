// Declarations of <sys/socket.h> belong to whichever of the two modules the compiler read first.
internal import CBroadsideLiburing
import Glibc

/// Resolves names to addresses.
public enum Resolver {
    /// TCP addresses of a host, in the system's order of preference (RFC 6724).
    ///
    /// Blocks until the name server responds. Call it on a separate thread, never on a reactor's
    /// thread. Numeric addresses, with or without brackets, are returned without a lookup.
    public static func resolve(
        _ host: String, port: UInt16
    ) throws(RingError) -> [SocketAddress] {
        if let numeric = SocketAddress(numeric: host, port: port) { return [numeric] }
        // SAFETY: the hints and the host's text outlive the call. The list belongs to getaddrinfo
        // until `freeaddrinfo`; each entry has `ai_addrlen` bytes at `ai_addr`, which are copied
        // here, and a successor or none.
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
