import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// Rows with values of one kind that are not IDs, such as the word NULL.
struct UnusableValues {
    /// The first such value, and the line of its row; nil if there is none.
    private var first: (value: String, line: UInt64)?
    /// Number of rows with any such value.
    private var rows: UInt64 = 0

    /// Advice for numbers that a spreadsheet rounded.
    static let roundedAdvice =
        "export the list again, and import that column as text into a spreadsheet"

    mutating func note(_ value: RawSpan, line: UInt64) {
        if first == nil { first = (tokenExcerpt([UInt8](value)), line) }
        rows += 1
    }

    /// Whether a value is a number such as `1.23457E+11`, which a spreadsheet rounded.
    static func isRounded(_ value: RawSpan) -> Bool {
        // Most values have no sign, so that they are not copied.
        guard (0..<value.byteCount).contains(where: { value.byte(at: $0) == UInt8(ascii: "+") })
        else { return false }
        return ForeignToken.detect([UInt8](value)[...]) == .roundedNumber
    }

    /// Count of rows that have a word such as NULL; nil if there are none.
    var wordProblem: String? {
        guard let first else { return nil }
        return rows == 1
            ? "1 row has the word '\(first.value)', on line \(first.line), and stays"
            : "\(grouped(rows)) rows have a word such as '\(first.value)', the first on line "
                + "\(first.line), and stay"
    }

    /// Count of rows that have a number rounded by a spreadsheet; nil if there are none.
    var roundedProblem: String? {
        guard let first else { return nil }
        return rows == 1
            ? "1 row has a number that a spreadsheet rounded ('\(first.value)'), on line "
                + "\(first.line)"
            : "\(grouped(rows)) rows have numbers that a spreadsheet rounded, such as "
                + "'\(first.value)', the first on line \(first.line)"
    }
}
