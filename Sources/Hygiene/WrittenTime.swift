import BroadsideSupport

/// A time from a column of a list or from an option, as the range of instants that the text may
/// mean.
///
/// Surrounding blanks are allowed. Formats:
///
/// - a number of seconds, milliseconds, microseconds or nanoseconds since 1970, with an optional
///   fraction. Its size determines the unit: `1700000000`, `1700000000.25`, `1700000000123456`
/// - ISO 8601, and the formats of databases: `2023-11-14T22:13:20Z`, `2023-11-14
///   22:13:20.123456+00`, `2023-11-14 22:13:20 UTC`; with an offset (default: UTC)
/// - a date alone (also `20231114`), and `20231114221320`
///
/// When times are compared, the end of the range counts. For a date, this is the end of the day;
/// for a time without seconds, the end of the minute; for a time without a fraction, the end of the
/// second. The start of the range would make a token older than it may be.
public struct WrittenTime: Sendable, Equatable {
    /// Earliest time that the text can mean, in milliseconds since 1970, rounded down.
    public private(set) var first: Int64
    /// Latest time that the text can mean, in milliseconds since 1970, rounded down.
    public private(set) var last: Int64
    /// Whether the text is a date or a time of day without an offset from UTC, and is read as UTC.
    /// A number of seconds since 1970 needs no offset.
    public private(set) var lacksOffset = false
    /// Whether the text has a fraction of a millisecond, which `first` and `last` omit.
    private var isFiner = false

    /// Latest time that the text can mean, in milliseconds since 1970, rounded up. If the text has
    /// a fraction of a millisecond, this is the next whole millisecond.
    var lastRoundedUp: Int64 { isFiner ? last + 1 : last }

    /// End of the year 9999; larger numbers are not times.
    private static let maximum: Int64 = 253_402_300_799_999
    /// Smallest number read as milliseconds; as seconds it would be in the year 5138.
    private static let firstMilliseconds: Int64 = 100_000_000_000
    private static let firstMicroseconds: Int64 = 100_000_000_000_000
    private static let firstNanoseconds: Int64 = 100_000_000_000_000_000
    /// Milliseconds from the beginning to the last millisecond of a second, a minute and a day.
    private static let secondRest: Int64 = 999
    private static let minuteRest: Int64 = 59_999
    private static let dayRest: Int64 = 86_399_999

    /// Parses a text; nil if it is not a time.
    public init?(_ text: RawSpan) {
        var scanner = TimeScanner(text)
        guard !scanner.isAtEnd, let time = Self.number(&scanner) ?? Self.date(&scanner),
            time.last <= Self.maximum
        else { return nil }
        self = time
    }

    private init(
        _ first: Int64, lasting rest: Int64 = 0, isFiner: Bool = false, lacksOffset: Bool = false
    ) {
        assert(rest >= 0)
        assert(rest == 0 || !isFiner, "a time with a fraction is an instant")
        self.first = first
        self.isFiner = isFiner
        self.lacksOffset = lacksOffset
        last = first + rest
    }

    /// Parses a number. If it has nine digits or more, a fraction may follow.
    private static func number(_ scanner: inout TimeScanner) -> WrittenTime? {
        let start = scanner
        guard let (value, count) = scanner.digits() else { return nil }
        if scanner.isAtEnd {
            if let time = basic(value, digits: count) { return time }
            return since1970(value, fraction: nil)
        }
        // A number of nine digits or more is a time since 1973, not a version number or price.
        if count >= 9, scanner.take("."), let fraction = scanner.fraction(), scanner.isAtEnd {
            return since1970(value, fraction: fraction)
        }
        scanner = start
        return nil
    }

    /// - Parameter fraction: Fraction after the number; nil: none.
    private static func since1970(_ value: Int64, fraction: TimeFraction?) -> WrittenTime {
        let unitsPerMillisecond: Int64 =
            value >= firstNanoseconds ? 1_000_000 : value >= firstMicroseconds ? 1_000 : 1
        if value >= firstMilliseconds {
            return WrittenTime(
                value / unitsPerMillisecond,
                isFiner: value % unitsPerMillisecond > 0 || fraction?.isZero == false)
        }
        guard let fraction else { return WrittenTime(value * 1000, lasting: secondRest) }
        return WrittenTime(value * 1000 + fraction.thousandths, isFiner: fraction.isFiner)
    }

