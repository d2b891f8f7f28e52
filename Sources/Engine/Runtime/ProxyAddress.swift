/// An HTTP proxy from `--proxy`.
package struct ProxyAddress: Equatable, Sendable {
    var host: String
    var port: UInt16

    /// `HOST:PORT`, for messages.
    package var hostAndPort: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }
}
