import BroadsideLedgers
import BroadsideRing
package import BroadsideSupport

/// Destination of `--metrics`: a file for Prometheus' textfile collector, or an endpoint to scrape.
package enum MetricsOutlet {
    case file(String)
    case endpoint(MetricsEndpoint)

    /// Opens the endpoint. The caller has checked the value.
    ///
    /// - Parameter value: `HOST:PORT`, `:PORT`, or a file name. A value with a slash is a file
    ///   name.
    package init(_ value: String) throws(BroadsideError) {
        if let address = try Self.address(value) {
            self = .endpoint(try MetricsEndpoint(host: address.host, port: address.port))
        } else {
            self = .file(value)
        }
    }

    /// Checks that the value is an address, or that its file can be written. Opens no endpoint.
    package static func check(_ value: String, isDryRun: Bool) throws(BroadsideError) {
        guard try address(value) == nil else { return }
        try checkWritable(value, option: "metrics", isDryRun: isDryRun)
    }

    /// Numeric address and port to listen on; nil for a file name.
    package static func address(_ value: String) throws(BroadsideError) -> (
        host: String, port: UInt16
    )? {
        if value == "localhost" || value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            throw .usage(
                "metrics",
                "\(value): write 127.0.0.1:9100 for an endpoint, or ./\(value) for a file "
                    + "of that name")
        }
        guard !value.contains("/"), let colon = value.lastIndex(of: ":") else { return nil }
        let digits = value[value.index(after: colon)...]
        var host = String(value[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            throw .usage(
                "metrics",
                "\(value): '\(digits)' is not a port: use 0 to 65535, or write ./\(value) for a "
                    + "file of that name")
        }
        guard let port = UInt16(digits) else {
            throw .usage("metrics", "\(value): \(digits) is not a port: use 0 to 65535")
        }
        // By default, the endpoint is reachable only from this machine.
        if host.isEmpty || host == "localhost" { host = "127.0.0.1" }
        guard SocketAddress(numeric: host, port: port) != nil else {
            throw .usage(
                "metrics",
                "\(value): '\(host)' is not an IP address: write 127.0.0.1:\(port), or a "
                    + "file's name with a slash in it")
        }
        return (host, port)
    }

    /// Publishes the text of a snapshot.
    package func publish(_ text: String) throws(BroadsideError) {
        switch self {
        case .file(let path):
            // The collector that reads this file is another user, and the text has no secrets. The
            // run must not wait here: if a pipe has no reader, the text is dropped.
            try replaceFile(
                path, with: Array(text.utf8), permissions: 0o644, patienceMilliseconds: 0)
        case .endpoint(let endpoint): endpoint.publish(text)
        }
    }
}
