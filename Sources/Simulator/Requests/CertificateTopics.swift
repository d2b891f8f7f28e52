internal import TLS

/// The topics that a provider certificate lists.
///
///     ApnsTopics    ::= SEQUENCE SIZE (1..MAX) OF ApnsTopic
///     ApnsTopic     ::= CHOICE { name UTF8String, type ApnsTopicType }
///     ApnsTopicType ::= SEQUENCE { name UTF8String }
///
/// A flat sequence that alternates a topic with its kind, in the extension
/// 1.2.840.113635.100.6.3.6.
enum CertificateTopics {
    static let identifier = "1.2.840.113635.100.6.3.6"
    static let developmentIdentifier = "1.2.840.113635.100.6.3.1"
    static let productionIdentifier = "1.2.840.113635.100.6.3.2"
    /// The subject's UID, userId of RFC 4519.
    static let userIDIdentifier = "0.9.2342.19200300.100.1.1"

    private static let utf8String: UInt8 = 0x0c
    private static let sequence: UInt8 = 0x30

    /// What a client with this certificate may push to.
    static func table(of certificate: Certificate) -> TopicTable {
        let topics = certificate.extensionValue(identifier).flatMap(decode) ?? []
        return TopicTable(
            certificateTopics: topics,
            userID: certificate.subjectAttribute(userIDIdentifier))
    }

    /// The extension's value for topics and their kinds.
    static func encode(_ topics: [(topic: String, kind: String)]) -> [UInt8] {
        var content: [UInt8] = []
        for (topic, kind) in topics {
            content += element(utf8String, Array(topic.utf8))
            content += element(sequence, element(utf8String, Array(kind.utf8)))
        }
        return element(sequence, content)
    }

    /// The topics of an extension's value; nil where it is no such sequence.
    static func decode(_ der: [UInt8]) -> [String]? {
        var outer = der[...]
        guard let content = take(sequence, from: &outer), outer.isEmpty else { return nil }
        var rest = content
        var topics: [String] = []
        while let tag = rest.first {
            guard let value = take(tag, from: &rest) else { return nil }
            if tag == utf8String { topics.append(String(decoding: value, as: UTF8.self)) }
        }
        return topics
    }

    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case 0..<0x80: return [tag, UInt8(content.count)] + content
        case 0x80..<0x100: return [tag, 0x81, UInt8(content.count)] + content
        default:
            precondition(content.count < 0x10000, "topics of this size make no certificate")
            return [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xff)] + content
        }
    }

    /// The content of an element with this tag at the start of `rest`, which moves behind it.
    private static func take(_ tag: UInt8, from rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>?
    {
        guard rest.popFirst() == tag, let first = rest.popFirst() else { return nil }
        var count = Int(first)
        if first >= 0x80 {
            guard first == 0x81 || first == 0x82 else { return nil }
            count = 0
            for _ in 0..<(first & 0x7f) {
                guard let octet = rest.popFirst() else { return nil }
                count = count << 8 | Int(octet)
            }
        }
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
