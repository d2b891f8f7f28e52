public import BroadsideRows

/// Settled rows, counted by topic and state, for campaigns whose rows name their topics. No memory
/// is allocated until a row with a topic is counted.
public struct TopicCounts: Sendable, Equatable {
    /// The counts of each topic, indexed by the state's raw value.
    private var numbers: [[UInt8]: [UInt64]] = [:]

    /// Creates empty counts.
    public init() {}

    /// Topics with rows, sorted by their bytes.
    public var topics: [[UInt8]] {
        numbers.keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Number of a topic's rows in a state.
    public subscript(_ topic: [UInt8], _ state: RowState) -> UInt64 {
        numbers[topic]?[Int(state.rawValue)] ?? 0
    }

    /// Counts rows of a topic by the raw value of their state.
    mutating func add(_ counts: [UInt64], of topic: [UInt8]) {
        precondition(counts.count == RowState.allCases.count)
        let known = numbers[topic] ?? Array(repeating: 0, count: counts.count)
        numbers[topic] = zip(known, counts).map { $0 + $1 }
    }

    /// Adds other counts.
    public mutating func add(_ other: TopicCounts) {
        for (topic, counts) in other.numbers { add(counts, of: topic) }
    }
}
