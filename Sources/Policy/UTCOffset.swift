/// A fixed offset from UTC, which lists and the zones `Etc/GMT+N` and `Etc/GMT-N` have in place of
/// a place's time zone.
public struct UTCOffset: Equatable, Sendable {
    /// Offset in minutes east of UTC.
    public let minutes: Int

    /// Beginning of the zones' names, before their sign.
    private static let zonePrefix = "Etc/GMT"

    /// Creates the offset of `Etc/GMT+N` or `Etc/GMT-N`. The sign of such a name is reversed:
    /// `Etc/GMT-8` is 8 hours east of UTC.
    ///
    /// - Returns: nil for any other name, and for 0, whose sign means nothing.
    public init?(zone name: String) {
        guard name.hasPrefix(Self.zonePrefix) else { return nil }
        let rest = name.utf8.dropFirst(Self.zonePrefix.utf8.count)
        guard let sign = Self.sign(rest.first), let hours = Self.number(rest.dropFirst()),
            (1...14).contains(hours)
        else { return nil }
        minutes = -sign * hours * 60
    }

    /// Parses an offset as services export it: `-08:00`, `+0530`, `-8`, `UTC-8` or `GMT+5:30`, or a
    /// number of seconds east of UTC, such as `-28800`.
    ///
    /// - Returns: nil for any other text, and for an offset that no zone has.
    public init?(_ text: String) {
        var rest = text.utf8[...]
        let isNamed = text.hasPrefix("UTC") || text.hasPrefix("GMT")
        if isNamed { rest = rest.dropFirst(3) }
        let written = Self.sign(rest.first)
        if written != nil { rest = rest.dropFirst() } else if isNamed { return nil }
        // A number without a sign is not a number of hours.
        let clock = written == nil ? nil : Self.clockMinutes(rest)
        guard let total = clock ?? Self.minutes(ofSeconds: rest) else { return nil }
        let value = (written ?? 1) * total
        guard (-12 * 60...14 * 60).contains(value) else { return nil }
        minutes = value
    }

    /// Human-readable offset, such as `UTC-8` or `UTC+5:30`.
    public var text: String {
        let (hours, rest) = abs(minutes).quotientAndRemainder(dividingBy: 60)
        guard minutes != 0 else { return "UTC" }
        let minutesText = rest == 0 ? "" : rest < 10 ? ":0\(rest)" : ":\(rest)"
        return "UTC\(minutes < 0 ? "-" : "+")\(hours)\(minutesText)"
    }

    /// Name of the zone with this offset, such as `Etc/GMT+8` for UTC-8; nil if no zone's name
    /// states it.
    public var zoneName: String? {
        guard minutes % 60 == 0 else { return nil }
        let hours = abs(minutes) / 60
        return hours == 0 ? "UTC" : "\(Self.zonePrefix)\(minutes < 0 ? "+" : "-")\(hours)"
    }

    /// Minutes of `8`, `08`, `8:00`, `08:00` or `0800`; nil for any other text.
    private static func clockMinutes(_ text: Substring.UTF8View) -> Int? {
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        let (hours, rest): (Int?, Int?)
        if parts.count == 2, parts[1].count == 2 {
            (hours, rest) = (number(parts[0]), number(parts[1]))
        } else if parts.count == 1, text.count == 4 {
            (hours, rest) = (number(text.prefix(2)), number(text.suffix(2)))
        } else {
            (hours, rest) = (number(text), 0)
        }
        guard let hours, let rest, hours <= 14, rest < 60 else { return nil }
        return hours * 60 + rest
    }

    /// Minutes of a number of seconds, of which offsets have a multiple of 900.
    private static func minutes(ofSeconds text: Substring.UTF8View) -> Int? {
        guard let seconds = number(text), seconds > 0, seconds % 900 == 0 else { return nil }
        return seconds / 60
    }

    private static func sign(_ byte: UInt8?) -> Int? {
        byte == UInt8(ascii: "+") ? 1 : byte == UInt8(ascii: "-") ? -1 : nil
    }

    /// Value of one to five digits; nil for any other text.
    private static func number(_ digits: Substring.UTF8View) -> Int? {
        guard (1...5).contains(digits.count) else { return nil }
        var number = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return number
    }
}
