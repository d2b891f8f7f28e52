internal import CZlib
internal import CZstd

/// Unpacks a list that comes by in pieces of any size, with memory of a fixed size.
///
///     input ──▶ member, member, … zeros      (gzip)
///     input ──▶ frame, skippable frame, …    (zstd)
///
/// It takes what it can and fills what it is given; where nothing was produced and all input taken,
/// it wants more. The input may end only where `mayEnd` says so.
@safe public struct ListDecompressor: ~Copyable {
    /// Why input can't be unpacked.
    public enum Fault: Error, Hashable, Sendable {
        /// It is not what was packed; the text says what does not fit.
        case corrupt(String)
        /// A zstd frame looks back further than `windowByteCountMax`.
        case windowTooLarge
    }

    /// What a call did.
    public struct Progress: Sendable {
        /// Bytes of the input that are dealt with.
        public var consumed: Int
        /// Bytes of the output that are set.
        public var produced: Int
    }

    /// How far a zstd frame may look back: what RFC 8878 (section 3.1.1.1.2) asks decoders to
    /// support. Levels up to 19 need no more.
    public static let windowByteCountMax = 1 << windowLogMax
    private static let windowLogMax: Int32 = 23

    @unsafe private enum Machine {
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(OpaquePointer)
    }

    private let machine: Machine
    /// True behind a whole member or frame, where another one may begin.
    private var isBetween = false
    /// True once zeros follow the last member, as on tapes: nothing else may.
    private var isPadding = false

    /// Whether the input may end here: behind a whole member or frame.
    public var mayEnd: Bool { isBetween }

    /// Begins at a file's first byte.
    public init(_ compression: ListCompression) {
        switch compression {
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            unsafe stream.initialize(to: z_stream())
            // 16 more than the largest window: gzip's header and trailer, no other.
            let result = unsafe inflateInit2_(
                stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
            precondition(result == Z_OK, "zlib has no memory")
            unsafe machine = .gzip(stream)
        case .zstd:
            guard let context = unsafe ZSTD_createDCtx() else {
                preconditionFailure("zstd has no memory")
            }
            _ = unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.windowLogMax)
            unsafe machine = .zstd(context)
        }
    }

    deinit {
        // SAFETY: made in `init`, and reached only through this value.
        switch unsafe machine {
        case .gzip(let stream):
            unsafe inflateEnd(stream)
            unsafe stream.deallocate()
        case .zstd(let context):
            unsafe ZSTD_freeDCtx(context)
        }
    }

    /// Unpacks input into output, until one of them is used up.
    ///
    /// - Parameters:
    ///   - input: what follows the bytes consumed so far; empty at the end, to get what is left.
    ///   - output: at least one byte of room.
    public mutating func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(Fault) -> Progress {
        switch unsafe machine {
        case .gzip(let stream): try unsafe inflate(stream, input, output)
        case .zstd(let context): try unsafe decompress(context, input, output)
        }
    }

    private mutating func inflate(
        _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer,
        _ output: UnsafeMutableRawBufferPointer
    ) throws(Fault) -> Progress {
        var progress = Progress(consumed: 0, produced: 0)
        while progress.produced < output.count,
            progress.consumed < input.count || (!isBetween && input.count == 0)
        {
            if isBetween {
                let byte = unsafe input[progress.consumed]
                if byte == 0 {
                    isPadding = true
                    progress.consumed += 1
                    continue
                }
                guard !isPadding, byte == 0x1f else {
                    throw .corrupt("something else follows its gzip data")
                }
                unsafe inflateReset(stream)
                isBetween = false
            }
            // SAFETY: both ranges lie inside the buffers, which zlib leaves alone afterwards. It
            // does not write to its input.
            let room = UInt32(clamping: output.count - progress.produced)
            let rest = UInt32(clamping: input.count - progress.consumed)
            unsafe stream.pointee.next_in = UnsafeMutableRawPointer(
                mutating: input.baseAddress.unsafelyUnwrapped + progress.consumed
            ).assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_in = rest
            unsafe stream.pointee.next_out =
                (output.baseAddress.unsafelyUnwrapped + progress.produced)
                .assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_out = room
            let result = unsafe CZlib.inflate(stream, Z_NO_FLUSH)
            progress.consumed += unsafe Int(rest - stream.pointee.avail_in)
            let made = unsafe Int(room - stream.pointee.avail_out)
            progress.produced += made
            switch result {
            case Z_STREAM_END: isBetween = true
            case Z_OK, Z_BUF_ERROR: break
            default:
                let words = unsafe stream.pointee.msg.map { unsafe String(cString: $0) }
                throw .corrupt(words ?? "its gzip data makes no sense")
            }
            if input.count == 0, made == 0 { break }
        }
        return progress
    }

    private mutating func decompress(
        _ context: OpaquePointer, _ input: UnsafeRawBufferPointer,
        _ output: UnsafeMutableRawBufferPointer
    ) throws(Fault) -> Progress {
        var source = unsafe ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        // Behind a whole frame, a call without input would begin another one.
        while unsafe target.pos < target.size,
            unsafe source.pos < source.size || (!isBetween && input.count == 0)
        {
            let before = unsafe target.pos
            let result = unsafe ZSTD_decompressStream(context, &target, &source)
            if ZSTD_isError(result) != 0 {
                let code = ZSTD_getErrorCode(result)
                if code == ZSTD_error_frameParameter_windowTooLarge { throw .windowTooLarge }
                guard let words = unsafe ZSTD_getErrorName(result) else { throw .corrupt("") }
                throw .corrupt(unsafe String(cString: words))
            }
            isBetween = result == 0
            if input.count == 0, unsafe target.pos == before { break }
        }
        return unsafe Progress(consumed: source.pos, produced: target.pos)
    }
}
