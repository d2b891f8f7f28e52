import BroadsideLedgers
import BroadsideRing
package import BroadsideSupport

/// Where `--metrics` goes: a file for a textfile collector, or an endpoint to be scraped.
package enum MetricsOutlet {
    case file(String)
    case endpoint(MetricsEndpoint)

    /// Opens it.
    ///
    /// - Parameter value: `HOST:PORT` or `:PORT`, else a file's name. A name with a slash is a file.
    package init(_ value: String) throws(BroadsideError) {
        if value == "localhost" || value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            throw .usage(
                "metrics",
                "\(value): write 127.0.0.1:9100 for an endpoint, or ./\(value) for a file "
                    + "of that name")
        }
        guard let address = try Self.address(value) else {
            try checkWritable(value, option: "metrics")
            self = .file(value)
            return
        }
        self = .endpoint(try MetricsEndpoint(host: address.host, port: address.port))
    }

    /// The numeric address and the port to listen on; nil for a file's name.
    package static func address(_ value: String) throws(BroadsideError) -> (
        host: String, port: UInt16
    )? {
        guard !value.contains("/"), let colon = value.lastIndex(of: ":") else { return nil }
        let digits = value[value.index(after: colon)...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            return nil
        }
        guard let port = UInt16(digits) else {
            throw .usage("metrics", "\(value): \(digits) is not a port: use 0 to 65535")
        }
        var host = String(value[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        // Nobody else's business unless an address is named.
        if host.isEmpty || host == "localhost" { host = "127.0.0.1" }
        guard SocketAddress(numeric: host, port: port) != nil else {
            throw .usage(
                "metrics",
                "\(value): '\(host)' is not an IP address: write 127.0.0.1:\(port), or a "
                    + "file's name with a slash in it")
        }
        return (host, port)
    }

    /// Shows a look.
    package func publish(_ text: String) throws(BroadsideError) {
        switch self {
        case .file(let path):
            // The run goes on meanwhile: a pipe that takes nothing gets nothing.
            try replaceFile(path, with: Array(text.utf8), patienceMilliseconds: 0)
        case .endpoint(let endpoint): endpoint.publish(text)
        }
    }
}
