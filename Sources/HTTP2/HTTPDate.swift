/// Dates in header fields.
public enum HTTPDate {
    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7), the only form that senders
    /// may generate.
    ///
    /// - Returns: Seconds since 1970; nil if `text` is not such a date.
    public static func parse(_ text: RawSpan) -> UInt64? {
        // SAFETY: a span's bytes are set, and are copied before the closure ends.
        let string = unsafe text.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
        let parts = string.split(separator: " ")
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        guard parts.count == 6, parts[5] == "GMT", let day = UInt64(parts[1]), day >= 1, day <= 31,
            let month = months.firstIndex(of: String(parts[2])), let year = UInt64(parts[3]),
            year >= 1970, year < 10_000
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { UInt64($0) }
        guard clock.count == 3, clock[0] < 24, clock[1] < 60, clock[2] <= 60 else { return nil }
        // Days in the civil calendar, counted in years that start in March.
        let shifted = month < 2 ? year - 1 : year
        let monthFromMarch = UInt64((month + 10) % 12)
        let days =
            365 * shifted + shifted / 4 - shifted / 100 + shifted / 400
            + (153 * monthFromMarch + 2) / 5 + day - 1
        // 719,468 days from 1 March of year 0 to 1 January 1970.
        return (days - 719_468) * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    }
}
