internal import BroadsideAPNs
internal import BroadsideSupport

/// The topics to which a credential may push, with the push types permitted for each.
struct TopicTable: Sendable {
    /// A set of push types. `absent` represents a request without a push type.
    struct Types: OptionSet, Sendable {
        var rawValue: UInt16

        static let absent = Types(rawValue: 1 << 15)

        init(rawValue: UInt16) { self.rawValue = rawValue }

        init(_ type: PushType) {
            rawValue = 1 << UInt16(PushType.allCases.firstIndex(of: type)!)
            assert(
                rawValue != 0 && rawValue != Self.absent.rawValue,
                "each type of push has a bit of its own")
        }
    }

    private struct Entry: Sendable {
        let topic: [UInt8]
        let types: Types
        /// True for a topic that belongs to the credential although no simulated device has a token
        /// for it.
        let isOfOtherApp: Bool
    }

    /// Beginning of the topics for device management. Apple: "Set the `apns-topic` header to the
    /// UID attribute from the subject of your MDM push certificate."
    private static let managementPrefix = "com.apple.mgmt."

    private var entries: [Entry] = []
    /// The topic for requests that name no topic; nil if a topic is mandatory.
    private let fallback: [UInt8]?
    /// The same topic, as text.
    let fallbackText: String?
    private let isFallbackForVoIP: Bool
    private let voipSuffix = Array(PushType.voip.topicSuffix!.utf8)

    /// Creates the topics of a provider token. Each app has a topic without a suffix and one for
    /// each suffix. The key decides which topics are permitted.
    ///
    /// - Parameters:
    ///   - app: Bundle ID of the app.
    ///   - otherApp: Bundle ID of another app of the same team. No device has a token for this app.
    ///   - further: Bundle IDs of further apps.
    init(app: String, otherApp: String, further: [String] = []) {
        fallback = nil
        fallbackText = nil
        isFallbackForVoIP = false
        for (bundle, isOther) in [(app, false), (otherApp, true)] + further.map({ ($0, false) }) {
            var suffixes = [""]
            for type in PushType.allCases {
                if let suffix = type.topicSuffix { suffixes.append(suffix) }
            }
            for suffix in suffixes { append(bundle + suffix, isOfOtherApp: isOther) }
        }
    }

    /// Creates the topics of a certificate; with nil, no topic is permitted.
    init(_ scope: CertificateScope?) {
        fallbackText = scope?.onlyTopic
        fallback = fallbackText.map { Array($0.utf8) }
        isFallbackForVoIP = scope?.onlyTopic?.hasSuffix(PushType.voip.topicSuffix!) ?? false
        for topic in scope?.topics ?? [] { append(topic, isOfOtherApp: false) }
    }

    private mutating func append(_ topic: String, isOfOtherApp: Bool) {
        var types: Types = .absent
        for type in PushType.allCases {
            if let suffix = type.topicSuffix, topic.hasSuffix(suffix) { types.insert(Types(type)) }
        }
        if topic.hasPrefix(Self.managementPrefix) {
            types.insert(Types(.mdm))
        } else if types == .absent {
            for type in PushType.allCases where type.topicSuffix == nil && type != .mdm {
                types.insert(Types(type))
            }
        }
        entries.append(Entry(topic: Array(topic.utf8), types: types, isOfOtherApp: isOfOtherApp))
    }

    /// Returns the reason for refusing a request with this topic and push type; nil if the
    /// credential may push to the topic.
    ///
    /// `isForDevice` becomes false if the topic is permitted but the device token belongs to
    /// another app. This error is reported later, when the device token is checked.
    func refusal(
        topic: RawSpan?, type: PushType?, isForDevice: inout Bool
    ) -> Reason? {
        guard let topic else { return fallback == nil ? .missingTopic : nil }
        guard Self.isWellFormed(topic) else { return .badTopic }
        let wanted = type.map(Types.init) ?? .absent
        for entry in entries where topic.equals(entry.topic) {
            // The suffix of another push type is treated like a foreign topic.
            guard entry.types.contains(wanted) else { return .topicDisallowed }
            isForDevice = !entry.isOfOtherApp
            return nil
        }
        return .topicDisallowed
    }

    /// Returns whether a topic is for VoIP. If the request names no topic, checks the credential's
    /// only topic.
    func isVoIP(_ topic: RawSpan?) -> Bool {
        guard let topic else { return isFallbackForVoIP }
        guard topic.byteCount > voipSuffix.count else { return false }
        return topic.extracting(last: voipSuffix.count).equals(voipSuffix)
    }

    /// Returns the topic for which the device token of a request was issued. This is the bundle ID.
    /// For VoIP, it is the whole topic, because a device has a separate token for VoIP (Apple,
    /// PushKit, "pushRegistry(_:didUpdate:for:)").
    func tokenTopic(of topic: RawSpan?) -> [UInt8] {
        guard isVoIP(topic) else { return bundle(of: topic) }
        return if let topic { Array(topic) } else { fallback ?? [] }
    }

    /// Returns a topic without the suffix of a push type. If the request names no topic, returns
    /// the credential's only topic.
    func bundle(of topic: RawSpan?) -> [UInt8] {
        let named: [UInt8]? = if let topic { Array(topic) } else { fallback }
        guard let bytes = named else { return [] }
        let text = String(decoding: bytes, as: UTF8.self)
        for type in PushType.allCases {
            if let suffix = type.topicSuffix, text.hasSuffix(suffix), text.count > suffix.count {
                return Array(text.utf8.dropLast(suffix.utf8.count))
            }
        }
        return bytes
    }

    /// Returns whether a topic has the form of a bundle ID: at least one character, and only
    /// letters, digits, dots and hyphens.
    private static func isWellFormed(_ topic: RawSpan) -> Bool {
        guard topic.byteCount > 0, topic.byteCount <= 255 else { return false }
        for position in 0..<topic.byteCount {
            switch topic[position] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                continue
            default: return false
            }
        }
        return true
    }
}
