import BroadsideAPNs
import BroadsideSupport

/// Options that `broadside broadcast` and `broadside channel` share.
public struct ChannelRequestOptions: Sendable {
    /// Bundle ID of the app.
    public var app: String?
    /// ID of the channel.
    public var channel: String?
    /// Credential, environment and endpoint.
    public var connection = SendOptions()
    /// Whether the result is printed as JSON.
    public var isJSON = false
    /// Whether the request is only checked. If so, nothing is connected, and nothing is written.
    public var isDryRun = false
    /// Number of requests to print instead of sending; nil: the request is sent.
    public var preview: Int?
    /// Whether the user has already confirmed an operation that asks for confirmation.
    public var isConfirmed = false

    /// Creates options with their defaults.
    public init() {}

    /// Maximum length of a bundle ID, in bytes.
    private static let appCountMax = 255

    /// Checks and returns the bundle ID, which is part of a request's path.
    func checkedApp() throws(BroadsideError) -> String {
        guard let app else {
            throw .usage("app", "is missing: add --app BUNDLE, the app's bundle ID")
        }
        let isValid =
            (1...Self.appCountMax).contains(app.utf8.count)
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
                "'\(app)' ends with a topic's suffix, but --app takes the bundle ID alone: "
                    + "write \(app.dropLast(suffix.count))")
        }
        return app
    }

    /// Checks and returns the ID of the channel.
    func checkedChannel() throws(BroadsideError) -> String {
        guard let channel else {
            throw .usage(
                "channel",
                "is missing: add --channel ID, the ID that broadside channel create printed")
        }
        guard BroadcastChannel.isID(channel.utf8) else {
            throw .usage(
                "channel",
                "'\(wordExcerpt(channel))' is not a channel ID: copy it whole, with its padding, as "
                    + "broadside channel create printed it")
        }
        return channel
    }
}