    /// Parses a date without separators, `YYYYMMDD` or `YYYYMMDDHHMMSS`. As a number of seconds or
    /// milliseconds since 1970, the same digits would mean a time before 1971 or after 2590.
    private static func basic(_ value: Int64, digits count: Int) -> WrittenTime? {
        guard count == 8 || count == 14 else { return nil }
        let date = count == 8 ? value : value / 1_000_000
        let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100)
        guard (1970...2199).contains(year), let days = days(year, month, day) else { return nil }
        if count == 8 {
            return WrittenTime(days * 86_400_000, lasting: dayRest, lacksOffset: true)
        }
        let (hour, minute, second) = (value / 10_000 % 100, value / 100 % 100, value % 100)
        guard hour <= 23, minute <= 59, second <= 60 else { return nil }
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
        return WrittenTime(seconds * 1000, lasting: secondRest, lacksOffset: true)
    }

    private static func date(_ scanner: inout TimeScanner) -> WrittenTime? {
        guard let year = scanner.number(ofDigits: 4), scanner.take("-"),
            let month = scanner.number(ofDigits: 2), scanner.take("-"),
            let day = scanner.number(ofDigits: 2), let days = days(year, month, day)
        else { return nil }
        if scanner.isAtEnd {
            return WrittenTime(days * 86_400_000, lasting: dayRest, lacksOffset: true)
        }
        guard scanner.take("T") || scanner.take("t") || scanner.take(" "),
            let hour = scanner.number(ofDigits: 2), hour <= 23, scanner.take(":"),
            let minute = scanner.number(ofDigits: 2), minute <= 59
        else { return nil }
        var time = ((days * 24 + hour) * 60 + minute) * 60_000
        var rest = minuteRest
        var isFiner = false
        if scanner.take(":") {
            // 60 is a leap second.
            guard let second = scanner.number(ofDigits: 2), second <= 60 else { return nil }
            time += second * 1000
            rest = secondRest
            if scanner.take(".") || scanner.take(",") {
                guard let fraction = scanner.fraction() else { return nil }
                time += fraction.thousandths
                isFiner = fraction.isFiner
                rest = 0
            }
        }
        let lacksOffset = scanner.isAtEnd
        guard let offset = offset(&scanner), scanner.isAtEnd else { return nil }
        return WrittenTime(
            time - offset, lasting: rest, isFiner: isFiner, lacksOffset: lacksOffset)
    }

    /// Parses the offset from UTC, in milliseconds; 0 if none is written. `UTC` may follow it or
    /// replace it.
    private static func offset(_ scanner: inout TimeScanner) -> Int64? {
        // Formats of databases: `2023-11-14 22:13:20 +00`, `2023-11-14 22:13:20 +0000 UTC`.
        _ = scanner.take(" ")
        if scanner.isAtEnd || scanner.take("Z") || scanner.take("z") || scanner.takeUTC() {
            return 0
        }
        let isEast = scanner.take("+")
        guard isEast || scanner.take("-"), let hours = scanner.number(ofDigits: 2), hours <= 23
        else { return nil }
        var minutes: Int64 = 0
        if !scanner.isAtEnd, !scanner.isAtBlank {
            _ = scanner.take(":")
            guard let value = scanner.number(ofDigits: 2), value <= 59 else { return nil }
            minutes = value
        }
        let offset = (isEast ? 1 : -1) * (hours * 60 + minutes) * 60_000
        if scanner.take(" ") { guard offset == 0, scanner.takeUTC() else { return nil } }
        return offset
    }

    /// Days from 1970-01-01 to a date of the Gregorian calendar; nil if there is no such date.
    ///
    /// Years are counted from March, so that a leap day is the last day of a year.
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
        // 719,468 days from 0000-03-01 to 1970-01-01.
        return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear
            - 719_468
    }
}

/// Digits after the point of a number.
private struct TimeFraction {
    /// The fraction in thousandths of its unit, rounded down.
    var thousandths: Int64
    /// Whether the fraction is larger than `thousandths`.
    var isFiner: Bool

    var isZero: Bool { thousandths == 0 && !isFiner }
}

/// Cursor over the bytes of a time.
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

    /// Consumes a character if it comes next.
    mutating func take(_ character: Unicode.Scalar) -> Bool {
        assert(offset <= end)
        guard offset < end, text.byte(at: offset) == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    /// Consumes a number of exactly `count` digits.
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

    /// Whether a blank comes next.
    var isAtBlank: Bool { offset < end && text.byte(at: offset) == UInt8(ascii: " ") }

    /// Consumes `UTC` or `GMT`.
    mutating func takeUTC() -> Bool {
        let start = offset
        if take("U") || take("u"), take("T") || take("t"), take("C") || take("c") { return true }
        offset = start
        if take("G"), take("M"), take("T") { return true }
        offset = start
        return false
    }

    /// Consumes one or more digits; returns their value and number, or nil if the value is larger
    /// than any time.
    mutating func digits() -> (value: Int64, count: Int)? {
        var count = 0
        while offset + count < end, text.byte(at: offset + count) &- UInt8(ascii: "0") <= 9 {
            count += 1
        }
        // Nanoseconds have 19 digits; any 18 digits fit.
        guard count > 0, count <= 19, var value = number(ofDigits: min(count, 18)) else {
            return nil
        }
        if count == 19 {
            guard let last = number(ofDigits: 1) else { return nil }
            let (tens, isOver) = value.multipliedReportingOverflow(by: 10)
            let (sum, isOverToo) = tens.addingReportingOverflow(last)
            if isOver || isOverToo { return nil }
            value = sum
        }
        return (value, count)
    }

    /// Consumes the digits of a fraction; nil if there are none.
    mutating func fraction() -> TimeFraction? {
        var fraction = TimeFraction(thousandths: 0, isFiner: false)
        var count = 0
        while let digit = number(ofDigits: 1) {
            if count < 3 {
                fraction.thousandths = fraction.thousandths * 10 + digit
            } else if digit > 0 {
                fraction.isFiner = true
            }
            count += 1
        }
        guard count > 0 else { return nil }
        for _ in count..<max(count, 3) { fraction.thousandths *= 10 }
        assert(fraction.thousandths < 1_000, "a fraction is less than its unit")
        return fraction
    }
}

private func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
}
