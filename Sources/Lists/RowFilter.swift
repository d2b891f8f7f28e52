internal import BroadsideAPNs
internal import BroadsideRows
internal import BroadsideSupport

/// A filter that selects rows of a list by their columns. A row is selected if all conditions hold.
///
///     country = FR,BE,"Bonaire, Saba"
///     app_version >= 5.2.0
///
/// - `=` and `!=` compare with each text of a set, byte for byte.
/// - `<`, `<=`, `>` and `>=` compare with one value, whose text determines its kind
///   (`OrderedValue`). They never hold for a text of another kind.
/// - Only `!=` holds for a missing value.
/// - Blanks and hidden characters around a value are ignored, in the list and in the condition.
public struct RowFilter: Sendable, Equatable {
    /// Operator that compares a column's value.
    enum Comparison: String, Sendable, CaseIterable {
        case equal = "="
        case notEqual = "!="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="

        /// Whether the operator compares a value with a set of texts.
        var isOfSet: Bool { self == .equal || self == .notEqual }
    }

    /// A condition on a column's value.
    struct Condition: Sendable, Equatable {
        var column: String
        var comparison: Comparison
        /// The set of texts for `=` and `!=`, sorted for searching, without duplicates. Empty for
        /// other operators.
        var texts: [[UInt8]]
        /// Value with which `<`, `<=`, `>` and `>=` compare; nil for `=` and `!=`.
        var bound: OrderedValue?
    }

    /// Result of a condition for a row.
    enum Match: Sendable {
        case holds
        case fails
        /// The row's value is of another kind than the bound, so the condition does not hold.
        case incomparable
    }

    /// The conditions in the order in which they were given.
    let conditions: [Condition]

    /// Maximum number of conditions in a filter.
    static let conditionsLimit = 100
    /// Maximum number of texts in one condition, such as 3 in `COLUMN=A,B,C`.
    static let textsLimit = 1_000

    /// Columns that the filter reads, without duplicates.
    package var columns: [String] {
        var columns: [String] = []
        for condition in conditions where !columns.contains(condition.column) {
            columns.append(condition.column)
        }
        return columns
    }

    /// Whether a condition compares with a device token. Shorter digits may be another identifier.
    var hasToken: Bool {
        conditions.contains { condition in
            condition.texts.contains { $0.count >= 64 && TokenText.isToken($0) }
        }
    }

    /// The conditions in canonical form, as ledgers keep them. All spellings of the same condition
    /// have the same canonical form, which has quotes only where they are necessary.
    package var canonicalTexts: [String] { conditions.map(\.canonicalText) }
}

extension RowFilter.Condition {
    /// Evaluates the condition for a row's field, without allocation.
    func match(_ field: RowReader.Field, in reader: borrowing RowReader) -> RowFilter.Match {
        assert(comparison.isOfSet == (bound == nil), "an order has a bound, a set has none")
        if field.form == .missing { return comparison == .notEqual ? .holds : .fails }
        guard field.isText else {
            // The value is an array, an object, or a string that is not text: it exists, but equals
            // no text.
            if comparison.isOfSet { return comparison == .notEqual ? .holds : .fails }
            return .incomparable
        }
        let text = reader.text(field).withoutBlanks
        guard let bound else {
            return (index(of: text) != nil) == (comparison == .equal) ? .holds : .fails
        }
        guard let order = bound.order(of: text) else { return .incomparable }
        let holds =
            switch comparison {
            case .less: order < 0
            case .lessOrEqual: order <= 0
            case .greater: order > 0
            case .greaterOrEqual: order >= 0
            case .equal, .notEqual: false
            }
        return holds ? .holds : .fails
    }

    /// Index of a text in the set; nil if it is not in the set.
    func index(of text: RawSpan) -> Int? {
        var (low, high) = (0, texts.count)
        while low < high {
            let middle = (low + high) / 2
            let candidate = texts[middle]
            let order = RowFilter.order(of: candidate.rawSpan, and: text)
            if order == 0 { return middle }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    var canonicalText: String {
        let values = bound.map { [$0.text] } ?? texts
        return "\(RowFilter.quoted(Array(column.utf8), in: .column)) \(comparison.rawValue) "
            + values.map { RowFilter.quoted($0, in: .value) }.joined(separator: ",")
    }
}

extension RowFilter {
    /// Compares two texts of a set, for sorting: negative if the first text precedes the second.
    /// Shorter texts come first.
    static func order(of first: RawSpan, and second: RawSpan) -> Int {
        if first.byteCount != second.byteCount { return first.byteCount - second.byteCount }
        for offset in 0..<first.byteCount {
            let difference = Int(first.byte(at: offset)) - Int(second.byte(at: offset))
            if difference != 0 { return difference }
        }
        return 0
    }
}

extension RawSpan {
    /// The text without surrounding blanks, carriage returns and hidden characters.
    package var withoutBlanks: RawSpan {
        @_lifetime(copy self) get {
            var (start, end) = (0, byteCount)
            while start < end, RowFilter.isBlank(byte(at: start)) { start += 1 }
            while end > start, RowFilter.isBlank(byte(at: end - 1)) { end -= 1 }
            assert(start <= end && end <= byteCount, "a part of the text is left")
            let text = extracting(start..<end)
            return HiddenCharacters.mayBeAtEnd(of: text) ? HiddenCharacters.trimmed(text) : text
        }
    }
}
