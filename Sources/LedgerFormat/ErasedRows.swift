public import BroadsideRows

/// Numbers of the rows whose devices `ledger forget` erased before a run settled them. The list
/// still has the tokens of these rows, because a resume needs the whole list.
///
/// Consecutive rows are one range, however many they are.
public struct ErasedRows: Sendable, Hashable {
    /// Maximum number of ranges in a ledger, which keeps the manifest small.
    public static let rangesLimit = 100_000

    /// Consecutive rows.
    struct RowRange: Sendable, Hashable {
        var first: UInt64
        var count: UInt64

        var end: UInt64 { first + count }
    }

    /// The rows, ascending. Two ranges may be adjacent, because a manifest keeps the ranges that it
    /// was read with until rows are added.
    fileprivate(set) var ranges: [RowRange] = []

    /// Creates a set of rows.
    ///
    /// - Parameter numbers: Numbers of the rows, ascending.
    package init(_ numbers: [UInt64] = []) {
        for number in numbers { append(RowRange(first: number, count: 1)) }
    }

    /// Whether there are no such rows.
    public var isEmpty: Bool { ranges.isEmpty }

    /// Number of rows.
    public var count: Int { ranges.reduce(0) { $0 + Int($1.count) } }

    /// Whether the device of a row was erased.
    public func contains(_ row: UInt64) -> Bool {
        let index = firstIndex(endingAfter: row)
        return index < ranges.count && ranges[index].first <= row
    }

    /// Returns the numbers in a range of rows.
    func rows(in range: Range<UInt64>) -> [UInt64] {
        var rows: [UInt64] = []
        var index = firstIndex(endingAfter: range.lowerBound)
        while index < ranges.count, ranges[index].first < range.upperBound {
            rows += (ranges[index].first..<ranges[index].end).clamped(to: range)
            index += 1
        }
        return rows
    }

    /// Returns the index of the first range that has a row or a later one.
    private func firstIndex(endingAfter row: UInt64) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].end <= row { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the rows of both sets, in as few ranges as possible.
    func union(_ other: ErasedRows) -> ErasedRows {
        var all = ErasedRows()
        var (index, otherIndex) = (0, 0)
        while index < ranges.count || otherIndex < other.ranges.count {
            let isOwn =
                otherIndex == other.ranges.count
                || index < ranges.count && ranges[index].first <= other.ranges[otherIndex].first
            all.append(isOwn ? ranges[index] : other.ranges[otherIndex])
            if isOwn { index += 1 } else { otherIndex += 1 }
        }
        return all
    }

    /// Adds rows that begin at or after the begin of the last range.
    fileprivate mutating func append(_ next: RowRange) {
        guard let last = ranges.last, next.first <= last.end else { return ranges.append(next) }
        assert(last.first <= next.first, "ranges are ascending")
        ranges[ranges.count - 1].count = Swift.max(last.end, next.end) - last.first
    }

    /// Marks the rows of a chunk that no run reserved, so that they are settled without being sent.
    /// Rows of other shards keep their disposition. Call after all other rules have marked the
    /// chunk.
    public func mark(_ chunk: RowChunk) {
        guard !isEmpty else { return }
        let found = rows(in: chunk.start.row..<chunk.end.row)
        guard !found.isEmpty else { return }
        var dispositions =
            chunk.dispositions ?? Array(repeating: .send, count: chunk.rowCount)
        for row in found {
            let index = Int(row - chunk.start.row)
            switch dispositions[index] {
            case .settled, .beyondLimit, .erased: break
            case .send, .skipped, .notDue, .invalid:
                dispositions[index] = .erased(mayHaveBeenSent: false)
            case .sendAgain, .becomesUnknown:
                dispositions[index] = .erased(mayHaveBeenSent: true)
            }
        }
        chunk.dispositions = dispositions
        // The hash of a chunk of one row identifies the row's device.
        if chunk.rowCount == 1 { chunk.removeHash() }
    }
}

extension ErasedRows: Sequence {
    /// Returns an iterator over the numbers, ascending.
    public func makeIterator() -> some IteratorProtocol<UInt64> {
        ranges.lazy.flatMap { $0.first..<$0.end }.makeIterator()
    }
}

/// In the manifest, a row alone is its number, and a range is the number of its first row and the
/// number of rows.
extension ErasedRows: Codable {
    /// Reads the ranges as they were written, so that the checksum of the manifest stays the same.
    public init(from decoder: any Decoder) throws { ranges = try [RowRange](from: decoder) }

    /// Writes the ranges.
    public func encode(to encoder: any Encoder) throws { try ranges.encode(to: encoder) }

    /// Whether the numbers of rows are possible and ascending.
    var isPossible: Bool {
        var end: UInt64 = 0
        for range in ranges {
            guard range.first >= end, range.first < LedgerFormat.rowLimit, range.count > 0,
                range.count <= LedgerFormat.rowLimit - range.first
            else { return false }
            end = range.end
        }
        return ranges.count <= Self.rangesLimit
    }
}

extension ErasedRows.RowRange: Codable {
    init(from decoder: any Decoder) throws {
        if let row = try? decoder.singleValueContainer().decode(UInt64.self) {
            self.init(first: row, count: 1)
            return
        }
        var pair = try decoder.unkeyedContainer()
        self.init(
            first: try pair.decode(UInt64.self), count: try pair.decode(UInt64.self))
    }

    func encode(to encoder: any Encoder) throws {
        if count == 1 {
            var number = encoder.singleValueContainer()
            try number.encode(first)
        } else {
            var pair = encoder.unkeyedContainer()
            try pair.encode(first)
            try pair.encode(count)
        }
    }
}

/// Rows that an erasure adds to those of earlier erasures, up to the limit on ranges.
package struct AddedErasedRows {
    /// The rows that were added.
    package private(set) var rows = ErasedRows()
    private let earlier: ErasedRows
    /// Number of further ranges that the ledger can have.
    private var spareCount: Int

    /// - Parameters:
    ///   - earlier: Rows that the manifest has; nil: none.
    ///   - limit: Maximum number of ranges of all rows together.
    package init(to earlier: ErasedRows?, limit: Int = ErasedRows.rangesLimit) {
        self.earlier = (earlier ?? ErasedRows()).union(ErasedRows())
        spareCount = limit - self.earlier.ranges.count
    }

    /// Adds a row that is greater than those before.
    ///
    /// - Returns: false if the ledger can't have another range for the row.
    package mutating func add(_ row: UInt64) -> Bool {
        guard !earlier.contains(row) else { return true }
        var addedCount = 1
        if rows.ranges.last?.end == row || row > 0 && earlier.contains(row - 1) { addedCount -= 1 }
        if earlier.contains(row + 1) { addedCount -= 1 }
        guard addedCount <= spareCount else { return false }
        spareCount -= addedCount
        rows.append(ErasedRows.RowRange(first: row, count: 1))
        return true
    }
}
