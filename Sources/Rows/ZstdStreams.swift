internal import CBroadsideZstd

/// Result of a zstd step.
struct ZstdStep {
    var consumed: Int
    var produced: Int
    /// zstd's return value: 0 at the end, otherwise an error or a hint.
    var result: Int
}

/// State of zstd for compressing a file.
@safe struct ZstdCompressor: ~Copyable {
    private static let level: Int32 = 3

    // SAFETY: owned by zstd, created in `init`, freed in `deinit`, and accessed only through this
    // value.
    private let context: OpaquePointer

    init() {
        // SAFETY: zstd returns a complete context or none, and checks its parameters.
        guard let context = unsafe ZSTD_createCCtx() else {
            preconditionFailure("zstd has no memory")
        }
        unsafe self.context = context
        _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Self.level)
        _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    }

    // SAFETY: created in `init`, and accessed only through this value.
    deinit { unsafe ZSTD_freeCCtx(context) }

    /// Consumes as much input and fills as much output as possible.
    func step(
        _ input: RawSpan, into output: UnsafeMutableRawBufferPointer, isLast: Bool
    ) -> ZstdStep {
        // SAFETY: both are alive during this call, with the sizes that zstd receives; it keeps
        // neither.
        unsafe input.withUnsafeBytes { bytes in
            var source = unsafe ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
            var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let result = unsafe ZSTD_compressStream2(
                context, &target, &source, isLast ? ZSTD_e_end : ZSTD_e_continue)
            precondition(ZSTD_isError(result) == 0, "zstd has no memory")
            return unsafe ZstdStep(consumed: source.pos, produced: target.pos, result: result)
        }
    }
}

/// State of zstd for decompressing a file.
@safe struct ZstdDecompressor: ~Copyable {
    // SAFETY: owned by zstd, created in `init`, freed in `deinit`, and accessed only through this
    // value.
    private let context: OpaquePointer

    /// - Parameter windowLogMax: Maximum window of a frame, as a power of two.
    init(windowLogMax: Int32) {
        // SAFETY: zstd returns a complete context or none, and checks its parameters.
        guard let context = unsafe ZSTD_createDCtx() else {
            preconditionFailure("zstd has no memory")
        }
        unsafe self.context = context
        _ = unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, windowLogMax)
    }

    // SAFETY: created in `init`, and accessed only through this value.
    deinit { unsafe ZSTD_freeDCtx(context) }

    /// Consumes as much input and fills as much output as possible.
    func step(_ input: RawSpan, into output: UnsafeMutableRawBufferPointer) -> ZstdStep {
        // SAFETY: both are alive during this call, with the sizes that zstd receives; it keeps
        // neither.
        unsafe input.withUnsafeBytes { bytes in
            var source = unsafe ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
            var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let result = unsafe ZSTD_decompressStream(context, &target, &source)
            return unsafe ZstdStep(consumed: source.pos, produced: target.pos, result: result)
        }
    }
}
