/// Changed parts of a list, as one bit per page. The memory therefore depends on the list's size,
/// not on the number of changed rows.
public struct PageSet: Sendable {
    static let pageByteCount: UInt64 = 4096
    /// Maximum number of pages. With one bit per page, the set takes 32 MiB and covers a list of
    /// one tebibyte. If a page beyond this limit changes, all pages count as changed.
    static let pagesLimit: UInt64 = 1 << 28

    private var words: [UInt64] = []
    private var isFull = false

    /// Creates an empty set.
    public init() {}

    /// Whether nothing changed.
    public var isEmpty: Bool { words.isEmpty && !isFull }

    /// Adds the pages of a range of bytes.
    public mutating func insert(_ range: Range<UInt64>) {
        guard !range.isEmpty else { return }
        let last = (range.upperBound - 1) / Self.pageByteCount
        guard last < Self.pagesLimit else {
            isFull = true
            return
        }
        for page in (range.lowerBound / Self.pageByteCount)...last {
            let word = Int(page / 64)
            while words.count <= word { words.append(0) }
            words[word] |= 1 << (page % 64)
        }
    }

    /// Whether a page of a range of bytes changed.
    func intersects(_ range: Range<UInt64>) -> Bool {
        guard !range.isEmpty else { return false }
        if isFull { return true }
        let last = (range.upperBound - 1) / Self.pageByteCount
        var page = range.lowerBound / Self.pageByteCount
        while page <= last, page / 64 < UInt64(words.count) {
            if words[Int(page / 64)] & 1 << (page % 64) != 0 { return true }
            page += 1
        }
        return false
    }
}
