internal import BroadsideHPACK

/// Header blocks that use the dynamic table, decoded by nghttp2.
///
/// We announce a SETTINGS_HEADER_TABLE_SIZE of 0, but a server may ignore it. Therefore the decoder
/// always has a table of 4,096 bytes: the size "that both have to assume" before any other is known
/// (RFC 9113 section 6.5.2).
///
///     blocks without insertions --> not passed: they leave the table as it is
///     blocks with a size update --> passed
///     the first insertion       --> passed, and so are all later blocks of the connection
///
/// The first block that is passed creates the decoder. Until then, the table is empty.
///
/// The blocks that are not passed change nothing, so the decoder always has the same table as the
/// server. A server that obeys our setting confirms the setting with a size update to 0 in the
/// first block. Later insertions are then evicted at once (RFC 7541 section 4.4). A server that
/// obeys without a size update refers to no entry.
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
