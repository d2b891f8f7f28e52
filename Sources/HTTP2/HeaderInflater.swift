internal import BroadsideHPACK
internal import CBroadsideNghttp2

/// nghttp2's decoder for the header blocks of one direction, with the dynamic table.
@safe struct HeaderInflater: ~Copyable {
    // SAFETY: a decoder that `init` creates and `deinit` frees; the value can't be copied.
    private let inflater: OpaquePointer

    /// Creates a decoder; nil if memory runs out.
    init?() {
        var made: OpaquePointer?
        // SAFETY: `made` is a local, which nghttp2 sets to a new inflater if it succeeds.
        guard unsafe nghttp2_hd_inflate_new(&made) == 0, let made = unsafe made else { return nil }
        unsafe inflater = made
    }

    // SAFETY: created in `init`, and accessed only through this value.
    deinit { unsafe nghttp2_hd_inflate_del(inflater) }

    /// Bytes in the dynamic table, as counted by RFC 7541 section 4.1.
    var tableByteCount: Int {
        // SAFETY: the decoder lives as long as this value.
        unsafe nghttp2_hd_inflate_get_dynamic_table_size(inflater)
    }

    /// Decodes a complete block, field by field.
    ///
    /// - Parameter take: Receives name and value, and copies them if it keeps them.
    /// - Returns: False if the tables no longer agree, or a field was refused.
    @inline(__always)
    func inflate(
        _ block: RawSpan, _ take: (RawSpan, RawSpan) throws(HPACKError) -> Void
    ) -> Bool {
        // SAFETY: `offset` stays within the bytes, because the decoder reads no more than it is
        // given. Name and value are valid until its next call.
        unsafe block.withUnsafeBytes { bytes in
            let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var offset = 0
            while true {
                var field = unsafe nghttp2_nv()
                var flags: Int32 = 0
                let read = unsafe nghttp2_hd_inflate_hd2(
                    inflater, &field, &flags, start.map { unsafe $0 + offset },
                    bytes.count - offset, 1)
                guard read > 0 || read == 0 && flags != 0 else { return false }
                offset += Int(read)
                if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                    let name = unsafe RawSpan(_unsafeStart: field.name, byteCount: field.namelen)
                    let value = unsafe RawSpan(_unsafeStart: field.value, byteCount: field.valuelen)
                    do throws(HPACKError) { try take(name, value) } catch { return false }
                }
                if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                    return unsafe nghttp2_hd_inflate_end_headers(inflater) == 0
                }
            }
        }
    }
}
