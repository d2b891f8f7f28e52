import BroadsideSupport
internal import CBroadsideZlib
internal import CBroadsideZstd

/// Decompresses a list from a stream of pieces of any size, with a fixed amount of memory.
///
///     input ──▶ member, member, … zeros      (gzip)
///     input ──▶ frame, skippable frame, …    (zstd)
///
/// Each call consumes as much input and fills as much output as possible. A call that consumes all
/// input and produces nothing needs more input. The input may end only while `mayEnd` is true.
public struct ListDecompressor: ~Copyable {
    /// Reason why input can't be decompressed.
    public enum Fault: Error, Hashable, Sendable {
        /// The data is corrupt; the text describes the error.
        case corrupt(String)
        /// A zstd frame has a window larger than `windowByteCountMax`.
        case windowTooLarge
    }

    /// Result of a call of `decode`.
    public struct Progress: Sendable {
        /// Number of input bytes consumed.
        public var consumed: Int
        /// Number of output bytes set.
        public var produced: Int
    }

    /// Maximum window of a zstd frame. RFC 8878 (section 3.1.1.1.2) recommends that decoders
    /// support it, and compression levels up to 19 need no more.
    public static let windowByteCountMax = 1 << windowLogMax
    private static let windowLogMax: Int32 = 23

    enum Format: ~Copyable {
        case gzip(GzipStream)
        case zstd(ZstdDecompressor)
    }

    private let format: Format
    private var state = MemberState()

    /// Whether the input may end here: at the end of a member or frame.
    public var mayEnd: Bool { state.isBetween }

    /// Number of output bytes that the call of `decode` that failed has decompressed before the
    /// fault. The caller does not get them.
    public private(set) var lostCount = 0

    /// Creates a decompressor for a file, from its first byte.
    public init(_ compression: ListCompression) {
        switch compression {
        case .gzip: format = .gzip(GzipStream(.unpack))
        case .zstd: format = .zstd(ZstdDecompressor(windowLogMax: Self.windowLogMax))
        }
    }

    /// Decompresses input into output, until all input is consumed or the output is full.
    ///
    /// - Parameters:
    ///   - input: Bytes that follow those consumed so far. At the end, empty input returns the rest
    ///     of the output.
    ///   - output: At least one byte of memory.
    public mutating func decode(
        _ input: RawSpan, into output: UnsafeMutableRawBufferPointer
    ) throws(Fault) -> Progress {
        var progress = Progress(consumed: 0, produced: 0)
        // At the end of a member or frame, a step without input would begin another member or
        // frame.
        while progress.produced < output.count,
            progress.consumed < input.byteCount || (!state.isBetween && input.byteCount == 0)
        {
            let rest = input.extracting(progress.consumed...)
            // SAFETY: `produced` is at most the output's count, and the output belongs to the
            // caller during this call.
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[progress.produced...])
            let step: Progress
            do throws(Fault) {
                switch format {
                case .gzip(let stream): step = try unsafe state.step(stream, rest, room)
                case .zstd(let decompressor): step = try unsafe state.step(decompressor, rest, room)
                }
            } catch {
                lostCount = progress.produced + state.lostCount
                throw error
            }
            progress.consumed += step.consumed
            progress.produced += step.produced
            assert(progress.consumed <= input.byteCount && progress.produced <= output.count)
            if input.byteCount == 0, step.produced == 0 { break }
        }
        return progress
    }
}

extension ListDecompressor {
    /// State of decompression between or within the members or frames of a file.
    struct MemberState {
        /// Whether a whole member or frame has ended, so that the next one may begin.
        var isBetween = false
        /// Whether zeros follow the last member, as on tapes. After zeros, nothing else may follow.
        var isPadding = false
        /// Number of output bytes of the step that failed.
        var lostCount = 0

        mutating func step(
            _ stream: borrowing GzipStream, _ input: RawSpan,
            _ output: UnsafeMutableRawBufferPointer
        ) throws(Fault) -> Progress {
            if isBetween {
                assert(input.byteCount > 0, "a member begins without a byte")
                let byte = input.byte(at: 0)
                if byte == 0 {
                    isPadding = true
                    return Progress(consumed: 1, produced: 0)
                }
                guard !isPadding, byte == 0x1f else {
                    throw .corrupt("other data follows its gzip data")
                }
                stream.reset()
                isBetween = false
            }
            // SAFETY: the output belongs to the caller during this call; `GzipStream` writes only
            // inside it.
            let step = unsafe stream.step(input, into: output, flush: Z_NO_FLUSH)
            switch step.result {
            case Z_STREAM_END: isBetween = true
            case Z_OK, Z_BUF_ERROR: break
            default:
                lostCount = step.produced
                throw .corrupt(stream.message ?? "its gzip data is invalid")
            }
            return Progress(consumed: step.consumed, produced: step.produced)
        }

        mutating func step(
            _ decompressor: borrowing ZstdDecompressor, _ input: RawSpan,
            _ output: UnsafeMutableRawBufferPointer
        ) throws(Fault) -> Progress {
            // SAFETY: the output belongs to the caller during this call; `ZstdDecompressor` writes
            // only inside it. zstd's names of errors are constant texts that end with a zero byte.
            let step = unsafe decompressor.step(input, into: output)
            if ZSTD_isError(step.result) != 0 {
                lostCount = step.produced
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
