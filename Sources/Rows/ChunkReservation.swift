/// A range of whole rows of the list, as recorded in the ledger.
///
/// A reservation is written and synced before any of its rows is sent. A later run that continues
/// the chunk reserves exactly the same rows and bytes.
public struct ChunkReservation: Hashable, Sendable {
    /// Number of the first row, counted from 0 over the whole list.
    public var firstRow: UInt64
    /// Number of rows, 1 to `rowCountMax`.
    public var rowCount: Int
    /// Offset of the chunk in the decoded list, in bytes.
    public var byteOffset: UInt64
    /// Number of bytes of the decoded list that the chunk covers.
    public var byteCount: UInt64
    /// Line on which the chunk begins, from 1.
    public var firstLine: UInt64
    /// Number of line ends in the chunk; the next chunk begins at `firstLine + lineCount`.
    public var lineCount: UInt64
    /// Hash of the chunk's bytes, or `unknownHash`.
    public var hash: UInt64
    /// The states of rows that this reservation reopens.
    public var reopens: ReopenedStates

    /// Hash of a chunk whose bytes are not compared, because devices were erased from it.
    public static let unknownHash = UInt64.max

    /// Maximum number of rows of a chunk.
    public static let rowCountMax = 1 << 16

    /// Creates a reservation; the numbers must be within the limits of the ledger's format.
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

    /// The only chunk of a broadcast, which counts as a list of one line.
    public static var broadcast: Self {
        Self(
            firstRow: 0, rowCount: 1, byteOffset: 0, byteCount: 1, firstLine: 1, lineCount: 1,
            hash: 0)
    }

    /// The rows of the chunk.
    public var rows: Range<UInt64> { firstRow..<(firstRow + UInt64(rowCount)) }

    /// Position of the chunk's start.
    public var start: ListPosition {
        ListPosition(byteOffset: byteOffset, row: firstRow, line: firstLine)
    }

    /// Position of the chunk's end.
    public var end: ListPosition {
        ListPosition(
            byteOffset: byteOffset + byteCount, row: rows.upperBound, line: firstLine + lineCount)
    }

    /// Whether the chunk lies within `part` and follows `previous`; if `previous` is nil, whether
    /// it can be the first chunk of `part`.
    public func follows(_ previous: ChunkReservation?, within part: ListExtent) -> Bool {
        let end = byteOffset + byteCount
        let start = previous.map { $0.byteOffset + $0.byteCount } ?? part.byteOffset
        return byteOffset >= start && firstRow >= part.firstRow
            && rows.upperBound <= part.endRow ?? .max && end <= part.endByteOffset ?? .max
    }

    /// Whether both reservations describe the same rows and bytes, regardless of the states that
    /// they reopen. An unknown hash equals any other.
    public func hasSameBounds(as other: ChunkReservation) -> Bool {
        var copy = other
        copy.reopens = reopens
        if hash == Self.unknownHash || other.hash == Self.unknownHash { copy.hash = hash }
        return copy == self
    }
}
