internal import BroadsideHPACK
internal import BroadsideSupport

/// A header name in one of the categories of the lint.
enum LintName: Hashable {
    case field(RequestFieldName)
    /// A header that APNs does not read.
    case other([UInt8])

    /// How the policy requires a header to be indexed.
    enum Role {
        /// `:method` and `:scheme`: static entries.
        case pseudo
        /// `:path`: different in each request, and never inserted.
        case path
        /// The three headers whose names are inserted once.
        case changing
        /// All other headers.
        case constant
    }

    init(_ bytes: [UInt8]) {
        self = RequestFieldName(bytes.span.rawBytes).map { .field($0) } ?? .other(bytes)
    }

    /// The name on the wire.
    var text: String {
        switch self {
        case .field(let name): "\(name.text)"
        case .other(let bytes): String(decoding: bytes, as: UTF8.self)
        }
    }

    var role: Role {
        switch self {
        case .field(.method), .field(.scheme): .pseudo
        case .field(.path): .path
        case .field(.identifier), .field(.expiration), .field(.collapseIdentifier): .changing
        default: .constant
        }
    }

    /// True for a header that APNs reads. A client may encode any other header in any way.
    var isOfAPNs: Bool {
        if case .other = self { return false }
        return true
    }

    /// The first entry with this name in RFC 7541's static table.
    var staticIndex: Int? {
        switch self {
        case .field(let name): name.staticIndex
        case .other(let bytes):
            (1...StaticTable.count).first { index in
                bytes.span.rawBytes.matches(StaticTable.name(at: index))
            }
        }
    }
}

/// The names in a client's dynamic table, with the size of each entry (RFC 7541 section 4.1).
struct LintTable {
    private var entries: [(name: LintName, size: Int)] = []
    private var size = 0
    private var capacity = 4096

    /// Returns the name at an index of 62 or more, or nil if there is no such entry. Index 62 is
    /// the newest entry.
    func name(at index: Int) -> LintName? {
        let position = entries.count - 1 - (index - StaticTable.count - 1)
        return entries.indices.contains(position) ? entries[position].name : nil
    }

    /// Returns whether an entry has this name.
    func has(_ name: LintName) -> Bool { entries.contains { $0.name == name } }

    /// Inserts an entry and returns the number of entries evicted.
    mutating func insert(_ name: LintName, valueCount: Int) -> Int {
        let count = Self.size(of: name, valueCount: valueCount)
        entries.append((name, count))
        size += count
        return evict()
    }

    /// Returns whether an entry fits without the eviction of others.
    func hasRoom(for name: LintName, valueCount: Int) -> Bool {
        size + Self.size(of: name, valueCount: valueCount) <= capacity
    }

    private static func size(of name: LintName, valueCount: Int) -> Int {
        32 + name.text.utf8.count + valueCount
    }

    /// Applies a size update, with which the client limits the table.
    mutating func limit(_ capacity: Int) {
        self.capacity = min(capacity, 4096)
        _ = evict()
    }

    private mutating func evict() -> Int {
        var evicted = 0
        while size > capacity, evicted < entries.count {
            size -= entries[evicted].size
            evicted += 1
        }
        entries.removeFirst(evicted)
        return evicted
    }
}

/// Decoding of strings in a header block.
enum LintText {
    /// Returns the bytes of a string; empty if its Huffman code is invalid.
    static func decoded(_ text: BlockWalker.Text, in block: RawSpan) -> [UInt8] {
        let coded = block.extracting(text.offset..<text.offset + text.count)
        guard text.isHuffman else { return Array(coded) }
        // The shortest codes have five bits.
        let capacity = text.count * 8 / 5 + 1
        return [UInt8](capacity: capacity) { output in try? Huffman.decode(coded, into: &output) }
    }
}
