internal import BroadsideRing

/// The provider tokens that each source address uses. With this table, TooManyProviderTokenUpdates
/// applies to all connections of an address together.
struct TokenUpdateTable: Sendable {
    private struct Entry {
        var current: UInt64
        /// The previous token of the address. Its connections may still use it.
        var previous: UInt64?
        var changedNanoseconds: UInt64
    }

    /// Maximum number of addresses. A new address replaces the address whose last token change is
    /// the oldest.
    static let limit = 1024

    private var entries: [SocketAddress: Entry] = [:]

    /// Counts the use of a token. Returns false if the address changes its token too soon.
    ///
    /// - Parameters:
    ///   - fingerprint: The token's hash.
    ///   - address: The source address; its port is ignored.
    mutating func allows(
        _ fingerprint: UInt64, from address: SocketAddress, _ rule: TokenUpdateRule, now: UInt64
    ) -> Bool {
        var address = address
        address.port = 0
        guard var entry = entries[address] else {
            if entries.count == Self.limit { removeOldest() }
            assert(entries.count < Self.limit, "there is room for one more address")
            entries[address] = Entry(current: fingerprint, changedNanoseconds: now)
            return true
        }
        if entry.current == fingerprint || entry.previous == fingerprint { return true }
        guard now >= entry.changedNanoseconds + rule.intervalNanoseconds else { return false }
        entry = Entry(
            current: fingerprint, previous: entry.current, changedNanoseconds: now)
        entries[address] = entry
        return true
    }

    private mutating func removeOldest() {
        let oldest = entries.min { $0.value.changedNanoseconds < $1.value.changedNanoseconds }
        if let oldest { entries[oldest.key] = nil }
    }
}
