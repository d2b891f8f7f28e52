/// Encodes the extension that lists the topics of a provider certificate. `CertificateScope`
/// decodes the extension.
///
///     ApnsTopics    ::= SEQUENCE SIZE (1..MAX) OF ApnsTopic
///     ApnsTopic     ::= CHOICE { name UTF8String, type ApnsTopicType }
///     ApnsTopicType ::= SEQUENCE { name UTF8String }
///
/// The encoding is a flat sequence that alternates a topic with its kind.
enum TopicsExtension {
    private static let utf8String: UInt8 = 0x0c
    private static let sequence: UInt8 = 0x30

    /// Returns the extension's value for topics and their kinds.
    static func encode(_ topics: [(topic: String, kind: String)]) -> [UInt8] {
        var content: [UInt8] = []
        for (topic, kind) in topics {
            content += element(utf8String, Array(topic.utf8))
            content += element(sequence, element(utf8String, Array(kind.utf8)))
        }
        return element(sequence, content)
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
}
