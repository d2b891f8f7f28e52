/// A set of a run's topics, by their numbers.
public struct TopicSet: Sendable, Equatable {
    private var bits = SIMD4<UInt64>()

    /// Creates an empty set.
    public init() {}

    /// Whether the set contains no topics.
    public var isEmpty: Bool { bits == SIMD4<UInt64>() }

    /// Whether the set contains this topic.
    public func contains(_ topic: UInt8) -> Bool {
        bits[Int(topic >> 6)] >> UInt64(topic & 63) & 1 == 1
    }

    /// Adds a topic to the set.
    public mutating func insert(_ topic: UInt8) {
        bits[Int(topic >> 6)] |= 1 << UInt64(topic & 63)
        assert(contains(topic), "the set has the topic that was added")
    }
}
