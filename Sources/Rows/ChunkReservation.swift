/// A run of whole rows of the list, as the ledger knows it.
///
/// It is written, and synced, before any of its rows is sent. A later run that goes on with the
/// chunk reserves exactly the same rows and bytes again.
public struct ChunkReservation: Hashable, Sendable {
    /// Number of the first row, counted from 0 over the whole list.
    public var firstRow: UInt64
    /// Rows in the chunk, 1 to `rowCountMax`.
    public var rowCount: Int
    /// Where the chunk begins in the decoded list, in bytes.
    public var byteOffset: UInt64
    /// How many bytes of the decoded list it covers.
    public var byteCount: UInt64
    /// The 1-based line on which the chunk begins.
    public var firstLine: UInt64
    /// Line ends within the chunk, so that the next one begins at `firstLine + lineCount`.
    public var lineCount: UInt64
    /// Hash of the chunk's bytes.
    public var hash: UInt64
    /// States whose rows this reservation opens again.
    public var reopens: ReopenedStates

    /// The most rows of a chunk.
    public static let rowCountMax = 1 << 16

    /// Describes a chunk; the numbers must keep the limits of the ledger's format.
    public init(
        firstRow: UInt64, rowCount: Int, byteOffset: UInt64, byteCount: UInt64,
        firstLine: UInt64, lineCount: UInt64, hash: UInt64, reopens: ReopenedStates = []
    ) {
        self.firstRow = firstRow
        self.rowCount = rowCount
        self.byteOffset = byteOffset
        self.byteCount = byteCount
        self.firstLine = firstLine
        self.lineCount = lineCount
        self.hash = hash
        self.reopens = reopens
    }

    /// The rows of the chunk.
    public var rows: Range<UInt64> { firstRow..<(firstRow + UInt64(rowCount)) }

    /// Where it begins.
    public var start: ListPosition {
        ListPosition(byteOffset: byteOffset, row: firstRow, line: firstLine)
    }

    /// Where it ends.
    public var end: ListPosition {
        ListPosition(
            byteOffset: byteOffset + byteCount, row: rows.upperBound, line: firstLine + lineCount)
    }

    /// Whether it can come behind another one in a list, or is the first of a part, within that part.
    public func follows(_ previous: ChunkReservation?, within part: ListExtent) -> Bool {
        let end = byteOffset + byteCount
        let start = previous.map { $0.byteOffset + $0.byteCount } ?? part.byteOffset
        return byteOffset >= start && firstRow >= part.firstRow
            && rows.upperBound <= part.endRow ?? .max && end <= part.endByteOffset ?? .max
    }

    /// Whether both describe the same rows of the same bytes, whatever they open again.
    public func hasSameBounds(as other: ChunkReservation) -> Bool {
        var copy = other
        copy.reopens = reopens
        return copy == self
    }
}
