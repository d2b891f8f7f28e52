/// A run of rows that no run has reserved.
public struct ListGap: Codable, Hashable, Sendable {
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

    /// All of a list.
    public static let wholeList = ListGap(
        firstRow: 0, byteOffset: 0, firstLine: 1, endRow: nil, endByteOffset: nil)

    /// What lies between a chunk and a later one, or the end of the part; nil if they adjoin.
    init?(
        after previous: ChunkReservation?, before next: ChunkReservation?, within part: ListGap
    ) {
        let row = previous?.rows.upperBound ?? part.firstRow
        if next?.firstRow == row { return nil }
        self.init(
            firstRow: row,
            byteOffset: previous.map { $0.byteOffset + $0.byteCount } ?? part.byteOffset,
            firstLine: previous.map { $0.firstLine + $0.lineCount } ?? part.firstLine,
            endRow: next?.firstRow ?? part.endRow,
            endByteOffset: next?.byteOffset ?? part.endByteOffset)
    }

    /// What is left of it behind rows that were read from its beginning; nil if nothing is.
    public func rest(behind read: ChunkReservation) -> ListGap? {
        let next = read.rows.upperBound
        if let endRow, next >= endRow { return nil }
        return ListGap(
            firstRow: next, byteOffset: read.byteOffset + read.byteCount,
            firstLine: read.firstLine + read.lineCount, endRow: endRow,
            endByteOffset: endByteOffset)
    }
}
