internal import BroadsideSupport

/// How many requests each device token had lately, for "TooManyRequests".
///
/// A fixed number of places: two tokens that share one push each other out, so that now and then a
/// request too many passes, and memory never grows.
struct TokenRateTable {
    private struct Place {
        var mark: UInt64 = 0
        var start: UInt64 = 0
        var count: UInt32 = 0
    }

    /// Tokens that are told apart at a time.
    private static let places = 1 << 16
    /// Made when a scenario first asks.
    private var places: [Place] = []

    /// Counts a request; false where it is one too many. The window starts with its first request.
    mutating func allows(_ mark: UInt64, _ rate: TokenRate, now: UInt64) -> Bool {
        if places.isEmpty { places = Array(repeating: Place(), count: Self.places) }
        let index = Int(splitmix64(mark) % UInt64(Self.places))
        if places[index].mark != mark
            || now >= places[index].start + rate.intervalNanoseconds
        {
            places[index] = Place(mark: mark, start: now, count: 0)
        }
        guard places[index].count < rate.requests else { return false }
        places[index].count += 1
        return true
    }
}
