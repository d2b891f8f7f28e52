import BroadsidePrimitives

/// Fingerprints and times of accepted rows, many at once: nearly all records of nearly all ledgers.
public struct AcceptedBatch: ~Copyable {
    /// The most rows of a batch: more than a block has.
    public static let capacity = 4_096

    private var fingerprints = WordTable(count: AcceptedBatch.capacity)
    private var times = WordTable(count: AcceptedBatch.capacity)
    /// How many rows are in it.
    public private(set) var count = 0

    /// No rows.
    public init() {}

    /// Whether another row has no room.
    public var isFull: Bool { count == AcceptedBatch.capacity }

    /// The fingerprint of a row's token.
    public func fingerprint(_ index: Int) -> UInt64 {
        assert(index < count, "only rows of the batch are read")
        return fingerprints[index]
    }

    /// When a row was accepted: milliseconds since 1970.
    public func milliseconds(_ index: Int) -> UInt64 {
        assert(index < count, "only rows of the batch are read")
        return times[index]
    }

    /// Forgets the rows.
    public mutating func removeAll() { count = 0 }

    /// Takes a row; there is room for it.
    public mutating func append(_ fingerprint: UInt64, _ milliseconds: UInt64) {
        precondition(!isFull, "a batch is handed on before it is full")
        fingerprints[count] = fingerprint
        times[count] = milliseconds
        count += 1
    }
}

extension BlockReader {
    /// Takes the well-formed records of accepted rows that come next in the block, as many as the batch has
    /// room for. What comes behind them is left to `nextRecord`.
    public mutating func takeAccepted(into batch: inout AcceptedBatch) {
        while !batch.isFull, let record = nextAccepted() {
            batch.append(record.fingerprint, record.milliseconds)
        }
    }
}
