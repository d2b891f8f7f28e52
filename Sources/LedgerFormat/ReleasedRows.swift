/// Rows of a reservation that a run leaves unsent: one bit for each row of the chunk.
public struct ReleasedRows: Hashable, Sendable {
    /// Number of rows of the chunk.
    public let count: Int
    /// One bit per row, from the lowest bit of the first word on.
    private(set) var words: [UInt64]

    /// Creates a mask without rows.
    ///
    /// - Parameter count: Number of rows of the chunk, at most `ChunkReservation.rowCountMax`.
    public init(count: Int) {
        precondition(count > 0 && count <= LedgerFormat.rowsPerChunkMax)
        self.count = count
        words = Array(
            repeating: 0, count: 2 * (LedgerFormat.partialReleaseSlots(rows: count) - 1))
    }

    /// Adds the row with an index in the chunk.
    public mutating func insert(_ index: Int) {
        precondition(index >= 0 && index < count, "a row of the chunk")
        words[index / 64] |= 1 << UInt64(index % 64)
    }

    /// Whether no row is released.
    public var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
}
