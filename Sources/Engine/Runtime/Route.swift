import BroadsideRing
import BroadsideSupport
package import BroadsideTLS

/// The route to an endpoint: the name to resolve and connect to, and the server expected there.
package struct Route: Sendable {
    /// Host expected in the server's certificate.
    package var host: String
    package var port: UInt16
    package var proxy: ProxyAddress?
    package var tunnel: ProxyTunnelStateMachine.Configuration?

    package init(
        host: String, port: UInt16, proxy: ProxyAddress? = nil,
        tunnel: ProxyTunnelStateMachine.Configuration? = nil
    ) {
        self.host = host
        self.port = port
        self.proxy = proxy
        self.tunnel = tunnel
    }

    /// `HOST:PORT`, for messages.
    package static func hostAndPort(_ host: String, _ port: UInt16) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Name to resolve. If there is a proxy, only its name is resolved.
    package var nameToResolve: (host: String, port: UInt16) {
        proxy.map { ($0.host, $0.port) } ?? (host, port)
    }

    /// Configuration of TLS sessions.
    package func tlsConfiguration(_ context: TLSContext) -> TLSConfigurationBox.Value {
        let isAddress = SocketAddress(numeric: host, port: port) != nil
        return TLSConfigurationBox.Value(
            context: context, serverName: isAddress ? .address(host) : .host(host), tunnel: tunnel)
    }
}
