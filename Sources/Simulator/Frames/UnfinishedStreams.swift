/// Numbers of streams that were closed before their request was complete, on which frames may still
/// be in flight (RFC 9113 section 5.1, "closed").
///
/// Any other closed stream had END_STREAM, and a further HEADERS or DATA frame on it is an error.
/// nghttp2 would know that if it kept every closed stream, which it does up to the limit on streams
/// that it is told; the simulator tells it none.
struct UnfinishedStreams {
    /// Maximum number of streams; frames on the oldest one, and on all below it, are then ignored.
    static let limit = 256

    private var numbers: [UInt32] = []
    private var ignored: UInt32 = 0

    /// Records a stream.
    mutating func record(_ streamID: UInt32) {
        if numbers.count == Self.limit { ignored = max(ignored, numbers.removeFirst()) }
        numbers.append(streamID)
        assert(numbers.count <= Self.limit, "the oldest number makes room")
    }

    /// Returns whether frames on a closed stream are ignored.
    func contains(_ streamID: UInt32) -> Bool {
        streamID <= ignored || numbers.contains(streamID)
    }
}
