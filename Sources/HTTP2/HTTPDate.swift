/// Dates in header fields.
public enum HTTPDate {
    /// Parses a date in one of the three forms that a recipient "MUST accept" (RFC 9110 section
    /// 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, and the obsolete `Sunday, 06-Nov-94 08:49:37 GMT`
    /// and `Sun Nov  6 08:49:37 1994`. A year of two digits is from 1970 to 2069.
    ///
    /// - Returns: Seconds since 1970; nil if `text` is not such a date.
    public static func parse(_ text: RawSpan) -> UInt64? {
        // SAFETY: a span's bytes are set, and are copied before the closure ends.
        let string = unsafe text.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
        guard let fields = fields(string.split(separator: " ")) else { return nil }
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        guard let day = UInt64(fields.day), day >= 1, day <= 31,
            let month = months.firstIndex(of: String(fields.month)),
            var year = UInt64(fields.year)
        else { return nil }
        if fields.year.utf8.count == 2 { year += year < 70 ? 2000 : 1900 }
        guard year >= 1970, year < 10_000 else { return nil }
        let clock = fields.clock.split(separator: ":").compactMap { UInt64($0) }
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

    /// Returns the fields of a date, whose form follows from the number of its parts.
    private static func fields(
        _ parts: [Substring]
    ) -> (day: Substring, month: Substring, year: Substring, clock: Substring)? {
        switch parts.count {
        case 6 where parts[5] == "GMT": return (parts[1], parts[2], parts[3], parts[4])
        case 5: return (parts[2], parts[1], parts[4], parts[3])
        case 4 where parts[3] == "GMT":
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false)
            guard date.count == 3, date[2].utf8.count == 2 else { return nil }
            return (date[0], date[1], date[2], parts[2])
        default: return nil
        }
    }
}
