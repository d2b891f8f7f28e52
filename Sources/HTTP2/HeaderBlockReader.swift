import BroadsideHPACK

/// Reader of whole header blocks of one direction of a connection, for clients that need more of a
/// response than its status.
public final class HeaderBlockReader {
    /// Field of a header block.
    public struct Field: Sendable, Equatable {
        /// Name in lower case.
        public var name: String
        /// Value as received.
        public var value: [UInt8]
    }

    private let inflater: HeaderInflater

    /// nil if memory runs out.
    public init?() {
        guard let inflater = HeaderInflater() else { return nil }
        self.inflater = inflater
    }

    /// Reads the next block; nil if it violates RFC 7541, after which no block can be read.
    public func read(_ block: RawSpan) -> [Field]? {
        var fields: [Field] = []
        let isRead = inflater.inflate(block) { (name, value) throws(HPACKError) in
            fields.append(
                Field(
                    name: String(decoding: Self.bytes(name), as: UTF8.self),
                    value: Self.bytes(value)))
        }
        return isRead ? fields : nil
    }

    private static func bytes(_ span: RawSpan) -> [UInt8] {
        (0..<span.byteCount).map { span.byte(at: $0) }
    }
}
