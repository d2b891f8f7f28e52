internal import BroadsideSupport

/// How many requests each device token had lately, for "TooManyRequests".
///
/// A fixed number of places: two tokens that share one push each other out, so that now and then a
/// request too many passes, and memory never grows.
struct TokenRateTable {
    private struct Slot {
        var fingerprint: UInt64 = 0
        var start: UInt64 = 0
        var count: UInt32 = 0
    }

    /// Tokens that are told apart at a time.
    private static let slots = 1 << 16
    /// Made when a scenario first asks.
    private var slots: [Slot] = []

    /// Counts a request; false where it is one too many. The window starts with its first request.
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
