/// A range of consecutive rows of a list, such as a gap that no run has reserved.
public struct ListExtent: Codable, Hashable, Sendable {
    /// Number of the first row.
    public var firstRow: UInt64
    /// Offset in the decoded list at which the extent begins. An extent that begins at offset 0
    /// includes the header, if the list has one.
    public var byteOffset: UInt64
    /// Line on which the extent begins, from 1.
    public var firstLine: UInt64
    /// Number of the row after the last one; nil if the extent continues to the end of the list.
    public var endRow: UInt64?
    /// Offset in the decoded list at which the extent ends; nil if it continues to the end of the
    /// list.
    public var endByteOffset: UInt64?

    /// Creates an extent from its bounds.
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

    /// Creates the extent between two positions. If `end` is nil, it continues to the end of the
    /// list.
    public init(from start: ListPosition, to end: ListPosition?) {
        self.init(
            firstRow: start.row, byteOffset: start.byteOffset, firstLine: start.line,
            endRow: end?.row, endByteOffset: end?.byteOffset)
    }

    /// The whole list.
    public static let wholeList = ListExtent(from: ListPosition(), to: nil)

    /// Position of the extent's start.
    public var start: ListPosition {
        ListPosition(byteOffset: byteOffset, row: firstRow, line: firstLine)
    }

    /// Creates the gap between two chunks, or from a chunk to the end of `part`; nil if there is no
    /// gap.
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

    /// Returns the rest of the extent from a position in it.
    public func rest(from start: ListPosition) -> ListExtent {
        ListExtent(
            firstRow: start.row, byteOffset: start.byteOffset, firstLine: start.line,
            endRow: endRow, endByteOffset: endByteOffset)
    }

    /// Returns the rest of the extent after its first rows, which `read` covers; nil if nothing is
    /// left.
    public func rest(behind read: ChunkReservation) -> ListExtent? {
        assert(read.firstRow >= firstRow, "what was read is in the gap")
        if let endRow, read.end.row >= endRow { return nil }
        return rest(from: read.end)
    }
}
