import BroadsideLists
import BroadsideSupport

/// Whole numbers in a column that are written in two forms, such as `7` and `12.0`. As texts, two
/// forms of one number differ.
struct NumberForms {
    /// First number in a form, and the line of its row.
    private struct Sample {
        var number: String
        var line: UInt64
    }

    private var plain: Sample?
    private var withFraction: Sample?

    mutating func note(_ value: RawSpan, line: UInt64) {
        var end = value.byteCount
        let hasFraction =
            end > 2 && value.byte(at: end - 2) == UInt8(ascii: ".")
            && value.byte(at: end - 1) == UInt8(ascii: "0")
        if hasFraction { end -= 2 }
        guard (hasFraction ? withFraction : plain) == nil, end > 0,
            (0..<end).allSatisfy({ value.byte(at: $0) &- UInt8(ascii: "0") <= 9 })
        else { return }
        let sample = Sample(number: tokenExcerpt([UInt8](value)), line: line)
        if hasFraction { withFraction = sample } else { plain = sample }
    }

    /// Problem of a column with both forms; nil if the column has at most one.
    var problem: String? {
        guard let plain, let withFraction else { return nil }
        return "line \(withFraction.line) has '\(withFraction.number)', but line \(plain.line) has "
            + "'\(plain.number)', without .0"
    }
}
