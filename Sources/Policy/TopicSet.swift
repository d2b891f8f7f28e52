/// Some of a run's topics, by their numbers.
public struct TopicSet: Sendable, Equatable {
    private var bits = SIMD4<UInt64>()

    /// None.
    public init() {}

    /// Whether there is none.
    public var isEmpty: Bool { bits == SIMD4<UInt64>() }

    /// Whether a topic is one of them.
    public func contains(_ topic: UInt8) -> Bool {
        bits[Int(topic >> 6)] >> UInt64(topic & 63) & 1 == 1
    }

    /// Takes a topic in.
    public mutating func insert(_ topic: UInt8) {
        bits[Int(topic >> 6)] |= 1 << UInt64(topic & 63)
        assert(contains(topic), "what was taken in is there")
    }
}
