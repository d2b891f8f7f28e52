internal import BroadsideHPACK

/// Header blocks that use the dynamic table, decoded by nghttp2.
///
/// We announce a SETTINGS_HEADER_TABLE_SIZE of 0, but do not depend on the server obeying it: the
/// decoder has a table of 4,096 bytes, the size "that both have to assume" before any other is
/// known (RFC 9113 section 6.5.2), whatever was acknowledged.
///
///     blocks without insertions --> not passed: they leave the table as it is
///     a size update             --> decoder created if it is the first: the table is still empty
///     the first insertion       --> the same, and from then on all blocks of the connection
///
/// The decoder therefore always has the exact state, because the blocks that were not passed to it
/// changed nothing. A server that obeys our setting confirms it with a size update to 0 in its
/// first block. Entries that it inserts later are evicted at once (RFC 7541 section 4.4). A server
/// that obeys without a size update refers to no entry.
struct ResponseInflater: ~Copyable {
    private var inflater: HeaderInflater?
    /// Whether the table ever had an entry. If so, each block goes through the decoder.
    private(set) var isActive = false

    init() { inflater = nil }

    /// Decodes all of `block` into `headers`. Returns false if the tables no longer agree.
    mutating func inflate(_ block: RawSpan, into headers: inout ResponseHeaders) -> Bool {
        if inflater == nil { inflater = HeaderInflater() }
        guard
            let isGood = inflater?.inflate(
                block,
                { (name, value) throws(HPACKError) in try headers.takeField(name, value) })
        else { return false }
        if !isActive { isActive = inflater?.tableByteCount ?? 0 > 0 }
        return isGood
    }
}
