/// A run of rows that no run has reserved.
public struct ListExtent: Codable, Hashable, Sendable {
    /// Number of the first row.
    public var firstRow: UInt64
    /// Where it begins in the decoded list. A header, where the list has one, lies in a gap from 0.
    public var byteOffset: UInt64
    /// The 1-based line on which it begins.
    public var firstLine: UInt64
    /// The row behind the last one; nil where it goes on to the end of the list.
    public var endRow: UInt64?
    /// Where it ends in the decoded list; nil where it goes on to the end.
    public var endByteOffset: UInt64?

    /// Describes a gap.
    public init(
        firstRow: UInt64, byteOffset: UInt64, firstLine: UInt64, endRow: UInt64?,
        endByteOffset: UInt64?
    ) {
        self.firstRow = firstRow
        self.byteOffset = byteOffset
        self.firstLine = firstLine
        self.endRow = endRow
        self.endByteOffset = endByteOffset
    }

    /// What lies between two places; up to the end of the list if `end` is nil.
    public init(from start: ListPosition, to end: ListPosition?) {
        self.init(
            firstRow: start.row, byteOffset: start.byteOffset, firstLine: start.line,
            endRow: end?.row, endByteOffset: end?.byteOffset)
    }

    /// All of a list.
    public static let wholeList = ListExtent(from: ListPosition(), to: nil)

    /// Where it begins.
    public var start: ListPosition {
        ListPosition(byteOffset: byteOffset, row: firstRow, line: firstLine)
    }

    /// What lies between a chunk and a later one, or the end of the part; nil if they adjoin.
    public init?(
        after previous: ChunkReservation?, before next: ChunkReservation?, within part: ListExtent
    ) {
        let start = previous?.end ?? part.start
        if next?.firstRow == start.row { return nil }
        self = part.rest(from: start)
        guard let next else { return }
        endRow = next.firstRow
        endByteOffset = next.byteOffset
    }

    /// What is left of it from a place in it on.
    public func rest(from start: ListPosition) -> ListExtent {
        ListExtent(
            firstRow: start.row, byteOffset: start.byteOffset, firstLine: start.line,
            endRow: endRow, endByteOffset: endByteOffset)
    }

    /// What is left of it behind rows that were read from its beginning; nil if nothing is.
    public func rest(behind read: ChunkReservation) -> ListExtent? {
        assert(read.firstRow >= firstRow, "what was read is in the gap")
        if let endRow, read.end.row >= endRow { return nil }
        return rest(from: read.end)
    }
}
