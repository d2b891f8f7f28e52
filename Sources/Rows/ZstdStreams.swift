internal import CBroadsideZstd

/// What a step of zstd did.
struct ZstdStep {
    var consumed: Int
    var produced: Int
    /// What zstd returned: 0 at the end, else an error or a hint.
    var result: Int
}

/// zstd's state of a file that is compressed.
@safe struct ZstdCompressor: ~Copyable {
    private static let level: Int32 = 3

    // SAFETY: zstd's, made in `init`, freed in `deinit`, and reached only through this value.
    private let context: OpaquePointer

    init() {
        // SAFETY: zstd gives a whole context or none, and checks what it is set to.
        guard let context = unsafe ZSTD_createCCtx() else {
            preconditionFailure("zstd has no memory")
        }
        unsafe self.context = context
        _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Self.level)
        _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    }

    // SAFETY: made in `init`, and reached only through this value.
    deinit { unsafe ZSTD_freeCCtx(context) }

    /// Takes what it can of the input, and fills what it can of the output.
    func step(
        _ input: RawSpan, into output: UnsafeMutableRawBufferPointer, isLast: Bool
    ) -> ZstdStep {
        // SAFETY: both are alive during this call, with the sizes that zstd is told; it keeps
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

/// zstd's state of a file that is decompressed.
@safe struct ZstdDecompressor: ~Copyable {
    // SAFETY: zstd's, made in `init`, freed in `deinit`, and reached only through this value.
    private let context: OpaquePointer

    /// - Parameter windowLogMax: How far a frame may look back, as a power of two.
    init(windowLogMax: Int32) {
        // SAFETY: zstd gives a whole context or none, and checks what it is set to.
        guard let context = unsafe ZSTD_createDCtx() else {
            preconditionFailure("zstd has no memory")
        }
        unsafe self.context = context
        _ = unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, windowLogMax)
    }

    // SAFETY: made in `init`, and reached only through this value.
    deinit { unsafe ZSTD_freeDCtx(context) }

    /// Takes what it can of the input, and fills what it can of the output.
    func step(_ input: RawSpan, into output: UnsafeMutableRawBufferPointer) -> ZstdStep {
        // SAFETY: both are alive during this call, with the sizes that zstd is told; it keeps
        // neither.
        unsafe input.withUnsafeBytes { bytes in
            var source = unsafe ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
            var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
            let result = unsafe ZSTD_decompressStream(context, &target, &source)
            return unsafe ZstdStep(consumed: source.pos, produced: target.pos, result: result)
        }
    }
}
