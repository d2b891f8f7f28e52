internal import CNghttp2
internal import HPACK

/// The header blocks that need a dynamic table, by nghttp2's inflater.
///
/// A server that honours our SETTINGS_HEADER_TABLE_SIZE of 0 sends one such block at most, the one
/// with the size update, so the inflater is made when it is first needed.
@safe struct ResponseInflater: ~Copyable {
    private var inflater: OpaquePointer?
    /// The server has acknowledged that the table is to be empty.
    private var isTableClosed = false
    /// The inflater waits for a size update since its limit was lowered.
    private var awaitsSizeUpdate = false

    init() { unsafe inflater = nil }

    deinit {
        if let inflater = unsafe inflater { unsafe nghttp2_hd_inflate_del(inflater) }
    }

    /// From the acknowledgement of our SETTINGS on the table is empty (RFC 7541 section 4.2).
    mutating func closeTable() {
        isTableClosed = true
        if unsafe inflater != nil { lowerLimit() }
    }

    /// Inflates all of `block` into `headers`. False: the tables no longer agree.
    mutating func inflate(_ block: RawSpan, into headers: inout ResponseHeaders) -> Bool {
        if unsafe inflater == nil {
            guard unsafe nghttp2_hd_inflate_new(&inflater) == 0 else { return false }
            if isTableClosed { lowerLimit() }
        }
        if awaitsSizeUpdate, block.byteCount > 0 {
            awaitsSizeUpdate = false
            // A server that omits the size update is tolerated: the inflater is told in its place,
            // and any reference to an entry that the server still counts on is an error.
            if block.octet(at: 0) & 0xe0 != 0x20, !inflateSizeUpdate() { return false }
        }
        var isGood = true
        // The span's octets are read within the closure only.
        unsafe block.withUnsafeBytes { octets in
            isGood = unsafe inflate(
                octets.baseAddress?.assumingMemoryBound(to: UInt8.self), octets.count,
                into: &headers)
        }
        return isGood
    }

    private mutating func lowerLimit() {
        awaitsSizeUpdate = unsafe nghttp2_hd_inflate_change_table_size(inflater, 0) == 0
    }

    private mutating func inflateSizeUpdate() -> Bool {
        var update: UInt8 = 0x20
        var field = unsafe nghttp2_nv()
        var flags: Int32 = 0
        // One octet is read; with in_final 0 the inflater waits for more of the block.
        return unsafe nghttp2_hd_inflate_hd2(inflater, &field, &flags, &update, 1, 0) == 1
    }

    private mutating func inflate(
        _ start: UnsafePointer<UInt8>?, _ count: Int, into headers: inout ResponseHeaders
    ) -> Bool {
        var offset = 0
        while true {
            var field = unsafe nghttp2_nv()
            var flags: Int32 = 0
            // `offset` stays within the `count` octets, as the inflater reads no more than it is given.
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
