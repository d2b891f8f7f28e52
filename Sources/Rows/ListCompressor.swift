import BroadsideSupport
internal import CBroadsideZlib

/// Compresses a stream of pieces, with a fixed amount of memory.
public struct ListCompressor: ~Copyable {
    enum Format: ~Copyable {
        case gzip(GzipStream)
        case zstd(ZstdCompressor)
    }

    private let format: Format
    private var packed = ReadBuffer(byteCount: 1 << 17)

    /// Creates a compressor for one file.
    public init(_ compression: ListCompression) {
        switch compression {
        case .gzip: format = .gzip(GzipStream(.pack))
        case .zstd: format = .zstd(ZstdCompressor())
        }
    }

    /// Compresses bytes.
    ///
    /// - Parameters:
    ///   - input: Any number of bytes.
    ///   - isLast: Whether the file ends with these bytes. No call may follow then.
    ///   - sink: Receives the compressed bytes, one piece at a time.
    public mutating func encode<Failure>(
        _ input: RawSpan, isLast: Bool, to sink: (RawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        precondition(input.byteCount <= UInt32.max, "zlib takes no more at a time")
        var consumed = 0
        var isDone = false
        while !isDone {
            let rest = input.extracting(consumed...)
            // SAFETY: `fill` hands out memory that only the step accesses meanwhile, and checks how
            // much of it is set.
            switch format {
            case .gzip(let stream):
                unsafe packed.fill { room in
                    let step = unsafe stream.step(
                        rest, into: room, flush: isLast ? Z_FINISH : Z_NO_FLUSH)
                    consumed += step.consumed
                    isDone = isLast ? step.result == Z_STREAM_END : step.produced < room.count
                    return step.produced
                }
            case .zstd(let compressor):
                unsafe packed.fill { room in
                    let step = unsafe compressor.step(rest, into: room, isLast: isLast)
                    consumed += step.consumed
                    isDone = isLast ? step.result == 0 : consumed == input.byteCount
                    return step.produced
                }
            }
            if packed.count > 0 { try sink(packed.bytes) }
        }
    }
}
