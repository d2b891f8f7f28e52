internal import CBroadsideZlib

/// zlib's state for one direction of a gzip file, at a place that stays: zlib points back to it.
@safe struct GzipStream: ~Copyable {
    enum Direction {
        case pack
        case unpack
    }

    /// What a step did.
    struct Step {
        var consumed: Int
        var produced: Int
        /// What zlib called it.
        var result: Int32
    }

    private static let level: Int32 = 6
    /// 16 more than the largest window: gzip's header and trailer, no other.
    private static let windowBits: Int32 = 15 + 16
    /// zlib's usual memory.
    private static let memoryLevel: Int32 = 8

    private let direction: Direction
    // SAFETY: allocated and begun in `init`, ended and freed in `deinit`; reached only through this
    // value. It never moves: zlib's own state points back to it.
    private let stream: UnsafeMutablePointer<z_stream>

    init(_ direction: Direction) {
        self.direction = direction
        // SAFETY: a zeroed z_stream asks for zlib's own allocator and has no input yet; zlib holds
        // the version and the size against its own, and leaves nothing behind if it fails, which
        // traps.
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

    // SAFETY: made in `init`, and reached only through this value.
    deinit {
        switch direction {
        case .pack: unsafe deflateEnd(stream)
        case .unpack: unsafe inflateEnd(stream)
        }
        unsafe stream.deallocate()
    }

    /// Takes what it can of the input, and fills what it can of the output.
    func step(
        _ input: RawSpan, into output: UnsafeMutableRawBufferPointer, flush: Int32
    ) -> Step {
        let rest = UInt32(clamping: input.byteCount)
        let room = UInt32(clamping: output.count)
        // SAFETY: both are alive during this call, their lengths are clamped to what they have, and
        // zlib leaves them alone afterwards. It does not write to its input.
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

    /// Begins with another member.
    // SAFETY: only `ListDecompressor` resets, streams that `inflateInit2_` began; they last until
    // `deinit`.
    func reset() { _ = unsafe inflateReset(stream) }

    /// What zlib says of the last step's error.
    // SAFETY: zlib's messages are constant texts that end with a zero byte; the text is copied.
    var message: String? { unsafe stream.pointee.msg.map { unsafe String(cString: $0) } }
}
