import BroadsideEngine
import BroadsidePrimitives
import BroadsideSupport
import BroadsideTLS

extension ProxyAddress {
    /// Parses `http://HOST:PORT`.
    init(_ url: String) throws(BroadsideError) {
        let scheme = "http://"
        let lowercased = url.lowercased()
        guard lowercased.hasPrefix(scheme) else {
            if lowercased.hasPrefix("https://") || lowercased.hasPrefix("socks") {
                throw .usage(
                    "proxy",
                    "'\(Self.withoutUser(url))': only plain http:// proxies are "
                        + "supported (TLS to APNs is tunnelled through the proxy): "
                        + "write http://HOST:PORT")
            }
            throw .usage("proxy", "'\(Self.withoutUser(url))' is not a URL: write http://HOST:PORT")
        }
        var rest = url.dropFirst(scheme.count)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        guard !rest.contains("@") else {
            throw .usage(
                "proxy",
                "contains a user: all users of this machine can read arguments, "
                    + "so write user:password into a file and add --proxy-auth-file "
                    + "FILE")
        }
        // There is no common default port: some programs use 80, others 3128 or 1080.
        guard case (let host, let port?)? = parseEndpoint(String(rest)) else {
            throw .usage("proxy", "'\(url)' is not http://HOST:PORT: write host and port")
        }
        self.init(host: host, port: port)
    }

    /// Environment variable that names a proxy for other programs; nil if none is set. It is not
    /// used, because only options determine how a campaign connects.
    static var unusedVariable: String? {
        ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].first {
            SystemCall.environment($0)?.isEmpty == false
        }
    }

    /// Hint for a connection that failed without a proxy. It says that the proxy in this
    /// environment variable was not used.
    static func hint(of variable: String) -> String {
        "\(variable) is set, but only --proxy selects a proxy"
    }

    /// The URL without user and password, for messages.
    private static func withoutUser(_ url: String) -> Substring {
        url.parts(atLast: "@")?.behind ?? url[...]
    }

    /// Value of Proxy-Authorization for the file's `user:password` (RFC 7617 section 2).
    static func authorization(
        file path: String, warnings: inout [String]
    ) throws(BroadsideError) -> SecretBytes {
        var text = try readSecret(path, option: "proxy-auth-file", limit: 4096, &warnings)
        defer { text.cleanse() }
        var pair = Array(text[text.textStart...].prefix { $0 != 0x0a && $0 != 0x0d })
        defer { pair.cleanse() }
        guard pair.contains(UInt8(ascii: ":")), pair.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
            throw .usage(
                "proxy-auth-file",
                "\(path): its first line is not user:password: write both with a "
                    + "colon between them")
        }
        var value = Array("Basic ".utf8)
        value.reserveCapacity(16 + (pair.count + 2) / 3 * 4)
        var encoded = Base64URL.encode(pair)
        defer { encoded.cleanse() }
        for byte in encoded {
            switch byte {
            case UInt8(ascii: "-"): value.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): value.append(UInt8(ascii: "/"))
            default: value.append(byte)
            }
        }
        while (value.count - 6) % 4 != 0 { value.append(UInt8(ascii: "=")) }
        return SecretBytes(taking: &value)
    }
}
