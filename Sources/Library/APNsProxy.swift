import BroadsideCampaigns
internal import BroadsideEngine
import BroadsideSupport
public import FoundationEssentials

/// HTTP proxy that opens a tunnel to the server. Its description contains no secret.
public struct APNsProxy: Sendable, Equatable, CustomStringConvertible {
    /// Name or address of the proxy.
    public var host: String
    /// TCP port of the proxy.
    public var port: UInt16
    /// File whose first line is `user:password`; nil if the proxy needs no login.
    public var loginFile: URL?

    /// Creates a proxy.
    public init(host: String, port: UInt16, loginFile: URL? = nil) {
        self.host = host
        self.port = port
        self.loginFile = loginFile
    }

    /// `HOST:PORT`.
    public var description: String { Route.hostAndPort(host, port) }

    func apply(to options: inout SendOptions) throws(BroadsideError) {
        options.proxy = "http://\(description)"
        options.proxyAuthFile = try optionalPath(loginFile, of: "proxy-auth-file")
    }
}
