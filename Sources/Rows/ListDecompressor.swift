import BroadsideSupport
internal import CBroadsideZlib
internal import CBroadsideZstd

/// Decompresses a list that comes by in pieces of any size, with memory of a fixed size.
///
///     input ──▶ member, member, … zeros      (gzip)
///     input ──▶ frame, skippable frame, …    (zstd)
///
/// It takes what it can and fills what it is given; where nothing was produced and all input taken,
/// it wants more. The input may end only where `mayEnd` says so.
public struct ListDecompressor: ~Copyable {
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

    enum Format: ~Copyable {
        case gzip(GzipStream)
        case zstd(ZstdDecompressor)
    }

    private let format: Format
    private var state = MemberState()

    /// Whether the input may end here: behind a whole member or frame.
    public var mayEnd: Bool { state.isBetween }

    /// Begins at a file's first byte.
    public init(_ compression: ListCompression) {
        switch compression {
        case .gzip: format = .gzip(GzipStream(.unpack))
        case .zstd: format = .zstd(ZstdDecompressor(windowLogMax: Self.windowLogMax))
        }
    }

    /// Unpacks input into output, until one of them is used up.
    ///
    /// - Parameters:
    ///   - input: what follows the bytes consumed so far; empty at the end, to get what is left.
    ///   - output: at least one byte of room.
    public mutating func decode(
        _ input: RawSpan, into output: UnsafeMutableRawBufferPointer
    ) throws(Fault) -> Progress {
        var progress = Progress(consumed: 0, produced: 0)
        // Behind a whole member or frame, a step without input would begin another one.
        while progress.produced < output.count,
            progress.consumed < input.byteCount || (!state.isBetween && input.byteCount == 0)
        {
            let rest = input.extracting(progress.consumed...)
            // SAFETY: `produced` is at most the output's count, and the output is the caller's for
            // this call.
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[progress.produced...])
            let step: Progress
            switch format {
            case .gzip(let stream): step = try unsafe state.step(stream, rest, room)
            case .zstd(let decompressor): step = try unsafe state.step(decompressor, rest, room)
            }
            progress.consumed += step.consumed
            progress.produced += step.produced
            if input.byteCount == 0, step.produced == 0 { break }
        }
        return progress
    }
}

extension ListDecompressor {
    /// Where in a file its members or frames have brought us.
    struct MemberState {
        /// True behind a whole member or frame, where another one may begin.
        var isBetween = false
        /// True once zeros follow the last member, as on tapes: nothing else may.
        var isPadding = false

        mutating func step(
            _ stream: borrowing GzipStream, _ input: RawSpan,
            _ output: UnsafeMutableRawBufferPointer
        ) throws(Fault) -> Progress {
            if isBetween {
                let byte = input.byte(at: 0)
                if byte == 0 {
                    isPadding = true
                    return Progress(consumed: 1, produced: 0)
                }
                guard !isPadding, byte == 0x1f else {
                    throw .corrupt("something else follows its gzip data")
                }
                stream.reset()
                isBetween = false
            }
            // SAFETY: the output is the caller's for this call; `GzipStream` writes only inside it.
            let step = unsafe stream.step(input, into: output, flush: Z_NO_FLUSH)
            switch step.result {
            case Z_STREAM_END: isBetween = true
            case Z_OK, Z_BUF_ERROR: break
            default: throw .corrupt(stream.message ?? "its gzip data makes no sense")
            }
            return Progress(consumed: step.consumed, produced: step.produced)
        }

        mutating func step(
            _ decompressor: borrowing ZstdDecompressor, _ input: RawSpan,
            _ output: UnsafeMutableRawBufferPointer
        ) throws(Fault) -> Progress {
            // SAFETY: the output is the caller's for this call; `ZstdDecompressor` writes only
            // inside it. zstd's names of errors are constant texts that end with a zero byte.
            let step = unsafe decompressor.step(input, into: output)
            if ZSTD_isError(step.result) != 0 {
                let code = ZSTD_getErrorCode(step.result)
                if code == ZSTD_error_frameParameter_windowTooLarge { throw .windowTooLarge }
                let words = unsafe ZSTD_getErrorName(step.result)
                throw .corrupt(unsafe words.map { unsafe String(cString: $0) } ?? "")
            }
            isBetween = step.result == 0
            return Progress(consumed: step.consumed, produced: step.produced)
        }
    }
}
