/// A date of the Gregorian calendar, without a time zone.
public struct CalendarDate: Hashable, Comparable, Sendable {
    /// Days since 1970-01-01.
    public let days: Int64

    /// Seconds of a day without a clock change.
    static let secondsPerDay: Int64 = 86_400
    /// Dates that a campaign may name, in days since 1970-01-01: the years 1970 to 9999.
    static let named: ClosedRange<Int64> = 0...2_932_896

    /// Creates a date from the number of days since 1970-01-01.
    public init(days: Int64) { self.days = days }

    /// Creates a date from year, month and day. A day beyond the month's end is a day of the next
    /// month.
    init(year: Int64, month: Int64, day: Int64) {
        // Years begin in March, so that a leap day is the last day of its year; 400 years have
        // 146,097 days.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        assert((0...146_097 + 31).contains(dayOfEra), "a day of its 400 years")
        days = era * 146_097 + dayOfEra - 719_468
    }

    /// Parses `2026-11-28`; nil for anything else, and for a date that does not exist.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count == 4, parts[1].count == 2, parts[2].count == 2,
            let year = Self.number(parts[0]), let month = Self.number(parts[1]),
            let day = Self.number(parts[2]), (1...12).contains(month), day >= 1
        else { return nil }
        let date = CalendarDate(year: year, month: month, day: day)
        guard date.fields == (year, month, day), Self.named.contains(date.days) else { return nil }
        self = date
    }

    private static func number(_ digits: Substring.UTF8View) -> Int64? {
        var number: Int64 = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return number
    }

    /// Creates the date that a local clock shows. `seconds` is the time on that clock, in seconds
    /// since 1970 as if it were UTC.
    init(ofLocal seconds: Int64) {
        days = (seconds - Self.secondOfDay(seconds)) / Self.secondsPerDay
    }

    /// Seconds since midnight on a local clock. `local` is the time on that clock, in seconds since
    /// 1970 as if it were UTC.
    static func secondOfDay(_ local: Int64) -> Int64 {
        let rest = local % secondsPerDay
        return rest < 0 ? rest + secondsPerDay : rest
    }

    /// Year, month and day.
    var fields: (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let fromMarch = (5 * dayOfYear + 2) / 153
        let month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
            dayOfYear - (153 * fromMarch + 2) / 5 + 1
        )
    }

    /// Whether the date has ended in all time zones at `seconds`, a time in seconds since 1970. In
    /// the last zone, the date ends 12 hours later than in UTC.
    public func isOverEverywhere(at seconds: UInt64) -> Bool {
        Int64(clamping: seconds) >= (days + 1) * Self.secondsPerDay + Self.secondsPerDay / 2
    }

    /// The next date.
    var next: CalendarDate { CalendarDate(days: days + 1) }

    /// Day of the week, from 0 for Sunday.
    var weekday: Int64 {
        let rest = (days + 4) % 7
        return rest < 0 ? rest + 7 : rest
    }

    /// Local midnight at the start of the date, in seconds since 1970 as if it were UTC.
    var localMidnight: Int64 { days * Self.secondsPerDay }

    /// Text such as `2026-11-28`.
    public var text: String {
        let (year, month, day) = fields
        func padded(_ number: Int64, _ count: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    }

    /// Whether the left date is earlier.
    public static func < (left: CalendarDate, right: CalendarDate) -> Bool {
        left.days < right.days
    }
}

/// A time of day, to the minute.
public struct TimeOfDay: Hashable, Sendable {
    /// Minutes since midnight, 0 to 1,439.
    public let minutes: Int64

    /// Parses `09:30`; nil for anything else.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.count == 2 }),
            parts.allSatisfy({ part in part.allSatisfy { (0x30...0x39).contains($0) } }),
            let hours = Int64(String(parts[0]) ?? ""), let minutes = Int64(String(parts[1]) ?? ""),
            hours < 24, minutes < 60
        else { return nil }
        self.minutes = hours * 60 + minutes
    }

    /// Seconds since midnight.
    var seconds: Int64 { minutes * 60 }

    /// Text such as `09:30`.
    public var text: String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minutes / 60)):\(two(minutes % 60))"
    }
}

/// A period of each day, from `start` up to `end`, which may be on the next day.
public struct DayPeriod: Hashable, Sendable {
    /// First minute of the period.
    public let start: TimeOfDay
    /// First minute after the period.
    public let end: TimeOfDay

    /// Parses `22:00-08:00`; nil for anything else, and for a period that is empty or a whole day.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 2, let start = TimeOfDay(String(parts[0]) ?? ""),
            let end = TimeOfDay(String(parts[1]) ?? ""), start != end
        else { return nil }
        self.start = start
        self.end = end
    }

    /// Whether a time of day is in the period.
    public func contains(_ time: TimeOfDay) -> Bool { contains(second: time.seconds) }

    /// Whether a second of the day is in the period.
    func contains(second: Int64) -> Bool {
        start.minutes < end.minutes
            ? second >= start.seconds && second < end.seconds
            : second >= start.seconds || second < end.seconds
    }

    /// Text such as `22:00-08:00`.
    public var text: String { "\(start.text)-\(end.text)" }
}
