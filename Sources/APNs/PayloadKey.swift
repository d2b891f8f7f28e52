/// A payload key documented by Apple, with its permitted values.
///
/// Source: Apple, "Generating a remote notification", and "Starting and updating Live Activities
/// with ActivityKit push notifications". Older keys come from the archived "Payload Key Reference".
/// The keys of `accessory` come from the AccessoryTransportExtension article.
public struct PayloadKey: Sendable {
    /// The kinds of JSON values permitted for a key.
    public struct Kinds: OptionSet, Sendable {
        /// One bit per kind.
        public let rawValue: UInt8

        /// Creates a set from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// A string.
        public static let string = Kinds(rawValue: 1)
        /// A number.
        public static let number = Kinds(rawValue: 2)
        /// `true` or `false`.
        public static let boolean = Kinds(rawValue: 4)
        /// An object.
        public static let object = Kinds(rawValue: 8)
        /// An array.
        public static let array = Kinds(rawValue: 16)
        /// `null`.
        public static let null = Kinds(rawValue: 32)

        /// A description of the kinds, such as `a string or an object`.
        public var description: String {
            let names: [(Kinds, String)] = [
                (.string, "a string"), (.number, "a number"), (.boolean, "true or false"),
                (.object, "an object"), (.array, "an array"), (.null, "null"),
            ]
            return names.filter { contains($0.0) }.map(\.1).joined(separator: " or ")
        }
    }

    /// The key's name.
    public var name: String
    /// The permitted kinds of values.
    public var kinds: Kinds
    /// The only push type for which the key has a meaning; nil if the key applies to all types.
    public var pushType: PushType?

    private init(_ name: String, _ kinds: Kinds, only pushType: PushType? = nil) {
        self.name = name
        self.kinds = kinds
        self.pushType = pushType
    }

    /// The keys of `aps`.
    public static let aps: [PayloadKey] = [
        .init("alert", [.object, .string]), .init("badge", .number),
        .init("sound", [.string, .object]), .init("thread-id", .string),
        .init("category", .string), .init("content-available", .number),
        .init("mutable-content", .number), .init("target-content-id", .string),
        .init("interruption-level", .string), .init("relevance-score", .number),
        .init("filter-criteria", .string),
        .init("stale-date", .number, only: .liveActivity),
        .init("content-state", .object, only: .liveActivity),
        .init("timestamp", .number, only: .liveActivity),
        .init("event", .string, only: .liveActivity),
        .init("dismissal-date", .number, only: .liveActivity),
        .init("attributes-type", .string, only: .liveActivity),
        .init("attributes", .object, only: .liveActivity),
        .init("input-push-token", .number, only: .liveActivity),
        .init("input-push-channel", .string, only: .liveActivity),
        .init("content-changed", .boolean, only: .widgets),
        .init("encryptedData", .string, only: .accessory),
        .init("sessionIdentifier", .string, only: .accessory),
        .init("keyID", .string, only: .accessory),
        .init("messageIndex", .string, only: .accessory),
        .init("url-args", .array), .init("summary-arg", .string),
        .init("summary-arg-count", .number),
    ]

    /// Returns the keys that an `alert` object may have.
    public static func alert(for pushType: PushType) -> [PayloadKey] {
        // Apple's Live Activity examples place loc-key and loc-args below title and body.
        let text: Kinds = pushType == .liveActivity ? [.string, .object] : .string
        var keys: [PayloadKey] = [
            .init("title", text), .init("subtitle", text), .init("body", text),
            .init("launch-image", .string), .init("title-loc-key", .string),
            .init("subtitle-loc-key", .string), .init("loc-key", .string),
            .init("title-loc-args", .array), .init("subtitle-loc-args", .array),
            .init("loc-args", .array), .init("action-loc-key", [.string, .null]),
            .init("action", .string),
        ]
        if pushType == .liveActivity { keys.append(.init("sound", .string)) }
        return keys
    }

    /// The keys that a `sound` object may have. Critical alerts use such an object.
    public static let sound: [PayloadKey] = [
        .init("critical", .number), .init("name", .string), .init("volume", .number),
    ]
}
