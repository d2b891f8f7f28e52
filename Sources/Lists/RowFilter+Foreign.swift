internal import BroadsideSupport

/// Value of a condition in the syntax of SQL or another language, or with the quotes of a text
/// editor: `'FR'`, `“FR”`, `(FR,DE)`, `FR and age >= 18`. Compared as text, such a value would
/// equal nothing, and `!=` would select every row.
enum ForeignValue: Equatable {
    /// Begins with a quote other than the double quote.
    case quoted(Unicode.Scalar)
    /// Begins with a bracket.
    case bracketed(Unicode.Scalar)
    /// Contains `or`.
    case choice
    /// Contains a further condition. The text is `and`, `in (`, or an operator.
    case condition(String)
    /// A word for a missing value in SQL or in a programming language.
    case missing

    private static let quotes: Set<Unicode.Scalar> = [
        "'", "`", "´", "“", "”", "„", "‘", "’", "‚", "«", "»", "‹", "›",
    ]
    /// The words for a missing value, besides `null` in any letter case.
    private static let missingSpellings = ["None", "\\N"]
    private static let brackets: [Unicode.Scalar: Unicode.Scalar] = ["(": ")", "[": "]", "{": "}"]

    /// Examines a value that is not in double quotes; nil if it is a plain text.
    ///
    /// - Parameter value: The value, without surrounding blanks.
    init?(_ value: [UInt8]) {
        let words = String(decoding: value, as: UTF8.self).lowercased()
        guard let first = words.unicodeScalars.first else { return nil }
        if Self.quotes.contains(first) {
            self = .quoted(first)
        } else if Self.brackets[first] != nil {
            self = .bracketed(first)
        } else if words.contains(" or ") {
            self = .choice
        } else if words.contains(" and ") {
            self = .condition("and")
        } else if words.contains(" in (") {
            self = .condition("in (")
        } else if let comparison = Self.comparison(in: value) {
            self = .condition(comparison)
        } else if words == "null"
            || Self.missingSpellings.contains(String(decoding: value, as: UTF8.self))
        {
            self = .missing
        } else {
            return nil
        }
    }

    /// Returns the first operator in a value; nil if there is none, or if the value ends with it.
    private static func comparison(in value: [UInt8]) -> String? {
        func isOperator(_ byte: UInt8) -> Bool {
            byte != UInt8(ascii: "!") && RowFilter.isOperator(byte)
        }
        guard let start = value.firstIndex(where: isOperator) else { return nil }
        let end = value[start...].firstIndex { !isOperator($0) }
        // Base64 may end with '='. Then no second text follows.
        guard let end else { return nil }
        let isNegated = start > 0 && value[start - 1] == UInt8(ascii: "!")
        return String(decoding: value[(isNegated ? start - 1 : start)..<end], as: UTF8.self)
    }

    /// Returns the problem and its solution, in one line.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - rest: The condition from this value on.
    ///   - start: The column and the operator.
    ///   - comparison: The operator.
    func message(
        _ value: [UInt8], rest: [UInt8], after start: String, _ comparison: RowFilter.Comparison
    ) -> String {
        let shown = printable(String(decoding: value, as: UTF8.self), limit: 80)
        let verbatim = printable("\(start) \(RowFilter.inQuotes(value))")
        switch self {
        case .quoted(let mark), .bracketed(let mark):
            let right = printable(
                "\(start) \(Self.rewritten(String(decoding: rest, as: UTF8.self)))")
            let problem =
                if case .quoted = self { "is not a quote here" } else {
                    "does not begin a set here"
                }
            return "\(mark) \(problem): write \(right), or put a value that begins with \(mark) in "
                + "double quotes"
        case .choice:
            return "'\(shown)' contains 'or': separate several values by commas, or, if 'or' is "
                + "part of a value, put the value in double quotes, as in \(verbatim)"
        case .missing:
            // A row without a value meets each condition with `!=`, and no other one.
            let advice =
                comparison == .notEqual
                ? "!= always selects rows without a value: to exclude them, name the values that "
                    + "you want with =; write \"\" to exclude empty values"
                : "no condition selects only rows without a value: write \"\" for empty values"
            return "'\(shown)' does not stand for a missing value here, and \(advice), or "
                + "\(verbatim) for the word itself"
        case .condition(let joint):
            return "'\(shown)' contains '\(joint)': write each condition in its own --where, or, "
                + "if '\(joint)' is part of a value, put the value in double quotes, as in "
                + "\(verbatim)"
        }
    }

    /// Returns a set of values as a condition spells them, without brackets and foreign quotes.
    static func rewritten(_ text: String) -> String {
        var rest = trimmed(Array(text.unicodeScalars)[...])
        if let first = rest.first, let closing = brackets[first] {
            rest.removeFirst()
            if rest.last == closing { rest.removeLast() }
        }
        var values: [String] = []
        repeat {
            rest = trimmed(rest)
            var value = rest.prefix { $0 != "," }
            var end = value.endIndex
            if let first = rest.first, isQuote(first), let closing = closingQuote(of: rest) {
                value = rest[(rest.startIndex + 1)..<closing]
                end = rest[closing...].firstIndex(of: ",") ?? rest.endIndex
            }
            var plain = String.UnicodeScalarView()
            plain.append(contentsOf: trimmed(value))
            values.append(RowFilter.written(Array(String(plain).utf8)))
            rest = rest[end...].dropFirst()
        } while !rest.isEmpty
        return values.joined(separator: ",")
    }

    private static func isQuote(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\"" || quotes.contains(scalar)
    }

    /// Index of the quote that closes a value: the first one before a comma or the end.
    private static func closingQuote(of text: ArraySlice<Unicode.Scalar>) -> Int? {
        text.indices.dropFirst().first { index in
            guard isQuote(text[index]) else { return false }
            let next = text[(index + 1)...].first { $0 != " " }
            return next == nil || next == ","
        }
    }

    private static func trimmed(
        _ text: ArraySlice<Unicode.Scalar>
    ) -> ArraySlice<Unicode.Scalar> {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}

extension RowFilter {
    /// Returns a value as a condition spells it: in double quotes if necessary.
    static func written(_ value: [UInt8]) -> String {
        ForeignValue(value) == nil ? quoted(value, in: .value) : inQuotes(value)
    }
}
