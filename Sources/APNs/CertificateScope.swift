/// What a provider certificate may be used for: its topics and its environments.
///
/// Source: Apple, "Establishing a certificate-based connection to APNs", and the extensions below
/// 1.2.840.113635.100.6.3 of its certificates.
public struct CertificateScope: Sendable, Equatable {
    /// NULL: valid for development.
    public static let developmentExtension = "1.2.840.113635.100.6.3.1"
    /// NULL: valid for production.
    public static let productionExtension = "1.2.840.113635.100.6.3.2"
    /// The topics, each followed by its kind:
    ///
    ///     ApnsTopics    ::= SEQUENCE SIZE (1..MAX) OF ApnsTopic
    ///     ApnsTopic     ::= CHOICE { name UTF8String, type ApnsTopicType }
    ///     ApnsTopicType ::= SEQUENCE { name UTF8String }
    public static let topicsExtension = "1.2.840.113635.100.6.3.6"
    /// A further topic, of VoIP certificates: UTF8String.
    public static let voipExtension = "1.2.840.113635.100.6.3.4"
    /// The subject's UID (RFC 4519 section 2.39): the topic where no extension lists any.
    public static let userIDAttribute = "0.9.2342.19200300.100.1.1"
    /// The subject's common name.
    public static let commonNameAttribute = "2.5.4.3"

    /// The topics; empty where the certificate names none, as one that is not Apple's.
    public var topics: [String]
    /// The topic of a request that names none; nil where it has to name one (MissingTopic).
    public let onlyTopic: String?
    /// Its environments; empty where it does not say.
    public var environments: Set<Endpoints.Environment>

    /// Reads what the certificate says.
    ///
    /// - Parameters:
    ///   - topicsExtension: The DER inside the extension; nil where there is none.
    ///   - voipExtension: Likewise. What is not a topic there is passed over.
    ///   - commonName: The subject's CN, which names the environments where no extension does.
    ///   - userID: The subject's UID, which is the topic where no extension names any.
    ///   - environments: Those that extensions name.
    /// - Returns: nil where the extension can't be read.
    public init?(
        topicsExtension: [UInt8]?, voipExtension: [UInt8]? = nil, userID: String?,
        commonName: String?,
        environments: Set<Endpoints.Environment>
    ) {
        if let topicsExtension {
            guard let topics = Self.decode(topicsExtension) else { return nil }
            self.topics = topics
            onlyTopic = topics.count == 1 ? topics[0] : nil
        } else {
            topics = userID.map { [$0] } ?? []
            // Without a list the UID is what a request without a topic means.
            onlyTopic = userID
        }
        if let topic = voipExtension.flatMap(Self.topic), !topics.contains(topic) {
            topics.append(topic)
        }
        self.environments =
            environments.isEmpty ? Self.environments(commonName: commonName) : environments
    }

    /// Why a campaign's topic does not go with a certificate.
    public enum TopicProblem: Sendable, Equatable {
        /// The certificate is for these topics, not for that one.
        case isNoneOf(String, [String])
        /// No topic is named, and the certificate is for several.
        case severalTopics([String])
        /// No topic is named, and the certificate's lacks the push type's suffix.
        case needsSuffix(String, PushType)
    }

    /// Why APNs would refuse this topic; nil if it would not.
    public func topicProblem(_ topic: String?, pushType: PushType) -> TopicProblem? {
        if let topic {
            if topics.isEmpty || topics.contains(topic) { return nil }
            return .isNoneOf(topic, topics)
        }
        guard onlyTopic != nil || topics.isEmpty else {
            return .severalTopics(topics)
        }
        guard let suffix = pushType.topicSuffix else { return nil }
        if let onlyTopic, onlyTopic.hasSuffix(suffix) { return nil }
        return .needsSuffix(suffix, pushType)
    }

    /// Older certificates say it in their name only.
    private static func environments(commonName: String?) -> Set<Endpoints.Environment> {
        guard let commonName else { return [] }
        if commonName.hasPrefix("Apple Development ") { return [.development] }
        if commonName.hasPrefix("Apple Production ") { return [.production] }
        return []
    }

    // MARK: DER

    private static let utf8String: UInt8 = 0x0c
    private static let sequence: UInt8 = 0x30

    /// A lone string that looks like a topic.
    private static func topic(_ der: [UInt8]) -> String? {
        var rest = der[...]
        guard let (tag, value) = element(&rest), tag == utf8String, rest.isEmpty,
            let text = String(validating: value, as: UTF8.self), text.contains("."),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else { return nil }
        return text
    }

    /// The strings that are direct children of the sequence; nil where it is none.
    private static func decode(_ der: [UInt8]) -> [String]? {
        var outer = der[...]
        guard let (tag, content) = element(&outer), tag == sequence, outer.isEmpty else {
            return nil
        }
        var rest = content
        var topics: [String] = []
        while !rest.isEmpty {
            guard let (tag, value) = element(&rest) else { return nil }
            guard tag == utf8String else { continue }
            guard let topic = String(validating: value, as: UTF8.self), !topic.isEmpty else {
                return nil
            }
            topics.append(topic)
        }
        return topics.isEmpty ? nil : topics
    }

    /// Takes one element off the front. Lengths of up to two bytes: no certificate has longer.
    private static func element(_ rest: inout ArraySlice<UInt8>) -> (UInt8, ArraySlice<UInt8>)? {
        guard let tag = rest.popFirst(), let first = rest.popFirst() else { return nil }
        var count = Int(first)
        if first >= 0x80 {
            guard first == 0x81 || first == 0x82 else { return nil }
            count = 0
            for _ in 0x80..<first {
                guard let byte = rest.popFirst() else { return nil }
                count = count << 8 | Int(byte)
            }
        }
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return (tag, rest.prefix(count))
    }
}
