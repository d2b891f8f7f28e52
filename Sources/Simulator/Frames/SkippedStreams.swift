/// The stream numbers that a client skipped on one connection.
///
/// RFC 9113 section 5.1.1: the number of a new stream "MUST be numerically greater than all streams
/// that the initiating endpoint has opened or reserved", and an unexpected number is a connection
/// error. A skipped number that arrives later is always such an error. A number that was opened may
/// arrive again with trailers.
struct SkippedStreams {
    /// Maximum number of ranges of skipped numbers. Beyond it, the oldest ranges are removed, and
    /// frames with their numbers are ignored, like frames on closed streams.
    static let limit = 64

    private var ranges: [ClosedRange<UInt32>] = []

    /// Records the numbers between the last stream and the next one. `last` is 0 if there was no
    /// stream.
    @inline(__always)
    mutating func record(from last: UInt32, to next: UInt32) {
        assert(next > last, "stream numbers rise")
        if next - last > 2 { append(last + 1...next - 1) }
    }

    private mutating func append(_ range: ClosedRange<UInt32>) {
        if ranges.count == Self.limit { ranges.removeFirst() }
        ranges.append(range)
    }

    /// Returns whether the client skipped this number.
    func contains(_ streamID: UInt32) -> Bool { ranges.contains { $0.contains(streamID) } }
}
