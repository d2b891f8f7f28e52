internal import BroadsideRing
internal import BroadsideSupport

/// The check of the `Host` header in requests to endpoints that only this machine can reach. A web
/// page in a local browser can make its own host name resolve to 127.0.0.1, and then read the
/// responses of such endpoints (DNS rebinding). The requests of such a page have the page's host
/// name in `Host`.
package enum HTTPHost {
    /// Whether an address is reachable only from this machine.
    ///
    /// - Parameter address: Numeric address.
    package static func isLoopback(_ address: String) -> Bool {
        address.starts(withBytes: "127.") || address == "::1"
            || address.lowercased().starts(withBytes: "::ffff:127.")
    }

    /// Whether a request with this value of `Host` is allowed. The value must be an address or
    /// `localhost`, with or without a port (RFC 9110, section 7.2).
    package static func isAllowed(_ host: String) -> Bool {
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

    /// Whether the text is empty, or a colon followed by digits.
    private static func isPort(_ text: some StringProtocol) -> Bool {
        text.isEmpty
            || (text.starts(withBytes: ":")
                && text.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) })
    }
}
