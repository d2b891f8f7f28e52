internal import BroadsidePolicy
import BroadsideSupport
internal import BroadsideTLS

/// A calendar day, such as `2026-11-20`. A night's ledger is named after the night's day.
struct NightDate: Hashable, Comparable, Sendable, CustomStringConvertible {
    let description: String

    /// Parses a date; nil if the text is not a valid date.
    ///
    /// - Parameter text: Ten characters, such as `2026-11-20`.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-") else {
            return nil
        }
        guard let year = Self.number(bytes[..<4]), let month = Self.number(bytes[5..<7]),
            let day = Self.number(bytes[8...]), year >= 1970, (1...12).contains(month),
            (1...Self.dayCount(year: year, month: month)).contains(day)
        else { return nil }
        description = text
    }

    /// Whether a campaign's name contains a date, such as `News 2026-11-20`, `news_20.11.2026` or
    /// `news-20261120`.
    static func isIn(name: String) -> Bool {
        let dash = UInt8(ascii: "-")
        let bytes = name.utf8.map {
            [UInt8(ascii: "."), UInt8(ascii: "_")].contains($0) ? dash : $0
        }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        for word in bytes.split(whereSeparator: { $0 != dash && !digits.contains($0) }) {
            let numbers = word.split(separator: dash).map { String(decoding: $0, as: UTF8.self) }
            for (index, number) in numbers.enumerated() {
                if number.utf8.count == 8 {
                    let month = number.dropFirst(4).prefix(2)
                    let date = NightDate("\(number.prefix(4))-\(month)-\(number.suffix(2))")
                    if date != nil { return true }
                }
                let three = numbers[index...].prefix(3)
                let orders = [
                    three.joined(separator: "-"), three.reversed().joined(separator: "-"),
                ]
                if orders.contains(where: { NightDate($0) != nil }) { return true }
            }
        }
        return false
    }

    /// Local calendar day of a time; nil if it can't be determined.
    init?(localDayOf milliseconds: UInt64) {
        guard let text = localDate(milliseconds) else { return nil }
        self.init(text)
    }

    /// Number of days from another date to this one; 0 if that date is later.
    func days(since other: NightDate) -> UInt64 {
        guard let first = CalendarDate(other.description), let last = CalendarDate(description)
        else { return 0 }
        return UInt64(max(0, last.days - first.days))
    }

    /// The day before; nil before 1970.
    var dayBefore: NightDate? {
        CalendarDate(description).flatMap { NightDate(CalendarDate(days: $0.days - 1).text) }
    }

    /// Number of this night's campaign, if its parts have the option `--campaign-id`: the first 8
    /// bytes of the SHA-256 of the ID's 16 digits, a colon and the date. It is the same on all
    /// machines, and differs from night to night, so that no apns-id occurs twice.
    func campaignNumber(of id: UInt64) -> UInt64 {
        let digest = sha256(Array("\(hexadecimal(id)):\(description)".utf8))
        return digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        var value = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            value = value * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return value
    }

    private static func dayCount(year: Int, month: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    static func < (first: NightDate, second: NightDate) -> Bool {
        first.description.utf8.lexicographicallyPrecedes(second.description.utf8)
    }
}
