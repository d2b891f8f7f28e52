import BroadsidePrimitives

/// A batch of accepted rows: the fingerprint of each row's token, and the time of acceptance.
/// Nearly all rows in a ledger are accepted rows. All rows of a batch have the same topic: the
/// caller begins a new batch for each topic.
public struct AcceptedBatch: ~Copyable {
    /// Maximum number of rows in a batch. An empty batch has room for all rows of a block.
    public static let capacity = 4_096

    private var fingerprints = WordTable(count: AcceptedBatch.capacity)
    private var times = WordTable(count: AcceptedBatch.capacity)
    /// Number of rows.
    public private(set) var count = 0
    /// Topic of the rows, as a number in the `topics` of the `BlockReader`; 0 if the rows have no
    /// topic.
    public private(set) var topic: UInt16 = 0
    /// Name of the topic; empty if the rows have none.
    public private(set) var topicName: [UInt8] = []

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

    /// Sets the topic of the rows that will be appended. The batch must be empty.
    public mutating func begin(topic: UInt16, of names: TopicNames) {
        precondition(count == 0, "a batch has rows of one topic")
        self.topic = topic
        topicName = names[topic]
    }

    /// Appends a row. The batch must not be full.
    public mutating func append(_ fingerprint: UInt64, _ milliseconds: UInt64) {
        precondition(!isFull, "a batch is handed on before it is full")
        fingerprints[count] = fingerprint
        times[count] = milliseconds
        count += 1
    }
}

extension BlockReader {
    /// Moves well-formed records of accepted rows from the block to the batch, until the batch is
    /// full or the next record is of another kind. The caller reads the record of another kind with
    /// `nextRecord`.
    public mutating func takeAccepted(into batch: inout AcceptedBatch) {
        while !batch.isFull, let record = nextAccepted() {
            batch.append(record.fingerprint, record.milliseconds)
        }
    }
}
