/// Numbers of streams that the simulator closed before their request was complete. Frames on such a
/// stream may still be in flight (RFC 9113 section 5.1, "closed").
///
/// The client itself ended all other closed streams, with END_STREAM or RST_STREAM. If the client
/// sends another HEADERS or DATA frame on a stream that it has ended, that is an error. nghttp2
/// detects this error only on closed streams that it keeps, and the simulator does not let it keep
/// any. Therefore the simulator detects the error itself, and needs this type to do so.
struct UnfinishedStreams {
    /// Maximum number of recorded streams. Beyond it, the oldest number is removed, and frames on
    /// this stream and on all streams with lower numbers are ignored.
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
