/// Walks a header block field by field without decoding anything and without a table.
///
/// The walker reports how each field is represented. With this, the response path recognizes blocks
/// that use no table, and a server can check the indexing policy of a client.
public struct BlockWalker: Sendable {
    /// Representation of a field (RFC 7541 section 6).
    public enum Representation: Sendable, Equatable {
        /// Section 6.1: name and value come from a table.
        case indexed
        /// Section 6.2.1: literal inserted into the dynamic table.
        case incremental
        /// Section 6.2.2: literal that is not inserted.
        case withoutIndexing
        /// Section 6.2.3: literal that no hop may insert.
        case neverIndexed
        /// Section 6.3: not a field, but the new limit of the dynamic table.
        case sizeUpdate
    }

    /// Encoded string of the block.
    public struct Text: Sendable, Equatable {
        /// Offset of the text's bytes in the block.
        public var offset: Int
        /// Number of the text's bytes in the block.
        public var count: Int
        /// Whether the bytes are Huffman-coded.
        public var isHuffman: Bool

        /// No string in the block.
        @usableFromInline static let none = Text(offset: 0, count: 0, isHuffman: false)

        @inlinable
        init(offset: Int, count: Int, isHuffman: Bool) {
            self.offset = offset
            self.count = count
            self.isHuffman = isHuffman
        }
    }

    /// A field in its encoded form.
    public struct Field: Sendable, Equatable {
        /// Representation of the field.
        public var representation: Representation
        /// Index of a static entry (up to 61) or a dynamic entry (above); 0 if `name` is in the
        /// block. For a size update, the new limit in bytes.
        public var index: Int
        /// Name; `none` unless `index` is 0 and the field is not a size update.
        public var name: Text
        /// Value; `none` if the field is indexed or a size update.
        public var value: Text

        @inlinable
        init(_ representation: Representation, index: Int, name: Text, value: Text) {
            self.representation = representation
            self.index = index
            self.name = name
            self.value = value
        }
    }

    /// Number of bytes walked so far.
    @inlinable public var offset: Int { position }

    @usableFromInline var position = 0
    @usableFromInline var sawField = false

    /// Creates a walker at the start of a block.
    public init() {}

    /// Returns the next field of `block`, which must be the same block each time; nil at its end.
    /// Throws at the first invalid byte. Does not check whether a dynamic index exists.
    @inlinable
    public mutating func next(_ block: RawSpan) throws(HPACKError) -> Field? {
        guard position < block.byteCount else { return nil }
        let start = position
        let first = block.byte(at: start)
        if first & 0x80 != 0 {
            sawField = true
            let index = try PrefixInteger.decode(block, at: &position, prefixBits: 7)
            guard index != 0 else { throw HPACKError(code: .indexZero, offset: start) }
            return Field(.indexed, index: index, name: .none, value: .none)
        }
        if first & 0xe0 == 0x20 {
            // "This dynamic table size update MUST occur at the beginning of the first header block
            // following the change" (RFC 7541 section 4.2).
            guard !sawField else { throw HPACKError(code: .sizeUpdateNotFirst, offset: start) }
            let limit = try PrefixInteger.decode(block, at: &position, prefixBits: 5)
            return Field(.sizeUpdate, index: limit, name: .none, value: .none)
        }
        sawField = true
        let isIncremental = first & 0x40 != 0
        let index = try PrefixInteger.decode(
            block, at: &position, prefixBits: isIncremental ? 6 : 4)
        let name = index == 0 ? try text(block) : .none
        let value = try text(block)
        let representation: Representation =
            if isIncremental {
                .incremental
            } else if first & 0x10 != 0 {
                .neverIndexed
            } else {
                .withoutIndexing
            }
        assert(position > start && position <= block.byteCount, "a field is in its block")
        return Field(representation, index: index, name: name, value: value)
    }

    /// Parses a complete string (RFC 7541 section 5.2).
    @inlinable @inline(__always)
    mutating func text(_ block: RawSpan) throws(HPACKError) -> Text {
        guard position < block.byteCount else {
            throw HPACKError(code: .truncated, offset: position)
        }
        let isHuffman = block.byte(at: position) & 0x80 != 0
        let count = try PrefixInteger.decode(block, at: &position, prefixBits: 7)
        guard count <= block.byteCount - position else {
            throw HPACKError(code: .truncated, offset: position)
        }
        defer { position += count }
        return Text(offset: position, count: count, isHuffman: isHuffman)
    }
}
