internal import BroadsideSupport

/// The first different values of a column, each shortened.
struct DistinctValues: Sendable {
    /// The values, in the order in which they occurred.
    private(set) var values: [[UInt8]] = []
    /// Whether the column has more values.
    private(set) var hasMore = false
    /// Maximum number of values that are kept.
    private let limit: Int

    /// Maximum number of bytes that are kept of a value. A message shows fewer bytes.
    private static let valueByteLimit = 64

    init(limit: Int) { self.limit = limit }

    /// Records a value of the column.
    mutating func note(_ value: RawSpan) {
        guard !hasMore else { return }
        let kept = value.extracting(first: Self.valueByteLimit)
        for known in values where known.rawSpan.holdsSame(as: kept) { return }
        guard values.count < limit else {
            hasMore = true
            return
        }
        values.append([UInt8](kept))
    }
}
