public import BroadsideAPNs
import BroadsideSupport

/// Options of `broadside channel`.
public struct ChannelOptions: Sendable {
    /// What is done with channels.
    public enum Action: String, Sendable, CaseIterable {
        /// Create a channel.
        case create
        /// Read a channel.
        case read
        /// List all channels.
        case list
        /// Delete a channel.
        case delete
    }

    /// The operation.
    public var action = Action.list
    /// Bundle ID of the app.
    public var app: String?
    /// ID of the channel to read or delete.
    public var channel: String?
    /// What APNs keeps for subscribers that are away, for a new channel.
    public var storage = BroadcastChannel.Storage.none
    /// Credential, environment and endpoint.
    public var connection = SendOptions()
    /// Whether the result is printed as JSON.
    public var isJSON = false
    /// Whether the request is only checked; nothing is connected.
    public var isDryRun = false
    /// Number of requests to print instead of sending; nil: the request is sent.
    public var preview: Int?
    /// Whether a delete needs no confirmation.
    public var isConfirmed = false

    /// Creates options with their defaults.
    public init() {}

    /// Longest bundle ID.
    private static let appCountMax = 255

    /// Checks the bundle ID that requests have in their path.
    static func checkApp(_ app: String?) throws(BroadsideError) -> String {
        guard let app else {
            throw .usage("app", "is missing: add --app BUNDLE, the app's bundle ID")
        }
        let isValid =
            (1...appCountMax).contains(app.utf8.count)
            && app.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
        guard isValid else {
            throw .usage(
                "app",
                "'\(wordExcerpt(app))' is not a bundle ID: write it like com.example.MyApp")
        }
        for type in PushType.allCases {
            guard let suffix = type.topicSuffix, app.hasSuffix(suffix) else { continue }
            throw .usage(
                "app",
                "'\(app)' ends with the suffix of a topic, and channels have the bundle ID alone: "
                    + "write \(app.dropLast(suffix.count))")
        }
        return app
    }

    /// Checks the ID of a channel.
    static func checkChannel(_ channel: String?) throws(BroadsideError) -> String {
        guard let channel else {
            throw .usage("channel", "is missing: add --channel ID, as the create printed it")
        }
        guard BroadcastChannel.isID(channel.utf8) else {
            throw .usage(
                "channel",
                "'\(wordExcerpt(channel))' is not a channel ID: copy it whole, with its padding, as "
                    + "the create printed it")
        }
        return channel
    }
}
