// Declarations of <sys/socket.h> belong to whichever of the two modules the compiler read first.
internal import CBroadsideLiburing
import Glibc

/// An IPv4 or IPv6 address with a port.
public enum SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// Address in host byte order: 127.0.0.1 is 0x7f000001.
    case v4(UInt32, port: UInt16)
    /// The 16 bytes of the address as two numbers, with the first byte as the highest. `scope` is
    /// the interface index of a link-local address.
    case v6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)

    /// 127.0.0.1.
    public static func loopback(port: UInt16) -> SocketAddress { .v4(0x7f00_0001, port: port) }

    /// Parses a numeric address, IPv6 with or without brackets; nil for anything else.
    public init?(numeric text: String, port: UInt16) {
        var host = Substring(text)
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        var four = in_addr()
        // SAFETY: inet_pton sets an `in_addr` or `in6_addr` for the two families; the text is a C
        // string during the call.
        if unsafe inet_pton(AF_INET, String(host), &four) == 1 {
            self = .v4(UInt32(bigEndian: four.s_addr), port: port)
            return
        }
        var six = in6_addr()
        guard unsafe inet_pton(AF_INET6, String(host), &six) == 1 else { return nil }
        let (high, low) = Self.halves(six)
        self = .v6(high: high, low: low, scope: 0, port: port)
    }

    /// Converts an address from the kernel or getaddrinfo; nil if it is neither IPv4 nor IPv6.
    init?(_ address: UnsafePointer<sockaddr>, count: socklen_t) {
        // SAFETY: the caller's address has at least a `sockaddr`, which contains the family, and
        // `count` bytes in total, which is checked before loading. The fields are integers; any
        // bits are valid.
        let raw = unsafe UnsafeRawPointer(address)
        switch unsafe Int32(address.pointee.sa_family) {
        case AF_INET where Int(count) >= MemoryLayout<sockaddr_in>.size:
            let four = unsafe raw.loadUnaligned(as: sockaddr_in.self)
            self = .v4(
                UInt32(bigEndian: four.sin_addr.s_addr), port: UInt16(bigEndian: four.sin_port))
        case AF_INET6 where Int(count) >= MemoryLayout<sockaddr_in6>.size:
            let six = unsafe raw.loadUnaligned(as: sockaddr_in6.self)
            let (high, low) = Self.halves(six.sin6_addr)
            self = .v6(
                high: high, low: low, scope: six.sin6_scope_id,
                port: UInt16(bigEndian: six.sin6_port))
        default: return nil
        }
    }

    /// The port, in host byte order.
    public var port: UInt16 {
        get {
            switch self {
            case .v4(_, let port), .v6(_, _, _, let port): port
            }
        }
        set {
            switch self {
            case .v4(let bits, _): self = .v4(bits, port: newValue)
            case .v6(let high, let low, let scope, _):
                self = .v6(high: high, low: low, scope: scope, port: newValue)
            }
        }
    }

    private static func halves(_ address: in6_addr) -> (high: UInt64, low: UInt64) {
        // SAFETY: both are 16 bytes without padding, and any bits are integers.
        let halves = unsafe unsafeBitCast(address, to: (UInt64, UInt64).self)
        return (UInt64(bigEndian: halves.0), UInt64(bigEndian: halves.1))
    }

    private static func bytes(_ high: UInt64, _ low: UInt64) -> in6_addr {
        // SAFETY: both are 16 bytes without padding, and any bits are an address.
        unsafe unsafeBitCast((high.bigEndian, low.bigEndian), to: in6_addr.self)
    }

    /// AF_INET or AF_INET6.
    var family: Int32 {
        switch self {
        case .v4: AF_INET
        case .v6: AF_INET6
        }
    }

    /// Maximum number of bytes that `write(to:)` writes.
    static let maximumByteCount = MemoryLayout<sockaddr_in6>.size

    /// Writes the address as a `sockaddr_in` or `sockaddr_in6` and returns its size.
    func write(to memory: UnsafeMutableRawPointer) -> socklen_t {
        switch self {
        case .v4(let bits, let port):
            var four = sockaddr_in()
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            four.sin_addr.s_addr = bits.bigEndian
            // SAFETY: the caller has room for `maximumByteCount`, the larger of the two forms, at
            // any alignment.
            unsafe memory.storeBytes(of: four, as: sockaddr_in.self)
            return socklen_t(MemoryLayout<sockaddr_in>.size)
        case .v6(let high, let low, let scope, let port):
            var six = sockaddr_in6()
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            six.sin6_scope_id = scope
            six.sin6_addr = Self.bytes(high, low)
            unsafe memory.storeBytes(of: six, as: sockaddr_in6.self)
            return socklen_t(MemoryLayout<sockaddr_in6>.size)
        }
    }

    /// Passes the address to a system call; returns the call's result.
    @safe func lend(_ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var storage = sockaddr_storage()
        // SAFETY: the storage is a local with room and alignment for an address of any family; the
        // pointer is used only in the call.
        return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            let count = unsafe write(to: UnsafeMutableRawPointer(pointer))
            return unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe call($0, count)
            }
        }
    }

    /// The address without its port: `127.0.0.1`, `::1`.
    var host: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        switch self {
        case .v4(let bits, _):
            var four = in_addr(s_addr: bits.bigEndian)
            // SAFETY: the text has room for the longest address and its NUL, and inet_ntop gets its
            // size.
            unsafe inet_ntop(AF_INET, &four, &text, socklen_t(text.count))
        case .v6(let high, let low, _, _):
            var six = Self.bytes(high, low)
            unsafe inet_ntop(AF_INET6, &six, &text, socklen_t(text.count))
        }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }

    /// `127.0.0.1:443`, `[::1]:443`.
    public var description: String {
        switch self {
        case .v4: "\(host):\(port)"
        case .v6: "[\(host)]:\(port)"
        }
    }
}
