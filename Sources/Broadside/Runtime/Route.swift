import APNs
import Ring
import Support
import TLS

/// The way to an endpoint: whose name is looked up and connected to, and what is expected there.
struct Route: Sendable {
    /// The host whose certificate and name are expected.
    var host: String
    var port: UInt16
    var proxy: ProxyAddress?
    var tunnel: ProxyTunnelStateMachine.Recipe?

    /// `HOST:PORT`, for people.
    static func place(_ host: String, _ port: UInt16) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The name to look up: the proxy's where there is one, and then no other.
    var nameToResolve: (host: String, port: UInt16) {
        proxy.map { ($0.host, $0.port) } ?? (host, port)
    }

    /// What sessions are made from.
    func recipe(_ context: TLSContext) -> TLSRecords.Recipe.Value {
        let isAddress = SocketAddress(numeric: host, port: port) != nil
        return TLSRecords.Recipe.Value(
            context: context, serverName: isAddress ? .address(host) : .host(host), tunnel: tunnel)
    }
}
