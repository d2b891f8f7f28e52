/// Apple's hosts and ports for device pushes.
///
/// Source: Apple, "Sending notification requests to APNs", "Establish a connection to APNs".
public enum Endpoints {
    /// Which of APNs' two environments; tokens and scoped keys are valid in one of them only.
    public enum Environment: String, Sendable, CaseIterable, Codable {
        /// Where apps from the App Store and TestFlight get their notifications.
        case production
        /// Where development builds do.
        case development

        /// The one that shares nothing with it.
        public var other: Environment { self == .production ? .development : .production }
    }

    /// The ports Apple offers: 2197 lets a firewall admit APNs while it refuses other HTTPS.
    public static let ports: [UInt16] = [443, 2197]

    /// The port that is used where none is chosen.
    public static let defaultPort: UInt16 = 443

    /// The provider API's host.
    public static func host(_ environment: Environment) -> String {
        switch environment {
        case .production: "api.push.apple.com"
        case .development: "api.sandbox.push.apple.com"
        }
    }

    /// Which environment a host of Apple's is; nil for a host of somebody else's. A name counts in any case,
    /// and with a dot at its end. Every host of push that Apple does not call its sandbox is production.
    public static func environment(ofHost host: String) -> Environment? {
        var labels = host.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        while labels.last?.isEmpty == true { labels.removeLast() }
        guard labels.count > 3, labels.suffix(3) == ["push", "apple", "com"] else { return nil }
        let isSandbox = labels.contains("sandbox") || labels.contains("development")
        return isSandbox ? .development : .production
    }
}
