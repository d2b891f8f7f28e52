internal import CZlib
internal import CZstd

/// Packs what comes by in pieces, with memory of a fixed size.
@safe public struct ListCompressor: ~Copyable {
    @unsafe private enum Machine {
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(OpaquePointer)
    }

    private static let gzipLevel: Int32 = 6
    private static let zstdLevel: Int32 = 3

    private let machine: Machine
    private let room: UnsafeMutableRawBufferPointer

    /// Begins a file.
    public init(_ compression: ListCompression) {
        unsafe room = .allocate(byteCount: 1 << 17, alignment: 16)
        switch compression {
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            unsafe stream.initialize(to: z_stream())
            // 16 more than the largest window: gzip's header and trailer. 8 is zlib's usual memory.
            let result = unsafe deflateInit2_(
                stream, Self.gzipLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size))
            precondition(result == Z_OK, "zlib has no memory")
            unsafe machine = .gzip(stream)
        case .zstd:
            guard let context = unsafe ZSTD_createCCtx() else {
                preconditionFailure("zstd has no memory")
            }
            _ = unsafe ZSTD_CCtx_setParameter(
                context, ZSTD_c_compressionLevel, Self.zstdLevel)
            _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
            unsafe machine = .zstd(context)
        }
    }

    deinit {
        // SAFETY: made in `init`, and reached only through this value.
        switch unsafe machine {
        case .gzip(let stream):
            unsafe deflateEnd(stream)
            unsafe stream.deallocate()
        case .zstd(let context):
            unsafe ZSTD_freeCCtx(context)
        }
        unsafe room.deallocate()
    }

    /// Packs bytes.
    ///
    /// - Parameters:
    ///   - input: any number of bytes.
    ///   - isLast: whether the file ends with them; nothing may follow.
    ///   - sink: takes what is packed, a piece at a time.
    public mutating func encode<Failure>(
        _ input: UnsafeRawBufferPointer, isLast: Bool,
        to sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        switch unsafe machine {
        case .gzip(let stream): try unsafe deflate(stream, input, isLast, sink)
        case .zstd(let context): try unsafe compress(context, input, isLast, sink)
        }
    }

    private func deflate<Failure>(
        _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer, _ isLast: Bool,
        _ sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        precondition(input.count <= UInt32.max)
        // SAFETY: the input stays during this call, and zlib does not write to it.
        unsafe stream.pointee.next_in = UnsafeMutableRawPointer(mutating: input.baseAddress)?
            .assumingMemoryBound(to: UInt8.self)
        unsafe stream.pointee.avail_in = UInt32(input.count)
        while true {
            unsafe stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_out = UInt32(room.count)
            let result = unsafe CZlib.deflate(stream, isLast ? Z_FINISH : Z_NO_FLUSH)
            let count = unsafe room.count - Int(stream.pointee.avail_out)
            if count > 0 { try unsafe sink(UnsafeRawBufferPointer(rebasing: room[..<count])) }
            if isLast ? result == Z_STREAM_END : unsafe stream.pointee.avail_out > 0 { return }
        }
    }

    private func compress<Failure>(
        _ context: OpaquePointer, _ input: UnsafeRawBufferPointer, _ isLast: Bool,
        _ sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        var source = unsafe ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        while true {
            var target = unsafe ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
            let left = unsafe ZSTD_compressStream2(
                context, &target, &source, isLast ? ZSTD_e_end : ZSTD_e_continue)
            precondition(ZSTD_isError(left) == 0, "zstd has no memory")
            let count = unsafe target.pos
            if count > 0 { try unsafe sink(UnsafeRawBufferPointer(rebasing: room[..<count])) }
            if isLast ? left == 0 : unsafe source.pos == source.size { return }
        }
    }
}
