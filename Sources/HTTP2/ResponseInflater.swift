internal import CNghttp2
internal import HPACK

/// The header blocks that touch the dynamic table, by nghttp2's inflater.
///
/// We announce a SETTINGS_HEADER_TABLE_SIZE of 0, and nothing depends on a server's obeying: the
/// inflater has a table of 4,096 bytes, the size "that both have to assume" before any other is known
/// (RFC 9113 section 6.5.2), whatever was acknowledged.
///
///     blocks without insertions --> not seen here: they leave the table as it is
///     a size update             --> made, if it is the first such block: the table is still empty
///     the first insertion       --> the same, and from then on all blocks of the connection
///
/// So the inflater always has the exact state: what it did not see changed nothing. A server that
/// obeys says so by a size update to 0 in its first block; what it inserts later is evicted at once
/// (RFC 7541 section 4.4). One that obeys and does not say so refers to no entry.
@safe struct ResponseInflater: ~Copyable {
    private var inflater: OpaquePointer?
    /// The table held an entry once: from then on every block goes through the inflater.
    private(set) var isInCharge = false

    init() { unsafe inflater = nil }

    deinit {
        if let inflater = unsafe inflater { unsafe nghttp2_hd_inflate_del(inflater) }
    }

    /// Inflates all of `block` into `headers`. False: the tables no longer agree.
    mutating func inflate(_ block: RawSpan, into headers: inout ResponseHeaders) -> Bool {
        if unsafe inflater == nil {
            guard unsafe nghttp2_hd_inflate_new(&inflater) == 0 else { return false }
        }
        var isGood = true
        // The span's bytes are read within the closure only.
        unsafe block.withUnsafeBytes { bytes in
            isGood = unsafe inflate(
                bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
                into: &headers)
        }
        if !isInCharge {
            isInCharge = unsafe nghttp2_hd_inflate_get_dynamic_table_size(inflater) > 0
        }
        return isGood
    }

    private mutating func inflate(
        _ start: UnsafePointer<UInt8>?, _ count: Int, into headers: inout ResponseHeaders
    ) -> Bool {
        var offset = 0
        while true {
            var field = unsafe nghttp2_nv()
            var flags: Int32 = 0
            // `offset` stays within the `count` bytes, as the inflater reads no more than it is given.
            let read = unsafe nghttp2_hd_inflate_hd2(
                inflater, &field, &flags, start.map { unsafe $0 + offset }, count - offset, 1)
            guard read >= 0 else { return false }
            offset += Int(read)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                // Name and value live until the next call to the inflater.
                let name = unsafe RawSpan(_unsafeStart: field.name, byteCount: field.namelen)
                let value = unsafe RawSpan(_unsafeStart: field.value, byteCount: field.valuelen)
                do throws(HPACKError) {
                    try headers.takeField(name, value)
                } catch {
                    return false
                }
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                return unsafe nghttp2_hd_inflate_end_headers(inflater) == 0
            }
        }
    }
}
