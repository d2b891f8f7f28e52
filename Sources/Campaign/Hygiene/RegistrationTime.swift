import Support

/// When a device registered its token, as a column of a list says it.
///
/// Three forms, blanks round them allowed:
///
/// - Unix seconds, with a fraction if need be: `1700000000`, `1700000000.25`
/// - Unix milliseconds: from 100,000,000,000 on, which as seconds would be the year 5138
/// - ISO 8601: `2023-11-14T22:13:20Z`, with a fraction, an offset (none: UTC), a blank for the `T`;
///   a date alone (also `20231114`)
///
/// A time counts as the end of what is written: a date as the end of the day, a time without seconds
/// as the end of the minute, one without a fraction as the end of the second. What may have been
/// registered later within it must not count as older.
///
/// Anything else is unreadable, which keeps a row: what cannot be read must not cost a token.
public enum RegistrationTime {
    /// The end of the year 9999: what lies beyond is not time, but perhaps microseconds.
    private static let maximum: Int64 = 253_402_300_799_999
    private static let firstMilliseconds: Int64 = 100_000_000_000
    /// From a second's and a minute's beginning to their last millisecond.
    private static let secondRest: Int64 = 999
    private static let minuteRest: Int64 = 59_999

    /// Milliseconds since 1970 of a column's text; nil where it is unreadable.
    public static func milliseconds(_ text: RawSpan) -> Int64? {
        var scanner = TimeScanner(text)
        guard !scanner.isAtEnd, let time = number(&scanner) ?? date(&scanner) else { return nil }
        return time <= maximum ? time : nil
    }

    /// Digits alone, with a fraction where they are seconds.
    private static func number(_ scanner: inout TimeScanner) -> Int64? {
        let start = scanner
        guard let (value, count) = scanner.digits(upTo: 18) else { return nil }
        if scanner.isAtEnd {
            if count == 8, let day = basicDate(value) { return day }
            return value < firstMilliseconds ? value * 1000 + secondRest : value
        }
        // Nine digits or more: a time since 1973 and no version number or price.
        if count >= 9, value < firstMilliseconds, scanner.take("."),
            let fraction = scanner.fractionMilliseconds(), scanner.isAtEnd
        {
            return value * 1000 + fraction
        }
        scanner = start
        return nil
    }

    /// A date without anything between its parts; as seconds it would lie before 1974.
    private static func basicDate(_ value: Int64) -> Int64? {
        let (year, month, day) = (value / 10_000, value / 100 % 100, value % 100)
        guard (1970...2199).contains(year), let days = days(year, month, day) else { return nil }
        return endOfDay(days)
    }

    private static func endOfDay(_ days: Int64) -> Int64 { (days + 1) * 86_400_000 - 1 }

    private static func date(_ scanner: inout TimeScanner) -> Int64? {
        guard let year = scanner.number(ofDigits: 4), scanner.take("-"),
            let month = scanner.number(ofDigits: 2), scanner.take("-"),
            let day = scanner.number(ofDigits: 2), let days = days(year, month, day)
        else { return nil }
        if scanner.isAtEnd { return endOfDay(days) }
        guard scanner.take("T") || scanner.take("t") || scanner.take(" "),
            let hour = scanner.number(ofDigits: 2), hour <= 23, scanner.take(":"),
            let minute = scanner.number(ofDigits: 2), minute <= 59
        else { return nil }
        var time = ((days * 24 + hour) * 60 + minute) * 60_000
        if scanner.take(":") {
            // 60 is a leap second.
            guard let second = scanner.number(ofDigits: 2), second <= 60 else { return nil }
            time += second * 1000
            if scanner.take(".") || scanner.take(",") {
                guard let fraction = scanner.fractionMilliseconds() else { return nil }
                time += fraction
            } else {
                time += secondRest
            }
        } else {
            time += minuteRest
        }
        guard let offset = offset(&scanner), scanner.isAtEnd else { return nil }
        return time - offset
    }

    /// The offset from UTC in milliseconds; 0 where none is written.
    private static func offset(_ scanner: inout TimeScanner) -> Int64? {
        // As PostgreSQL prints it: `2023-11-14 22:13:20 +00`.
        _ = scanner.take(" ")
        if scanner.isAtEnd || scanner.take("Z") || scanner.take("z") { return 0 }
        let isEast = scanner.take("+")
        guard isEast || scanner.take("-"), let hours = scanner.number(ofDigits: 2), hours <= 23
        else { return nil }
        var minutes: Int64 = 0
        if !scanner.isAtEnd {
            _ = scanner.take(":")
            guard let value = scanner.number(ofDigits: 2), value <= 59 else { return nil }
            minutes = value
        }
        return (isEast ? 1 : -1) * (hours * 60 + minutes) * 60_000
    }

    /// Days from 1970-01-01 to a date of the Gregorian calendar; nil where there is no such date.
    ///
    /// Years are counted from March on, so that a leap day is a year's last day.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
        guard (1...12).contains(month), day >= 1 else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length: Int64 =
            switch month {
            case 2: isLeap ? 29 : 28
            case 4, 6, 9, 11: 30
            default: 31
            }
        guard day <= length else { return nil }
        let marchYear = month > 2 ? year : year - 1
        let monthsSinceMarch = (month + 9) % 12
        let dayOfYear = (153 * monthsSinceMarch + 2) / 5 + day - 1
        // 719,468 days lie between 0000-03-01 and 1970-01-01.
        return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear
            - 719_468
    }
}

/// Goes through the bytes of a time.
private struct TimeScanner: ~Escapable {
    private let text: RawSpan
    private var offset = 0
    private var end: Int

    @_lifetime(copy text)
    init(_ text: RawSpan) {
        self.text = text
        end = text.byteCount
        while offset < end, isBlank(text.byte(at: offset)) { offset += 1 }
        while end > offset, isBlank(text.byte(at: end - 1)) { end -= 1 }
    }

    var isAtEnd: Bool { offset == end }

    /// Takes one character if it comes next.
    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard offset < end, text.byte(at: offset) == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    /// A number of exactly so many digits.
    mutating func number(ofDigits count: Int) -> Int64? {
        guard end - offset >= count else { return nil }
        var value: Int64 = 0
        for place in offset..<(offset + count) {
            let digit = text.byte(at: place) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value * 10 + Int64(digit)
        }
        offset += count
        return value
    }

    /// A number of one digit or more, and how many they are.
    mutating func digits(upTo limit: Int) -> (value: Int64, count: Int)? {
        var count = 0
        while offset + count < end, text.byte(at: offset + count) &- UInt8(ascii: "0") <= 9 {
            count += 1
        }
        guard count > 0, count <= limit, let value = number(ofDigits: count) else { return nil }
        return (value, count)
    }

    /// The digits of a fraction of a second, as milliseconds, what is finer left out.
    mutating func fractionMilliseconds() -> Int64? {
        var value: Int64 = 0
        var count = 0
        while let digit = number(ofDigits: 1) {
            if count < 3 { value = value * 10 + digit }
            count += 1
        }
        guard count > 0 else { return nil }
        for _ in count..<max(count, 3) { value *= 10 }
        return value
    }
}

private func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
}
