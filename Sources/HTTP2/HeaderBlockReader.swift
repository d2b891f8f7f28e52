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

        /// Creates a field.
        public init(name: String, value: [UInt8]) {
            self.name = name
            self.value = value
        }
    }

    /// Maximum total byte count of the names and values of a block. The limit is needed because one
    /// byte of a block can refer to an entry of 4 KB. Responses of APNs have about 100 bytes.
    public static let fieldByteCountMax = 64 << 10

    private let inflater: HeaderInflater
    /// Whether a block was refused. If so, the tables may differ from now on.
    private var hasFailed = false

    /// Creates a reader; nil if memory runs out.
    public init?() {
        guard let inflater = HeaderInflater() else { return nil }
        self.inflater = inflater
    }

    /// Reads the next block; nil if the block violates RFC 7541, or if its names and values have
    /// more than `fieldByteCountMax` bytes. After nil, no further block can be read.
    public func read(_ block: RawSpan) -> [Field]? {
        guard !hasFailed else { return nil }
        var fields: [Field] = []
        var room = Self.fieldByteCountMax
        let isRead = inflater.inflate(block) { (name, value) throws(HPACKError) in
            room -= name.byteCount + value.byteCount
            guard room >= 0 else { throw HPACKError(code: .stringTooLong, offset: 0) }
            fields.append(
                Field(
                    name: String(decoding: Self.bytes(name), as: UTF8.self),
                    value: Self.bytes(value)))
        }
        hasFailed = !isRead
        return isRead ? fields : nil
    }

    private static func bytes(_ span: RawSpan) -> [UInt8] {
        (0..<span.byteCount).map { span.byte(at: $0) }
    }
}
