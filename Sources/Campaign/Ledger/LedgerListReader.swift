/// Reads the list that a run sent, part by part, for an export.
///
/// Implemented over a file by whoever knows its format; a chunk's bytes must have the hash that the
/// ledger names, else the list is another one.
public protocol LedgerListReader {
    /// Whether there is a list; without one nothing else is called.
    var isAvailable: Bool { get }

    /// Reads the rows of a chunk; the functions below then speak of them.
    ///
    /// - Throws: `badList` if the list is not the one that was sent.
    mutating func load(_ chunk: ChunkReservation) throws(LedgerError)

    /// Reads rows from the beginning of a gap, as many as it likes.
    ///
    /// - Returns: what it read, as a chunk; nil if the gap holds no more rows.
    mutating func loadNext(of gap: ListGap) throws(LedgerError) -> ChunkReservation?

    /// The 1-based line on which a row starts.
    ///
    /// - Parameter index: the row's place in the chunk.
    func line(ofRow index: Int) -> UInt64

    /// Appends a row's token: its lower-case digits, or what the list has in its place.
    func appendToken(ofRow index: Int, to output: inout [UInt8])
}

/// No list: lines and the tokens of accepted rows stay empty.
public struct NoLedgerList: LedgerListReader, Sendable {
    /// Makes one.
    public init() {}

    /// False.
    public var isAvailable: Bool { false }

    /// Never called.
    public mutating func load(_ chunk: ChunkReservation) throws(LedgerError) {}

    /// Never called.
    public mutating func loadNext(of gap: ListGap) throws(LedgerError) -> ChunkReservation? { nil }

    /// Never called.
    public func line(ofRow index: Int) -> UInt64 { 0 }

    /// Never called.
    public func appendToken(ofRow index: Int, to output: inout [UInt8]) {}
}
