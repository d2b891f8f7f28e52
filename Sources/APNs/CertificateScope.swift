/// The topics and environments for which a provider certificate is valid.
///
/// Source: Apple, "Establishing a certificate-based connection to APNs", and the extensions of
/// Apple's certificates. Their OIDs begin with 1.2.840.113635.100.6.3.
public struct CertificateScope: Sendable, Equatable {
    /// OID of the extension that permits the development environment. Its content is NULL.
    public static let developmentExtension = "1.2.840.113635.100.6.3.1"
    /// OID of the extension that permits the production environment. Its content is NULL.
    public static let productionExtension = "1.2.840.113635.100.6.3.2"
    /// OID of the extension that lists the topics, each followed by its kind:
    ///
    ///     ApnsTopics    ::= SEQUENCE SIZE (1..MAX) OF ApnsTopic
    ///     ApnsTopic     ::= CHOICE { name UTF8String, type ApnsTopicType }
    ///     ApnsTopicType ::= SEQUENCE { name UTF8String }
    public static let topicsExtension = "1.2.840.113635.100.6.3.6"
    /// OID of the extension with an additional topic in VoIP certificates, a UTF8String.
    public static let voipExtension = "1.2.840.113635.100.6.3.4"
    /// OID of the subject's UID (RFC 4519 section 2.39). The UID is the topic if no extension lists
    /// topics.
    public static let userIDAttribute = "0.9.2342.19200300.100.1.1"
    /// OID of the subject's common name.
    public static let commonNameAttribute = "2.5.4.3"

    /// The topics; empty if the certificate names none. Apple issues no certificate without topics.
    public var topics: [String]
    /// The topic that APNs assumes if a request names none. If nil, each request must name a
    /// topic, because APNs responds with MissingTopic to a request without one.
    public let onlyTopic: String?
    /// The environments; empty if the certificate does not specify any.
    public var environments: Set<Endpoints.Environment>

    /// Interprets the contents of a certificate.
    ///
    /// - Parameters:
    ///   - topicsExtension: The DER inside the extension that lists the topics; nil if the
    ///     certificate has no such extension.
    ///   - voipExtension: The DER inside the VoIP extension; nil if there is none. Content other
    ///     than a topic is ignored.
    ///   - commonName: The subject's CN, which names the environments if no extension does.
    ///   - userID: The subject's UID, which is the topic if `topicsExtension` is nil.
    ///   - environments: The environments named by extensions.
    /// - Returns: nil if `topicsExtension` cannot be decoded.
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
            // If no topics are listed, the UID is the topic of a request that does not name one.
            onlyTopic = userID
        }
        if let topic = voipExtension.flatMap(Self.topic), !topics.contains(topic) {
            topics.append(topic)
        }
        self.environments =
            environments.isEmpty ? Self.environments(commonName: commonName) : environments
    }

    /// A mismatch between a campaign's topic and a certificate.
    public enum TopicProblem: Sendable, Equatable {
        /// The certificate is valid for the listed topics, but not for the given one.
        case isNoneOf(String, [String])
        /// No topic is given, and the certificate is valid for several.
        case severalTopics([String])
        /// No topic is given, and the certificate's topic lacks the push type's suffix.
        case needsSuffix(String, PushType)
        /// No topic is given, and the certificate is for device management, but the push type is
        /// not mdm.
        case isForManagement(String)
    }

    /// Returns the reason for which APNs would refuse a topic; nil if APNs would accept the topic.
    public func topicProblem(_ topic: String?, pushType: PushType) -> TopicProblem? {
        if let topic {
            if topics.isEmpty || topics.contains(topic) { return nil }
            return .isNoneOf(topic, topics)
        }
        guard onlyTopic != nil || topics.isEmpty else {
            return .severalTopics(topics)
        }
        guard let suffix = pushType.topicSuffix else {
            guard let onlyTopic, pushType != .mdm, NotificationHeaders.isForManagement(onlyTopic)
            else { return nil }
            return .isForManagement(onlyTopic)
        }
        if let onlyTopic, onlyTopic.hasSuffix(suffix) { return nil }
        return .needsSuffix(suffix, pushType)
    }

    /// The kinds of Apple's certificates that sign apps. The common name of such a certificate
    /// begins with its kind.
    private static let signingKinds = [
        "iPhone Developer", "iPhone Distribution", "Apple Development", "Apple Distribution",
        "Mac Developer", "Mac App Distribution", "Mac Installer Distribution",
        "3rd Party Mac Developer Application", "3rd Party Mac Developer Installer",
        "Developer ID Application", "Developer ID Installer",
    ]

    /// Returns whether a certificate with this common name signs apps. APNs refuses such
    /// certificates.
    public static func signsApps(commonName: String) -> Bool {
        signingKinds.contains { commonName.hasPrefix("\($0):") }
    }

    /// Returns the environments that a common name specifies. Older certificates specify them only
    /// in the common name.
    private static func environments(commonName: String?) -> Set<Endpoints.Environment> {
        guard let commonName else { return [] }
        if commonName.hasPrefix("Apple Development ") { return [.development] }
        if commonName.hasPrefix("Apple Production ") { return [.production] }
        return []
    }

    // MARK: DER

    private static let utf8String: UInt8 = 0x0c
    private static let sequence: UInt8 = 0x30

    /// Returns the topic in an extension's DER; nil if the DER is not a single string that has the
    /// form of a topic.
    private static func topic(_ der: [UInt8]) -> String? {
        var rest = der[...]
        guard let (tag, value) = element(&rest), tag == utf8String, rest.isEmpty,
            let text = String(validating: value, as: UTF8.self), text.contains("."),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else { return nil }
        return text
    }

    /// Returns the strings that are direct children of a sequence; nil if the DER is not a
    /// sequence.
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

    /// Removes the first element, and returns its tag and value; nil if it is malformed. Lengths
    /// have at most two bytes, which suffices for every certificate.
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
