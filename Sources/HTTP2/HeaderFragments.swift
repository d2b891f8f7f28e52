/// A header block that comes in more than one frame (RFC 9113 section 6.10).
///
/// Nothing else may come in between, so one place is enough. APNs never sends one: it is made when it
/// is first needed.
@safe struct HeaderFragments: ~Copyable {
    /// The most bytes of a block. The answers of APNs have about 100.
    static let byteLimit = 32 << 10
    /// The most frames of a block, lest a server sends empty ones for ever.
    static let frameLimit = 16

    // SAFETY: the first `begin` allocates `byteLimit` bytes, `deinit` frees them; the first `count`
    // are set.
    private var storage: UnsafeMutableRawPointer?
    private(set) var count = 0
    private var frameCount = 0
    /// The stream whose block is under way, 0 if there is none.
    private(set) var streamID: UInt32 = 0
    /// HEADERS had END_STREAM.
    private(set) var endsStream = false

    // SAFETY: nothing is allocated yet, and `count` is 0.
    init() { unsafe storage = nil }

    // SAFETY: reached only through this value; bytes need no deinitialisation.
    deinit { unsafe storage?.deallocate() }

    /// Where the `count` bytes are that were collected.
    var start: UnsafeRawPointer? {
        // SAFETY: only the address is handed out; what is read there is the first `count` bytes.
        unsafe storage.map { UnsafeRawPointer($0) }
    }

    mutating func begin(streamID: UInt32, endsStream: Bool) {
        assert(self.streamID == 0 && streamID != 0, "one header block at a time")
        // SAFETY: allocated once for the life of this value; `count` becomes 0: no byte is read
        // before it is set.
        if unsafe storage == nil {
            unsafe storage = .allocate(byteCount: Self.byteLimit, alignment: 8)
        }
        count = 0
        frameCount = 0
        self.streamID = streamID
        self.endsStream = endsStream
    }

    /// Adds a piece; false if the block gets too large.
    mutating func append(_ fragment: RawSpan) -> Bool {
        assert(streamID != 0, "a fragment belongs to a block that was begun")
        frameCount += 1
        guard frameCount <= Self.frameLimit, fragment.byteCount <= Self.byteLimit - count else {
            return false
        }
        // SAFETY: the room was checked in the line above; `begin`, which comes first, allocated it.
        unsafe fragment.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe (storage.unsafelyUnwrapped + count).copyMemory(
                from: source, byteCount: bytes.count)
        }
        count += fragment.byteCount
        return true
    }

    /// The block is complete: what it belongs to.
    mutating func finish() -> (streamID: UInt32, endsStream: Bool) {
        assert(streamID != 0, "a block ends once")
        defer { streamID = 0 }
        return (streamID, endsStream)
    }
}

/// Counts frames that cost us work and get no request any further (RFC 9113 section 10.5).
struct FloodGuard {
    /// How many may come in a row, between two answers, requests, pieces of a payload or answered PINGs.
    static let limit = 10_000

    private var count = 0

    mutating func progress() { count = 0 }

    /// False: it was one too many.
    mutating func idleFrame() -> Bool {
        count += 1
        return count <= Self.limit
    }
}
