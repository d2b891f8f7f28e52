package import BroadsideEngine
package import BroadsideSupport
import BroadsideTLS

extension Route {
    /// Reads the route from the options and the file that they name.
    package static func read(
        _ options: SendOptions, warnings: inout [String]
    ) throws(BroadsideError) -> Route {
        let (host, port) = try Plan.endpoint(options)
        guard let url = options.proxy else {
            guard options.proxyAuthFile == nil else {
                throw .usage("proxy-auth-file", "requires --proxy: add --proxy URL")
            }
            return Route(host: host, port: port)
        }
        let proxy = try ProxyAddress(url)
        var authorization: SecretBytes?
        if let file = options.proxyAuthFile {
            authorization = try ProxyAddress.authorization(file: file, warnings: &warnings)
        }
        let tunnel = ProxyTunnelStateMachine.Configuration(
            proxy: proxy.hostAndPort, target: hostAndPort(host, port), authorization: authorization)
        return Route(host: host, port: port, proxy: proxy, tunnel: tunnel)
    }
}
