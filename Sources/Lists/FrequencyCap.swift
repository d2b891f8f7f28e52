/// How often a device may get a notification: `--cap N/D`.
public struct FrequencyCap: Sendable, Equatable {
    /// A device that accepted so many notifications within the period gets no other one.
    public var count: Int
    /// Before the campaign's first start, in milliseconds.
    public var milliseconds: UInt64

    /// The counts that there may be.
    public static let counts = 1...AcceptanceCounts.countLimit

    /// - Parameter count: One of `counts`.
    public init(count: Int, milliseconds: UInt64) {
        precondition(Self.counts.contains(count), "a count that is kept")
        self.count = count
        self.milliseconds = milliseconds
    }
}
