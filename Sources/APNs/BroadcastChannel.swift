/// The rules of broadcast channels: one request reaches each device that subscribed to a channel.
///
/// Source: Apple, "Sending channel management requests to APNs" and "Sending broadcast push
/// notification requests to APNs".
public enum BroadcastChannel {
    /// What APNs keeps for subscribers that are away. This is the `message-storage-policy` of a
    /// channel. A channel's policy never changes.
    public enum Storage: String, Sendable, CaseIterable {
        /// Nothing: a broadcast reaches only the devices that are reachable now.
        case none
        /// The newest broadcast, for up to 8 hours.
        case newest

        /// The policy's number in requests and responses.
        public var policy: Int { self == .none ? 0 : 1 }

        /// Creates a policy from its number; nil for an unknown one.
        public init?(policy: Int) {
            switch policy {
            case 0: self = .none
            case 1: self = .newest
            default: return nil
            }
        }
    }

    /// Maximum byte count of a channel ID. This limit is Broadside's, because Apple documents none.
    public static let idCountMax = 256
    /// Maximum number of channels of an app in one environment.
    public static let countMax = 10_000
    /// Maximum byte count of a broadcast's payload.
    public static let payloadCountMax = 5_120
    /// Longest time for which APNs keeps the newest broadcast, seconds.
    public static let storageSecondsMax: UInt64 = 8 * 3600
    /// Maximum byte count of a response that lists channels.
    public static let listCountMax = 1 << 20
    /// `push-type` of each channel.
    public static let pushType = "LiveActivity"

    /// Returns whether a text can be a channel ID: 1 to `idCountMax` characters of base64 or
    /// base64url.
    public static func isID(_ text: some Collection<UInt8>) -> Bool {
        guard (1...idCountMax).contains(text.count) else { return false }
        return text.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"),
                UInt8(ascii: "="), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }

    /// Path for requests about one channel of an app.
    public static func channelsPath(app: String) -> String { "/1/apps/\(app)/channels" }

    /// Path of the list of all channels of an app.
    public static func listPath(app: String) -> String { "/1/apps/\(app)/all-channels" }

    /// Path to which broadcasts of an app are sent.
    public static func broadcastPath(app: String) -> String { "/4/broadcasts/apps/\(app)" }
}

extension Endpoints {
    /// Host that manages channels.
    public static func channelHost(_ environment: Environment) -> String {
        switch environment {
        case .production: "api-manage-broadcast.push.apple.com"
        case .development: "api-manage-broadcast.sandbox.push.apple.com"
        }
    }

    /// Port of the host that manages channels; it depends on the environment.
    public static func channelPort(_ environment: Environment) -> UInt16 {
        switch environment {
        case .production: 2196
        case .development: 2195
        }
    }

    /// Host that accepts broadcasts. Some of Apple's pages name this host, and others name the host
    /// of device pushes. Both hosts are known to work.
    public static func broadcastHost(_ environment: Environment) -> String {
        switch environment {
        case .production: "api-broadcast.push.apple.com"
        case .development: "api-broadcast.sandbox.push.apple.com"
        }
    }
}
