/// Returns a time in ISO 8601 with a resolution of one second, in UTC.
package func universalTime(_ milliseconds: UInt64) -> String {
    let seconds = milliseconds / 1000
    // Years begin in March, so that a leap day is the last day of its year; 400 years have 146,097
    // days.
    let days = seconds / 86_400 + 719_468
    let dayOfEra = days % 146_097
    let yearOfEra =
        (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let fromMarch = (5 * dayOfYear + 2) / 153
    let month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
    let year = yearOfEra + days / 146_097 * 400 + (month <= 2 ? 1 : 0)
    let day = dayOfYear - (153 * fromMarch + 2) / 5 + 1
    assert((1...12).contains(month) && (1...31).contains(day), "a date of the calendar")
    func padded(_ number: UInt64, _ digits: Int = 2) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
    return "\(padded(year, 4))-\(padded(month))-\(padded(day))T\(padded(seconds / 3_600 % 24)):"
        + "\(padded(seconds / 60 % 60)):\(padded(seconds % 60))Z"
}

/// Returns milliseconds since 1970 in ISO 8601 with milliseconds, in UTC.
package func timeText(_ milliseconds: UInt64) -> String {
    let fraction = String(milliseconds % 1000)
    return universalTime(milliseconds).dropLast() + "."
        + String(repeating: "0", count: 3 - fraction.count) + fraction + "Z"
}
