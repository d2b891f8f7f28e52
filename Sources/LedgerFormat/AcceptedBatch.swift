import BroadsidePrimitives

/// Batch of fingerprints and times of accepted rows, which are nearly all records of a ledger.
public struct AcceptedBatch: ~Copyable {
    /// Limit on rows of a batch; more than a block has.
    public static let capacity = 4_096

    private var fingerprints = WordTable(count: AcceptedBatch.capacity)
    private var times = WordTable(count: AcceptedBatch.capacity)
    /// Number of rows.
    public private(set) var count = 0

    /// Creates an empty batch.
    public init() {}

    /// Whether the batch is full: no further row can be appended.
    public var isFull: Bool { count == AcceptedBatch.capacity }

    /// Returns the fingerprint of a row's token.
    public func fingerprint(_ index: Int) -> UInt64 {
        assert(index < count, "only rows of the batch are read")
        return fingerprints[index]
    }

    /// Returns the time of a row's acceptance: milliseconds since 1970.
    public func milliseconds(_ index: Int) -> UInt64 {
        assert(index < count, "only rows of the batch are read")
        return times[index]
    }

    /// Removes all rows.
    public mutating func removeAll() { count = 0 }

    /// Appends a row. The batch must not be full.
    public mutating func append(_ fingerprint: UInt64, _ milliseconds: UInt64) {
        precondition(!isFull, "a batch is handed on before it is full")
        fingerprints[count] = fingerprint
        times[count] = milliseconds
        count += 1
    }
}

extension BlockReader {
    /// Moves the next well-formed records of accepted rows from the block to the batch until it is
    /// full. Whatever follows them is left to `nextRecord`.
    public mutating func takeAccepted(into batch: inout AcceptedBatch) {
        while !batch.isFull, let record = nextAccepted() {
            batch.append(record.fingerprint, record.milliseconds)
        }
    }
}
