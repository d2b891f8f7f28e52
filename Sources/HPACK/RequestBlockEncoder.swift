/// Policy that decides which fields enter the peer's dynamic table.
public enum IndexingPolicy: String, Sendable, CaseIterable {
    /// apns-id, apns-expiration and apns-collapse-id on their first occurrence; no other field.
    ///
    /// Apple asks clients to index the first value of each of the three, and to send later values
    /// as literals without indexing. So Apple's small table does not overflow and evict entries.
    case strict
    /// The fields of `strict`, and the constant fields with their values, including the provider
    /// token. This is Apple's newer advice ("Establishing a connection to APNs"). Later requests
    /// refer to the whole constant field. A renewed provider token is inserted, too, if the table
    /// has space for it.
    case compact
    /// The fields of `strict`, and the constant fields with their values, except the provider
    /// token, which is never indexed. This is Apple's present text ("Sending notification requests
    /// to APNs").
    case current
}

/// Header block with holes for values that differ per request.
public struct EncodedBlock: Sendable, Equatable {
    /// Position of one value.
    struct Hole: Sendable, Equatable {
        /// Field of the value.
        var name: RequestFieldName
        /// Range of the value's bytes in the block, without the length that precedes them.
        var range: Range<Int>
    }

    /// Bytes of the block. Holes are zeros until a request writes its own bytes there.
    public var bytes: [UInt8]
    /// The holes, sorted by their position in the block.
    var holes: [Hole]

    /// Range of the hole for `name`; nil if that field has no hole.
    public func hole(_ name: RequestFieldName) -> Range<Int>? {
        holes.first { $0.name == name }?.range
    }
}

/// Encodes the header block of a request (RFC 7541 section 6).
///
/// `:method` and `:scheme` are encoded as indices of static entries. If the policy indexes a field,
/// the field is encoded the first time as a literal with incremental indexing (6.2.1). After that,
/// a constant field that is in the table is encoded as its index (6.1). All other fields are
/// encoded as literals without indexing (6.2.2), with the index of their name if there is one.
public enum RequestBlockEncoder {
    /// Encodes `fields` in order and updates `mirror` with the effects on the peer's table.
    ///
    /// Constants and names are Huffman-coded if `huffman` is set and the coding does not make them
    /// longer. Holes are always raw, so that filling them is a copy. A due size update comes first
    /// (RFC 7541 section 4.2). The block must be sent before any block that is encoded later.
    public static func encode(
        _ fields: [RequestField], mirror: inout DynamicTableMirror,
        indexingPolicy: IndexingPolicy = .strict, huffman: Bool
    ) -> EncodedBlock {
        var block = EncodedBlock(bytes: [], holes: [])
        if let capacity = mirror.takeSizeUpdate() {
            PrefixInteger.encode(capacity, prefixBits: 5, pattern: 0x20, into: &block.bytes)
        }
        for field in fields {
            if let index = wholeFieldIndex(field, mirror, indexingPolicy) {
                PrefixInteger.encode(index, prefixBits: 7, pattern: 0x80, into: &block.bytes)
                continue
            }
            appendName(
                field, mirror: &mirror, indexingPolicy: indexingPolicy, huffman: huffman,
                to: &block.bytes)
            appendValue(field, huffman: huffman, to: &block)
        }
        assert(
            block.holes.allSatisfy { $0.range.upperBound <= block.bytes.count },
            "holes are in their block")
        return block
    }

    /// Index of the entry for the whole field; nil if the policy permits none, or if none exists.
    private static func wholeFieldIndex(
        _ field: RequestField, _ mirror: DynamicTableMirror, _ indexingPolicy: IndexingPolicy
    ) -> Int? {
        guard case .constant(let value) = field.value else { return nil }
        switch field.name {
        case .method where value == Array("GET".utf8): return 2
        case .method where value == Array("POST".utf8): return 3
        case .scheme where value == Array("https".utf8): return 7
        default: break
        }
        switch indexingPolicy {
        case .strict: return nil
        case .compact: break
        case .current where field.name.kind == .indexedOnce: return nil
        case .current: break
        }
        return mirror.index(of: field.name, revision: field.revision)
    }

    private static func appendName(
        _ field: RequestField, mirror: inout DynamicTableMirror, indexingPolicy: IndexingPolicy,
        huffman: Bool, to bytes: inout [UInt8]
    ) {
        // Gets the index before the field itself is inserted.
        let index = field.name.staticIndex ?? mirror.index(of: field.name)
        let inserts = inserts(field, into: &mirror, indexingPolicy)
        if let index {
            PrefixInteger.encode(
                index, prefixBits: inserts ? 6 : 4, pattern: inserts ? 0x40 : 0x00, into: &bytes)
            return
        }
        bytes.append(inserts ? 0x40 : 0x00)
        appendString(field.name.bytes, huffman: huffman, to: &bytes)
    }

    /// Inserts the field into the table if the policy requires it and the field fits; returns
    /// whether the field was inserted.
    private static func inserts(
        _ field: RequestField, into mirror: inout DynamicTableMirror,
        _ indexingPolicy: IndexingPolicy
    ) -> Bool {
        var revision: UInt32?
        if case .constant = field.value { revision = field.revision }
        switch field.name.kind {
        case .pseudo, .path:
            return false
        case .indexedOnce:
            guard mirror.index(of: field.name) == nil else { return false }
        case .constant:
            // A value that differs per request is not worth an entry.
            guard indexingPolicy != .strict, revision != nil else { return false }
            if indexingPolicy == .current, field.name == .authorization { return false }
        }
        return mirror.insert(
            field.name, valueCount: field.value.count, revision: revision)
    }

    private static func appendValue(
        _ field: RequestField, huffman: Bool, to block: inout EncodedBlock
    ) {
        switch field.value {
        case .constant(let bytes):
            appendString(bytes, huffman: huffman, to: &block.bytes)
        case .hole(let count):
            PrefixInteger.encode(count, prefixBits: 7, pattern: 0x00, into: &block.bytes)
            let start = block.bytes.count
            block.bytes.append(contentsOf: repeatElement(0, count: count))
            block.holes.append(.init(name: field.name, range: start..<start + count))
        }
    }

    private static func appendString(_ string: [UInt8], huffman: Bool, to bytes: inout [UInt8]) {
        let codedCount = huffman ? Huffman.encodedCount(of: string) : .max
        guard codedCount <= string.count else {
            PrefixInteger.encode(string.count, prefixBits: 7, pattern: 0x00, into: &bytes)
            bytes.append(contentsOf: string)
            return
        }
        PrefixInteger.encode(codedCount, prefixBits: 7, pattern: 0x80, into: &bytes)
        let start = bytes.count
        Huffman.encode(string, into: &bytes)
        assert(bytes.count == start + codedCount, "the string is as long as was announced")
    }
}
