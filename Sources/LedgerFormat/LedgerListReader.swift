public import BroadsideRows

/// Reads the list that a run sent, one chunk at a time, for an export.
///
/// The implementation knows the list's format. If a chunk's bytes do not have the hash that the
/// ledger recorded, the list is a different one.
public protocol LedgerListReader {
    /// Whether there is a list. If there is none, no other method is called.
    var isAvailable: Bool { get }

    /// Reads the rows of a chunk.
    ///
    /// - Parameters:
    ///   - chunk: The chunk, as recorded in the ledger.
    ///   - rows: Receives the chunk's rows, and no others.
    /// - Throws: `badList` if the list differs from the list that was sent.
    mutating func load(
        _ chunk: ChunkReservation, into rows: inout ListRows
    ) throws(LedgerError)

    /// Reads rows from the start of a gap, a range that no run reserved. The reader chooses how
    /// many.
    ///
    /// - Parameters:
    ///   - gap: The range to read.
    ///   - rows: Receives the rows that were read, and no others.
    /// - Returns: The chunk of the rows that were read; nil if the gap has no more rows.
    mutating func loadNext(
        of gap: ListExtent, into rows: inout ListRows
    ) throws(LedgerError) -> ChunkReservation?
}

/// Reader for an export without a list. Lines, and tokens of accepted rows, stay empty.
public struct NoLedgerList: LedgerListReader, Sendable {
    /// Creates a reader without a list.
    public init() {}

    /// Always false.
    public var isAvailable: Bool { false }

    /// Never called.
    public mutating func load(
        _ chunk: ChunkReservation, into rows: inout ListRows
    ) throws(LedgerError) {}

    /// Never called.
    public mutating func loadNext(
        of gap: ListExtent, into rows: inout ListRows
    ) throws(LedgerError) -> ChunkReservation? { nil }
}
