/// Header block in more than one frame (RFC 9113 section 6.10).
///
/// No other frame may come in between, so one buffer is enough. APNs never splits a block, so the
/// buffer is allocated only on first use.
@safe struct HeaderFragments: ~Copyable {
    /// Maximum byte count of a block. Responses of APNs have about 100 bytes.
    static let byteLimit = 32 << 10
    /// Maximum number of frames of a block, so that a server can't send empty frames forever.
    static let frameLimit = 16

    // SAFETY: the first `begin` allocates `byteLimit` bytes, `deinit` frees them; the first `count`
    // are set.
    private var storage: UnsafeMutableRawPointer?
    private(set) var count = 0
    private var frameCount = 0
    /// Stream of the block in progress; 0 if there is none.
    private(set) var streamID: UInt32 = 0
    /// Whether HEADERS had END_STREAM.
    private(set) var endsStream = false

    // SAFETY: nothing is allocated yet, and `count` is 0.
    init() { unsafe storage = nil }

    // SAFETY: accessed only through this value; bytes need no deinitialization.
    deinit { unsafe storage?.deallocate() }

    /// Start of the `count` collected bytes.
    var start: UnsafeRawPointer? {
        // SAFETY: only the address is returned; callers read the first `count` bytes.
        unsafe storage.map { UnsafeRawPointer($0) }
    }

    /// Whether the block has more than `frameLimit` frames.
    var hasTooManyFrames: Bool { frameCount > Self.frameLimit }

    mutating func begin(streamID: UInt32, endsStream: Bool) {
        assert(self.streamID == 0 && streamID != 0, "one header block at a time")
        // SAFETY: allocated once for the life of this value; `count` becomes 0, so that no byte is
        // read before it is set.
        if unsafe storage == nil {
            unsafe storage = .allocate(byteCount: Self.byteLimit, alignment: 8)
        }
        count = 0
        frameCount = 0
        self.streamID = streamID
        self.endsStream = endsStream
    }

    /// Adds a fragment; returns false if the block becomes too large, or has too many frames.
    mutating func append(_ fragment: RawSpan) -> Bool {
        assert(streamID != 0, "a fragment belongs to a block that was begun")
        frameCount += 1
        guard frameCount <= Self.frameLimit, fragment.byteCount <= Self.byteLimit - count else {
            return false
        }
        // SAFETY: the room was checked above; `begin`, which comes first, allocated it.
        unsafe fragment.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe (storage.unsafelyUnwrapped + count).copyMemory(
                from: source, byteCount: bytes.count)
        }
        count += fragment.byteCount
        return true
    }

    /// Ends the block. Returns the block's stream, and whether the block ends that stream.
    mutating func finish() -> (streamID: UInt32, endsStream: Bool) {
        assert(streamID != 0, "a block ends once")
        defer { streamID = 0 }
        return (streamID, endsStream)
    }
}

/// Counts frames that cost us work but advance no request (RFC 9113 section 10.5).
struct FloodGuard {
    /// Period to which the limit applies, nanoseconds.
    private static let period: UInt64 = 1_000_000_000

    /// Maximum number of consecutive frames without progress in a period. A response, a request, a
    /// piece of a payload or an acknowledged PING is progress.
    private let limit: Int
    private var count = 0
    /// Start of the current period, monotonic nanoseconds.
    private var periodStart: UInt64 = 0

    /// Creates a guard for at most `maxStreams` open streams. A server may return the credit for
    /// each request's DATA in two frames: one for the stream and one for the connection.
    init(maxStreams: Int) { limit = 10_000 + 2 * maxStreams }

    mutating func progress() { count = 0 }

    /// Begins a new period if the current one has ended.
    mutating func advance(to now: UInt64) {
        guard now - min(now, periodStart) >= Self.period else { return }
        periodStart = now
        count = 0
    }

    /// Counts a frame that advanced no request. Returns false if there are too many such frames.
    mutating func idleFrame() -> Bool {
        count += 1
        return count <= limit
    }
}
