internal import BroadsideSupport

/// The recent request count of each device token, for "TooManyRequests".
///
/// A fixed number of slots: two tokens with the same slot replace each other, so an excess request
/// is occasionally accepted, but memory never grows.
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

    /// Counts a request; returns false if it exceeds the rate. The window starts with its first
    /// request.
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
