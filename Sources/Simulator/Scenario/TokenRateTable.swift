internal import BroadsideSupport

/// The number of recent requests of each device token, for "TooManyRequests".
///
/// The number of slots is fixed, so that memory never grows. Two tokens with the same slot replace
/// each other, so that a request beyond the limit is occasionally accepted.
struct TokenRateTable {
    private struct Slot {
        var fingerprint: UInt64 = 0
        var start: UInt64 = 0
        var count: UInt32 = 0
    }

    /// Number of slots.
    private static let slots = 1 << 16
    /// The slots, allocated when a scenario first uses the table.
    private var slots: [Slot] = []

    /// Counts a request. Returns false if it exceeds the rate. The time window starts with the
    /// first request in it.
    mutating func allows(_ fingerprint: UInt64, _ rate: TokenRate, now: UInt64) -> Bool {
        if slots.isEmpty { slots = Array(repeating: Slot(), count: Self.slots) }
        let index = Int(splitmix64(fingerprint) % UInt64(Self.slots))
        if slots[index].fingerprint != fingerprint
            || now >= slots[index].start + rate.intervalNanoseconds
        {
            slots[index] = Slot(fingerprint: fingerprint, start: now, count: 0)
        }
        guard slots[index].count < rate.requests else { return false }
        slots[index].count += 1
        return true
    }
}
