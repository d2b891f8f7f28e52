/// Limit on notifications per device: `--cap N/D`.
public struct FrequencyCap: Sendable, Equatable {
    /// Maximum number of accepted notifications per device within the period. A device that has
    /// reached it gets no more.
    public var count: Int
    /// Period before the campaign's first start, in milliseconds.
    public var milliseconds: UInt64

    /// Valid values of `count`.
    public static let counts = 1...AcceptanceCounts.countLimit

    /// - Parameters:
    ///   - count: One of `counts`.
    ///   - milliseconds: Length of the period in which accepted notifications are counted.
    public init(count: Int, milliseconds: UInt64) {
        precondition(Self.counts.contains(count), "a count that is kept")
        self.count = count
        self.milliseconds = milliseconds
    }
}
