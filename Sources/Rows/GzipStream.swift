internal import CBroadsideZlib

/// zlib's state for compressing or decompressing a gzip file. Its address is fixed, because zlib
/// keeps a pointer to it.
@safe struct GzipStream: ~Copyable {
    enum Direction {
        case pack
        case unpack
    }

    /// Result of a step.
    struct Step {
        var consumed: Int
        var produced: Int
        /// zlib's return code.
        var result: Int32
    }

    private static let level: Int32 = 6
    /// Largest window, plus 16. The 16 selects gzip's header and trailer.
    private static let windowBits: Int32 = 15 + 16
    /// zlib's default memory level.
    private static let memoryLevel: Int32 = 8

    private let direction: Direction
    // SAFETY: allocated and initialized in `init`, ended and freed in `deinit`; accessed only
    // through this value. It never moves: zlib's own state points back to it.
    private let stream: UnsafeMutablePointer<z_stream>

    init(_ direction: Direction) {
        self.direction = direction
        // SAFETY: a zeroed z_stream selects zlib's own allocator and has no input yet; zlib
        // compares the version and the size with its own, and leaves nothing behind if it fails,
        // which traps.
        let size = unsafe Int32(MemoryLayout<z_stream>.size)
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let result =
            switch direction {
            case .pack:
                unsafe deflateInit2_(
                    stream, Self.level, Z_DEFLATED, Self.windowBits, Self.memoryLevel,
                    Z_DEFAULT_STRATEGY, ZLIB_VERSION, size)
            case .unpack: unsafe inflateInit2_(stream, Self.windowBits, ZLIB_VERSION, size)
            }
        precondition(result == Z_OK, "zlib has no memory")
    }

    // SAFETY: initialized in `init`, and accessed only through this value.
    deinit {
        switch direction {
        case .pack: unsafe deflateEnd(stream)
        case .unpack: unsafe inflateEnd(stream)
        }
        unsafe stream.deallocate()
    }

    /// Consumes as much input and fills as much output as possible.
    func step(
        _ input: RawSpan, into output: UnsafeMutableRawBufferPointer, flush: Int32
    ) -> Step {
        let rest = UInt32(clamping: input.byteCount)
        let room = UInt32(clamping: output.count)
        // SAFETY: both are alive during this call, their lengths are clamped to their sizes, and
        // zlib does not access them afterwards. It does not write to its input.
        return unsafe input.withUnsafeBytes { bytes in
            unsafe stream.pointee.next_in = UnsafeMutableRawPointer(mutating: bytes.baseAddress)?
                .assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_in = rest
            unsafe stream.pointee.next_out = output.baseAddress?
                .assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_out = room
            let result =
                switch direction {
                case .pack: unsafe deflate(stream, flush)
                case .unpack: unsafe inflate(stream, flush)
                }
            return unsafe Step(
                consumed: Int(rest - stream.pointee.avail_in),
                produced: Int(room - stream.pointee.avail_out), result: result)
        }
    }

    /// Resets the state for another gzip member.
    // SAFETY: only `ListDecompressor` resets, and only streams that `inflateInit2_` began; they
    // last until `deinit`.
    func reset() { _ = unsafe inflateReset(stream) }

    /// zlib's message about the error of the last step.
    // SAFETY: zlib's messages are constant texts that end with a zero byte; the text is copied.
    var message: String? { unsafe stream.pointee.msg.map { unsafe String(cString: $0) } }
}
