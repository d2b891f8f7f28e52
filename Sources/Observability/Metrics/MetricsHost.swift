import BroadsideRing
import BroadsideSupport

/// Whom an endpoint on this machine alone responds to. A page in a browser here can have its own name
/// resolve to 127.0.0.1 and read what is served there (DNS rebinding); its requests name it in `Host`.
enum MetricsHost {
    /// Whether only this machine reaches an address.
    ///
    /// - Parameter address: Numeric.
    static func isLoopback(_ address: String) -> Bool {
        address.starts(withBytes: "127.") || address == "::1"
            || address.lowercased().starts(withBytes: "::ffff:127.")
    }

    /// Whether a request may have this `Host` (RFC 9110, section 7.2): an address or `localhost`, with
    /// or without a port.
    static func isAllowed(_ host: String) -> Bool {
        let host = host.unicodeScalars.prefix { $0 != " " && $0 != "\t" }
        var name = String(host)
        if name.starts(withBytes: "[") {
            guard let (inside, behind) = name.dropFirst().parts(atFirst: "]"), isPort(behind)
            else { return false }
            return isAddress(String(inside))
        }
        if let (before, behind) = name.parts(atFirst: ":") {
            guard isPort(":\(behind)") else { return false }
            name = String(before)
        }
        return name.lowercased() == "localhost" || isAddress(name)
    }

    private static func isAddress(_ name: String) -> Bool {
        SocketAddress(numeric: name, port: 0) != nil
    }

    /// Nothing, or a colon and digits.
    private static func isPort(_ text: some StringProtocol) -> Bool {
        text.isEmpty
            || (text.starts(withBytes: ":")
                && text.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) })
    }
}
