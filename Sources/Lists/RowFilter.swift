internal import BroadsideRows
internal import BroadsideSupport

/// Which rows of a list get a campaign, by what their columns say: those for which all conditions hold.
///
///     country = FR,BE,"Bonaire, Saba"
///     app_version >= 5.2.0
///
/// - `=` and `!=` compare with each text of a set, byte for byte.
/// - `<`, `<=`, `>` and `>=` compare with one value, of the kind that it is (`OrderedValue`). A text of
///   another kind matches none of them.
/// - A missing value matches only `!=`.
/// - Blanks round a value do not count, in the list as in the condition.
public struct RowFilter: Sendable, Equatable {
    /// What a column's value is compared by.
    enum Comparison: String, Sendable, CaseIterable {
        case equal = "="
        case notEqual = "!="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="

        /// Whether a value is compared with a set of texts.
        var isOfSet: Bool { self == .equal || self == .notEqual }
    }

    /// One column, and what its value must be.
    struct Condition: Sendable, Equatable {
        var column: String
        var comparison: Comparison
        /// For `=` and `!=`: the set, sorted for the search, each text once; else empty.
        var texts: [[UInt8]]
        /// For the others: what the column's value is compared with.
        var bound: OrderedValue?
    }

    /// What a condition says of a row.
    enum Match: Sendable {
        case holds
        case fails
        /// The row has a value that is not of the bound's kind; the condition does not hold.
        case incomparable
    }

    /// In the order in which they were given.
    let conditions: [Condition]

    /// The most conditions of a filter.
    static let conditionsLimit = 100
    /// The most texts of a condition's set.
    static let textsLimit = 1_000

    /// The columns that the filter reads, each once.
    package var columns: [String] {
        var columns: [String] = []
        for condition in conditions where !columns.contains(condition.column) {
            columns.append(condition.column)
        }
        return columns
    }

    /// The conditions as they are written without what may differ between two ways to write the same.
    package var canonicalTexts: [String] { conditions.map(\.canonicalText) }
}

extension RowFilter.Condition {
    /// What the condition says of a row's field, without allocation.
    func match(_ field: RowReader.Field, in reader: borrowing RowReader) -> RowFilter.Match {
        assert(comparison.isOfSet == (bound == nil), "an order has a bound, a set has none")
        if field.form == .missing { return comparison == .notEqual ? .holds : .fails }
        guard field.isText else {
            // An array, an object, a string that is not text: it is there, and equals nothing.
            if comparison.isOfSet { return comparison == .notEqual ? .holds : .fails }
            return .incomparable
        }
        let text = reader.text(field).withoutBlanks
        guard let bound else {
            return contains(text) == (comparison == .equal) ? .holds : .fails
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

    /// Whether a text is one of the set.
    private func contains(_ text: RawSpan) -> Bool {
        var (low, high) = (0, texts.count)
        while low < high {
            let middle = (low + high) / 2
            let candidate = texts[middle]
            let order = RowFilter.order(of: candidate.rawSpan, and: text)
            if order == 0 { return true }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
    }

    var canonicalText: String {
        let values = bound.map { [$0.text] } ?? texts
        return "\(RowFilter.quoted(Array(column.utf8), in: .column)) \(comparison.rawValue) "
            + values.map { RowFilter.quoted($0, in: .value) }.joined(separator: ",")
    }
}

extension RowFilter {
    /// The order of a set's texts: shorter ones first. Below 0 where the first text comes first.
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
    /// The text without blanks and carriage returns round it.
    var withoutBlanks: RawSpan {
        @_lifetime(copy self) get {
            var (start, end) = (0, byteCount)
            while start < end, RowFilter.isBlank(byte(at: start)) { start += 1 }
            while end > start, RowFilter.isBlank(byte(at: end - 1)) { end -= 1 }
            assert(start <= end && end <= byteCount, "a part of the text is left")
            return extracting(start..<end)
        }
    }
}
