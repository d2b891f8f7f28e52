import BroadsideRing
import BroadsideSupport
package import BroadsideTLS

/// The way to an endpoint: whose name is looked up and connected to, and what is expected there.
package struct Route: Sendable {
    /// The host whose certificate and name are expected.
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

    /// `HOST:PORT`, for people.
    package static func hostAndPort(_ host: String, _ port: UInt16) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The name to look up: the proxy's where there is one, and then no other.
    package var nameToResolve: (host: String, port: UInt16) {
        proxy.map { ($0.host, $0.port) } ?? (host, port)
    }

    /// What sessions are made from.
    package func tlsConfiguration(_ context: TLSContext) -> TLSConfigurationBox.Value {
        let isAddress = SocketAddress(numeric: host, port: port) != nil
        return TLSConfigurationBox.Value(
            context: context, serverName: isAddress ? .address(host) : .host(host), tunnel: tunnel)
    }
}
