/// Offsets of a time zone that repeat each year, in the form of POSIX's `TZ`:
/// `CET-1CEST,M3.5.0,M10.5.0/3`.
struct YearlyRule: Hashable, Sendable {
    /// Day of a year on which the clock changes.
    private enum Day: Hashable {
        /// Day of the year from 1 to 365; February 29 is not counted.
        case julian(Int64)
        /// Day of the year from 0 to 365; February 29 is counted.
        case zeroBased(Int64)
        /// Weekday (0 for Sunday) of a week (5 for the last one) of a month.
        case month(Int64, week: Int64, weekday: Int64)
    }

    /// A change of the clock: a day, and the number of seconds from the start of that day to the
    /// change. The number may be negative or exceed a day.
    private struct Change: Hashable {
        var day: Day
        var second: Int64

        /// Local time of the change in a year, in seconds since 1970 as if it were UTC.
        func local(in year: Int64) -> Int64 {
            let january = CalendarDate(year: year, month: 1, day: 1).days
            let days: Int64
            switch day {
            case .julian(let number):
                let isAfterLeapDay =
                    number >= 60
                    && CalendarDate(year: year, month: 3, day: 1).days - january == 60
                days = january + number - 1 + (isAfterLeapDay ? 1 : 0)
            case .zeroBased(let number): days = january + number
            case .month(let month, let week, let weekday):
                let first = CalendarDate(year: year, month: month, day: 1)
                let end =
                    month == 12
                    ? CalendarDate(year: year + 1, month: 1, day: 1)
                    : CalendarDate(year: year, month: month + 1, day: 1)
                var day = first.days + (weekday - first.weekday + 7) % 7 + (week - 1) * 7
                while day >= end.days { day -= 7 }
                assert(day >= first.days && day < end.days, "the day is in its month")
                assert(
                    CalendarDate(days: day).weekday == weekday, "the day has the rule's weekday")
                days = day
            }
            return days * CalendarDate.secondsPerDay + second
        }
    }

    private var standardOffset: Int64
    /// Summer time: its offset, its start and its end; nil: there is none.
    private var summer: Summer?

    private struct Summer: Hashable {
        var offset: Int64
        var start: Change
        var end: Change
    }

    /// Reads a rule; nil if the text is not a rule.
    init?(_ text: ArraySlice<UInt8>) {
        var reader = RuleReader(text)
        guard reader.name(), let west = reader.duration() else { return nil }
        standardOffset = -west
        if !reader.isAtEnd {
            guard reader.name() else { return nil }
            var offset = standardOffset + 3_600
            if !reader.isAtEnd, reader.peek != UInt8(ascii: ",") {
                guard let west = reader.duration() else { return nil }
                offset = -west
            }
            guard let start = Self.change(&reader), let end = Self.change(&reader), reader.isAtEnd
            else { return nil }
            summer = Summer(offset: offset, start: start, end: end)
        }
        guard abs(standardOffset) < TimeZoneRules.offsetLimit,
            abs(summer?.offset ?? 0) < TimeZoneRules.offsetLimit
        else { return nil }
    }

    private static func change(_ reader: inout RuleReader) -> Change? {
        guard reader.take(","), let day = day(&reader) else { return nil }
        guard reader.take("/") else { return Change(day: day, second: 7_200) }
        return reader.duration().map { Change(day: day, second: $0) }
    }

    private static func day(_ reader: inout RuleReader) -> Day? {
        if reader.take("M") {
            guard let month = reader.number(1...12), reader.take("."),
                let week = reader.number(1...5), reader.take("."),
                let weekday = reader.number(0...6)
            else { return nil }
            return .month(month, week: week, weekday: weekday)
        }
        if reader.take("J") { return reader.number(1...365).map { .julian($0) } }
        return reader.number(0...365).map { .zeroBased($0) }
    }

    /// Start and end of summer time in a year, in seconds since 1970.
    private func changes(of summer: Summer, in year: Int64) -> (start: Int64, end: Int64) {
        (
            summer.start.local(in: year) - standardOffset,
            summer.end.local(in: year) - summer.offset
        )
    }

    private func year(at time: Int64) -> Int64 {
        CalendarDate(ofLocal: time + standardOffset).fields.year
    }

    /// Offset at a time, in seconds east of UTC.
    func offset(at time: Int64) -> Int64 {
        guard let summer else { return standardOffset }
        let (start, end) = changes(of: summer, in: year(at: time))
        let isSummer =
            start < end ? time >= start && time < end : time >= start || time < end
        return isSummer ? summer.offset : standardOffset
    }

    /// Time of the next change; nil if there is none.
    func nextChange(after time: Int64) -> Int64? {
        guard let summer else { return nil }
        let year = year(at: time)
        return (year - 1...year + 1).flatMap { year in
            let (start, end) = changes(of: summer, in: year)
            return [start, end]
        }.filter { $0 > time }.min()
    }
}

/// Reader of a rule's text.
private struct RuleReader {
    private var text: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) { self.text = text }

    var isAtEnd: Bool { text.isEmpty }
    var peek: UInt8? { text.first }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard text.first == UInt8(ascii: character) else { return false }
        text.removeFirst()
        return true
    }

    /// Reads a zone's abbreviation: letters, or anything in angle brackets.
    mutating func name() -> Bool {
        if take("<") {
            guard let end = text.firstIndex(of: UInt8(ascii: ">")) else { return false }
            text = text[(end + 1)...]
            return true
        }
        let count = text.prefix { (0x61...0x7A).contains($0 | 0x20) }.count
        text = text.dropFirst(count)
        return count >= 3
    }

    /// Reads a number without a sign.
    mutating func number(_ range: ClosedRange<Int64>) -> Int64? {
        let digits = text.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty, digits.count <= 4 else { return nil }
        text = text.dropFirst(digits.count)
        let number = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        return range.contains(number) ? number : nil
    }

    /// Reads hours, minutes and seconds, with a sign: `-1`, `+5:30`, `167:00:00`.
    mutating func duration() -> Int64? {
        let isNegative = take("-")
        if !isNegative { _ = take("+") }
        guard let hours = number(0...167) else { return nil }
        var seconds = hours * 3_600
        if take(":") {
            guard let minutes = number(0...59) else { return nil }
            seconds += minutes * 60
            if take(":") {
                guard let more = number(0...59) else { return nil }
                seconds += more
            }
        }
        return isNegative ? -seconds : seconds
    }
}
