internal import BroadsideHPACK

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
struct ResponseInflater: ~Copyable {
    private var inflater: HeaderInflater?
    /// The table held an entry once: from then on every block goes through the inflater.
    private(set) var isActive = false

    init() { inflater = nil }

    /// Inflates all of `block` into `headers`. False: the tables no longer agree.
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
