import BroadsideSupport
import Foundation
import Testing

/// Numbers as people and machines read them; Foundation writes the same in its own way.
@Suite struct NumbersTests {
    private var random = SystemRandomNumberGenerator()

    @Test mutating func `Whole numbers have a comma after every three digits`() {
        let formatter = NumberFormatter()
        formatter.locale = Locale(identifier: "en_US")
        formatter.numberStyle = .decimal
        for bits in 0..<63 {
            let value = UInt64.random(in: 0...(1 << UInt64(bits)), using: &random)
            #expect(grouped(value) == formatter.string(from: NSNumber(value: value)))
        }
        #expect(grouped(-5) == "0" && grouped(UInt64.max) == "18,446,744,073,709,551,615")
    }

    @Test mutating func `Decimals are rounded to their places`() {
        for _ in 0..<1_000 {
            // Quarters, so that halves are exact.
            let value = Double(Int.random(in: -400_000...400_000, using: &random)) / 4
            let places = Int.random(in: 2...6, using: &random)
            #expect(decimal(value, places: places) == String(format: "%.\(places)f", value))
        }
        #expect(decimal(0.05, places: 1) == "0.1" && decimal(-0.5, places: 1) == "-0.5")
        #expect(decimal(2.5, places: 0) == "3" && decimal(99.96, places: 1) == "100.0")
    }

    @Test func `Rate limits are exact to a thousandth, and small measured rates are not zero`() {
        let texts = [
            (0.001, "0.001"), (0.04, "0.04"), (0.5, "0.5"), (4, "4"), (4.9996, "5"), (50.5, "50.5"),
            (1234.5678, "1,234.568"), (1e8, "100,000,000"), (0, "0"),
        ]
        for (rate, text) in texts { #expect(rateLimitText(rate) == text, "\(rate)") }
        #expect(rateText(0.04) == "0.04" && rateText(0.0333) == "0.033" && rateText(0.5) == "0.5")
        #expect(rateText(4) == "4.0" && rateText(50.5) == "51" && rateText(0) == "0")
    }

    @Test func `Numbers beyond all integers become the largest one`() {
        for value in [1e19, 1e300, .infinity] {
            #expect(wholeNumber(value) == .max && wholeNumber(-value) == -.max)
            #expect(rateText(value) == "9,223,372,036,854,775,807")
            for places in 0...6 {
                #expect(!decimal(value, places: places).isEmpty)
                #expect(decimal(-value, places: places).hasPrefix("-"))
            }
            #expect(percentText(value) == "100%")
        }
        #expect(wholeNumber(.nan) == 0 && wholeNumber(2.5) == 3 && wholeNumber(-0.2) == 0)
        #expect(decimal(.nan, places: 1) == "0.0")
    }

    @Test(arguments: ["", ".", "1e5", "0x10", "inf", "nan", "-1", "+1", "1.2.3", "1,5", " 1", "1 "])
    func `Text that is not a plain decimal number is refused`(text: String) {
        #expect(decimalNumber(text) == nil)
    }

    @Test func `Plain decimal numbers are read`() {
        #expect(decimalNumber("0") == 0 && decimalNumber("12.5") == 12.5)
        #expect(decimalNumber(".5") == 0.5 && decimalNumber("5.") == 5)
    }

    @Test func `Only a complete count is shown as 100 percent`() {
        #expect(percentText(0.99999) == "99%" && percentText(1) == "100%")
        #expect(percentText(0) == "0%" && percentText(0.5) == "50%")
        #expect(
            ([0, 1, 2_000] as [UInt64]).map { counted($0, "row") } == [
                "0 rows", "1 row", "2,000 rows",
            ])
    }

    @Test func `A duration is too long only if its nanoseconds exceed 64 bits`() {
        for text in ["213504d", "99999999999999999999s"] {
            #expect(isTooLongDuration(text) && parseDuration(text) == nil, "\(text)")
        }
        for text in ["213503d", "5", "d", "1e9d", "-1d", "213504 d", ""] {
            #expect(!isTooLongDuration(text), "\(text)")
        }
    }

    @Test func `Durations have two units at most`() {
        let texts: [(Double, String)] = [
            (0, "0 s"), (59.4, "59 s"), (59.6, "1 m 00 s"), (200, "3 m 20 s"),
            (7_500, "2 h 05 m"), (86_399, "23 h 59 m"), (86_400, "1 d 00 h"),
            (100_000, "1 d 03 h"), (-3, "0 s"),
        ]
        for (seconds, text) in texts { #expect(durationText(seconds) == text) }
    }

    @Test func `Latencies have three digits at most`() {
        let texts: [(UInt64, String)] = [
            (0, "0.00 ms"), (123_456, "0.12 ms"), (1_230_000, "1.2 ms"), (12_340_000, "12 ms"),
            (999_000_000, "999 ms"), (1_500_000_000, "1.5 s"), (12_000_000_000, "12 s"),
        ]
        for (nanoseconds, text) in texts { #expect(latencyText(nanoseconds) == text) }
    }

    @Test mutating func `Hexadecimal digits are read back`() {
        for _ in 0..<100 {
            let value = UInt64.random(in: 0...(.max >> UInt64.random(in: 0..<64)), using: &random)
            #expect(
                hexadecimal(value).utf8.count == 16
                    && UInt64(hexadecimal(value), radix: 16) == value)
        }
        #expect(hexadecimal([0, 9, 0x0a, 0xff]) == "00090aff")
    }
}
