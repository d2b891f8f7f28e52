/// Apple's hosts and ports for device pushes.
///
/// Source: Apple, "Sending notification requests to APNs", "Establish a connection to APNs".
public enum Endpoints {
    /// The environments of APNs; a token or a scoped key is valid in only one of them.
    public enum Environment: String, Sendable, CaseIterable, Codable {
        /// The environment of apps from the App Store and TestFlight.
        case production
        /// The environment of development builds.
        case development

        /// The other environment.
        public var other: Environment { self == .production ? .development : .production }
    }

    /// The ports offered by Apple; 2197 lets a firewall permit APNs while it blocks other HTTPS.
    public static let ports: [UInt16] = [443, 2197]

    /// The default port.
    public static let defaultPort: UInt16 = 443

    /// The provider API's host.
    public static func host(_ environment: Environment) -> String {
        switch environment {
        case .production: "api.push.apple.com"
        case .development: "api.sandbox.push.apple.com"
        }
    }

    /// Returns the environment of one of Apple's hosts, or nil for any other host. The comparison
    /// ignores case and a trailing dot. Every push host that Apple does not call a sandbox belongs
    /// to production.
    public static func environment(ofHost host: String) -> Environment? {
        var labels = host.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        while labels.last?.isEmpty == true { labels.removeLast() }
        guard labels.count > 3, labels.suffix(3) == ["push", "apple", "com"] else { return nil }
        let isSandbox = labels.contains("sandbox") || labels.contains("development")
        return isSandbox ? .development : .production
    }

    /// Whether a host is one of Apple's legacy gateways or feedback services. Apple switched them
    /// off on 31 March 2021.
    public static func isSwitchedOff(_ host: String) -> Bool {
        guard environment(ofHost: host) != nil else { return false }
        let host = host.lowercased()
        return host.hasPrefix("gateway.") || host.hasPrefix("feedback.")
    }
}
