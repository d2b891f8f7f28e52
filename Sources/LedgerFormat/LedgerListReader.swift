public import BroadsideRows

/// Reads the list that a run sent, part by part, for an export.
///
/// Implemented over a file by whoever knows its format; a chunk's bytes must have the hash that the
/// ledger names, else the list is another one.
public protocol LedgerListReader {
    /// Whether there is a list; without one nothing else is called.
    var isAvailable: Bool { get }

    /// Reads the rows of a chunk.
    ///
    /// - Parameters:
    ///   - chunk: what the ledger knows of it.
    ///   - rows: has the chunk's rows afterwards, and no others.
    /// - Throws: `badList` if the list is not the one that was sent.
    mutating func load(
        _ chunk: ChunkReservation, into rows: inout ListRows
    ) throws(LedgerError)

    /// Reads rows from the beginning of a gap, as many as it likes.
    ///
    /// - Parameters:
    ///   - gap: where to read.
    ///   - rows: has these rows afterwards, and no others.
    /// - Returns: what it read, as a chunk; nil if the gap holds no more rows.
    mutating func loadNext(
        of gap: ListExtent, into rows: inout ListRows
    ) throws(LedgerError) -> ChunkReservation?
}

/// No list: lines and the tokens of accepted rows stay empty.
public struct NoLedgerList: LedgerListReader, Sendable {
    /// Makes one.
    public init() {}

    /// False.
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
