/// Returns a whole number with a comma after every three digits.
package func grouped(_ value: UInt64) -> String {
    let digits = Array(String(value).utf8)
    var text: [UInt8] = []
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text.append(UInt8(ascii: ",")) }
        text.append(digit)
    }
    assert(text.count == digits.count + (digits.count - 1) / 3, "one comma per three digits")
    return String(decoding: text, as: UTF8.self)
}

package func grouped(_ value: Int) -> String { grouped(UInt64(max(0, value))) }

/// Returns a number with a noun, such as `1 row` and `2,000 rows`.
///
/// - Parameter noun: Noun whose plural ends in s.
package func counted(_ count: UInt64, _ noun: String) -> String {
    "\(grouped(count)) \(noun)\(count == 1 ? "" : "s")"
}

package func counted(_ count: Int, _ noun: String) -> String {
    counted(UInt64(max(0, count)), noun)
}

/// Returns a measured rate with a precision that fits its magnitude.
package func rateText(_ rate: Double) -> String {
    if rate < 0.1 && rate > 0 { return rateLimitText(rate) }
    return rate < 10 && rate > 0 ? decimal(rate, places: 1) : grouped(wholeNumber(rate))
}

/// Returns a rate limit exactly: limits have at most three decimals.
package func rateLimitText(_ rate: Double) -> String {
    let whole = wholeNumber(rate.rounded(.down))
    let thousandths = wholeNumber((rate - rate.rounded(.down)) * 1000)
    guard thousandths > 0 else { return grouped(whole) }
    guard thousandths < 1000 else { return grouped(whole + 1) }
    var fraction = decimal(Double(thousandths) / 1000, places: 3).dropFirst()
    while fraction.last == "0" { fraction.removeLast() }
    return grouped(whole) + fraction
}

/// Returns the nearest integer, clamped to the integer range; 0 for a value that is not a number.
package func wholeNumber(_ value: Double) -> Int {
    guard !value.isNaN else { return 0 }
    return Int(exactly: value.rounded()) ?? (value < 0 ? -.max : .max)
}

/// Returns nanoseconds as milliseconds or seconds, with at most three digits.
package func latencyText(_ nanoseconds: UInt64) -> String {
    let milliseconds = Double(nanoseconds) / 1e6
    switch milliseconds {
    case ..<1: return decimal(milliseconds, places: 2) + " ms"
    case ..<10: return decimal(milliseconds, places: 1) + " ms"
    case ..<1000: return decimal(milliseconds, places: 0) + " ms"
    default: return decimal(milliseconds / 1000, places: milliseconds < 10_000 ? 1 : 0) + " s"
    }
}

/// Returns seconds in readable form: `45 s`, `3 m 20 s`, `2 h 05 m`, `3 d 04 h`.
package func durationText(_ seconds: Double) -> String {
    let whole = UInt64(min(max(0, seconds.rounded()), 1e9))
    func two(_ value: UInt64) -> String { value < 10 ? "0\(value)" : "\(value)" }
    switch whole {
    case ..<60: return "\(whole) s"
    case ..<3600: return "\(whole / 60) m \(two(whole % 60)) s"
    case ..<86_400: return "\(whole / 3600) h \(two(whole / 60 % 60)) m"
    default: return "\(whole / 86_400) d \(two(whole / 3600 % 24)) h"
    }
}

/// Returns the nanoseconds of `500ms`, `30s`, `15m`, `2h` or `1d`; nil for anything else.
package func parseDuration(_ text: String) -> UInt64? {
    let units: [(String, UInt64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000),
        ("h", 3_600_000_000_000), ("d", 86_400_000_000_000),
    ]
    for (suffix, scale) in units where text.hasSuffix(suffix) {
        let digits = text.dropLast(suffix.count)
        guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            let value = UInt64(digits)
        else { continue }
        let (product, overflow) = value.multipliedReportingOverflow(by: scale)
        return overflow ? nil : product
    }
    return nil
}

/// Returns whether a text is a duration whose nanoseconds exceed 64 bits. The longest duration in
/// whole days is 213503d.
package func isTooLongDuration(_ text: String) -> Bool {
    let unit = text.drop { $0.isASCII && $0.isNumber }
    return unit.count < text.count && parseDuration(text) == nil && parseDuration("1\(unit)") != nil
}

/// Returns a share as whole percent, rounded down, so that only a complete share is `100%`.
package func percentText(_ share: Double) -> String {
    share >= 1 ? "100%" : "\(wholeNumber((share * 100).rounded(.down)))%"
}

/// Returns a number as 16 lower-case hexadecimal digits.
package func hexadecimal(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}

/// Parses decimal digits with an optional point: no sign, no exponent, neither `0x10` nor `inf`.
package func decimalNumber(_ text: String) -> Double? {
    let digits = text.utf8.filter { $0 != UInt8(ascii: ".") }
    guard text.utf8.count - digits.count <= 1, !digits.isEmpty,
        digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Double(text)
}

/// Returns a percentage without its percent sign: as a whole number, or with one decimal.
package func percentNumber(_ value: Double) -> String {
    decimal(value, places: value == value.rounded() ? 0 : 1)
}

/// Returns a number with a fixed number of decimals.
package func decimal(_ value: Double, places: Int) -> String {
    assert((0...15).contains(places), "a Double has no more digits")
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = wholeNumber(value * scale)
    guard places > 0 else { return "\(scaled)" }
    let fraction = String(abs(scaled) % Int(scale))
    let sign = scaled < 0 ? "-" : ""
    return sign + "\(abs(scaled) / Int(scale))."
        + String(repeating: "0", count: places - fraction.count) + fraction
}

/// Returns two lower-case hexadecimal digits per byte.
package func hexadecimal(_ bytes: [UInt8]) -> String {
    var text = ""
    for byte in bytes {
        text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
    assert(text.utf8.count == 2 * bytes.count, "two digits per byte")
    return text
}
