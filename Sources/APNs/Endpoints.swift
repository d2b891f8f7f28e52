/// Apple's hosts and ports for device pushes.
///
/// Source: Apple, "Sending notification requests to APNs", "Establish a connection to APNs".
public enum Endpoints {
    /// Which of APNs' two environments; tokens and scoped keys are valid in one of them only.
    public enum Environment: String, Sendable, CaseIterable {
        case production
        case development
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

    /// The path of a device push without the token's digits.
    public static let devicePath = "/3/device/"
}
