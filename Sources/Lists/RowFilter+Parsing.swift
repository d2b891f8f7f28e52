internal import BroadsideSupport

extension RowFilter {
    /// Error in a condition: one line that begins with the location.
    public struct Problem: Error {
        /// Location, problem and solution.
        public var message: String
    }

    /// Parses conditions, each `COLUMN OP VALUES`.
    ///
    /// A column or a value with a special character is put in double quotes. Quotes inside it are
    /// doubled. A value in the spelling of another language is an error (`ForeignValue`).
    public init(_ texts: [String]) throws(Problem) {
        precondition(!texts.isEmpty, "a filter has a condition")
        guard texts.count <= Self.conditionsLimit else {
            throw Problem(
                message: "is given \(texts.count) times, but the limit is "
                    + "\(Self.conditionsLimit): name the values of one column in one "
                    + "condition, as in 'country = FR,BE'")
        }
        var conditions: [Condition] = []
        for (index, text) in texts.enumerated() {
            do throws(ConditionError) {
                var reader = ConditionReader(text)
                conditions.append(try reader.condition())
            } catch {
                let character =
                    String(decoding: text.utf8.prefix(error.offset), as: UTF8.self).count + 1
                let which = texts.count > 1 ? "condition \(index + 1), " : ""
                throw Problem(
                    message:
                        "'\(printable(text))': \(which)character \(character): \(error.message)")
            }
        }
        self.conditions = conditions
    }

    static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
    }

    /// Part of a condition to which a text belongs.
    enum Part {
        case column
        case value
    }

    /// Returns a text as it is written in a condition: in double quotes if necessary.
    static func quoted(_ text: [UInt8], in part: Part) -> String {
        let isPlain =
            !text.isEmpty && !isBlank(text[0]) && !isBlank(text[text.count - 1])
            && !text.contains(where: { isSpecial($0, in: part) })
            && (part == .column || !isOperator(text[0]))
        return isPlain ? String(decoding: text, as: UTF8.self) : inQuotes(text)
    }

    /// Returns a text in double quotes.
    static func inQuotes(_ text: [UInt8]) -> String {
        var quoted: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text {
            if byte == UInt8(ascii: "\"") { quoted.append(byte) }
            quoted.append(byte)
        }
        return String(decoding: quoted, as: UTF8.self) + "\""
    }

    static func isOperator(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "="), UInt8(ascii: "!"), UInt8(ascii: "<"), UInt8(ascii: ">"): true
        default: false
        }
    }

    private static func isSpecial(_ byte: UInt8, in part: Part) -> Bool {
        byte == UInt8(ascii: "\"")
            || (part == .column ? isOperator(byte) : byte == UInt8(ascii: ","))
    }
}

/// Error in a condition, with its byte offset.
private struct ConditionError: Error {
    var offset: Int
    var message: String
}

/// Parser of a condition's text.
private struct ConditionReader {
    private let text: [UInt8]
    private var offset = 0
    /// The column and the operator, for messages.
    private var start = ""

    private static let example = "such as 'country = FR,BE' or 'age >= 18'"

    init(_ text: String) { self.text = Array(text.utf8) }

    mutating func condition() throws(ConditionError) -> RowFilter.Condition {
        let column = try column()
        let comparison = try comparison()
        start = "\(RowFilter.quoted(Array(column.utf8), in: .column)) \(comparison.rawValue)"
        if comparison.isOfSet {
            return .init(
                column: column, comparison: comparison, texts: try set(comparison), bound: nil)
        }
        return .init(
            column: column, comparison: comparison, texts: [], bound: try bound(comparison))
    }

    private mutating func column() throws(ConditionError) -> String {
        skipBlanks()
        let start = offset
        let bytes: [UInt8]
        if let quoted = try quotedText() {
            bytes = Self.withoutBlanks(quoted[...])
        } else {
            bytes = Self.withoutBlanks(try plainText { RowFilter.isOperator($0) })
        }
        guard !bytes.isEmpty else {
            throw ConditionError(
                offset: start, message: "names no column: write a column, \(Self.example)")
        }
        skipBlanks()
        return String(decoding: bytes, as: UTF8.self)
    }

    private mutating func comparison() throws(ConditionError) -> RowFilter.Comparison {
        let start = offset
        while offset < text.count, RowFilter.isOperator(text[offset]) { offset += 1 }
        let written = String(decoding: text[start..<offset], as: UTF8.self)
        if let comparison = RowFilter.Comparison(rawValue: written) { return comparison }
        let likely: String? =
            switch written {
            case "==", "===": "="
            case "<>", "!", "!==": "!="
            case "=<": "<="
            case "=>": ">="
            default: nil
            }
        if let likely {
            throw ConditionError(
                offset: start, message: "'\(written)' is not an operator: write \(likely)")
        }
        throw ConditionError(
            offset: start,
            message: (written.isEmpty ? "has no operator here" : "'\(written)' is not an operator")
                + ": use =, !=, <, <=, > or >=, \(Self.example)")
    }

    /// Parses a set of texts. The result is sorted for searching and has no duplicates.
    private mutating func set(
        _ comparison: RowFilter.Comparison
    ) throws(ConditionError) -> [[UInt8]] {
        var texts: [[UInt8]] = []
        while true {
            let start = offset
            texts.append(try value(comparison))
            guard texts.count <= RowFilter.textsLimit else {
                throw ConditionError(
                    offset: start,
                    message:
                        "a condition has at most \(grouped(RowFilter.textsLimit)) values: make "
                        + "a list of the rows that you want")
            }
            guard offset < text.count else { break }
            // A value ends with a comma or the end of the text.
            offset += 1
        }
        texts.sort { RowFilter.order(of: $0.rawSpan, and: $1.rawSpan) < 0 }
        var distinct: [[UInt8]] = []
        for text in texts where distinct.last != text { distinct.append(text) }
        return distinct
    }

    private mutating func bound(
        _ comparison: RowFilter.Comparison
    ) throws(ConditionError) -> OrderedValue {
        skipBlanks()
        let start = offset
        let bytes = try value(comparison)
        guard offset == text.count else {
            throw ConditionError(
                offset: offset,
                message: "\(comparison.rawValue) compares with one value: only = and != "
                    + "accept several")
        }
        guard let bound = OrderedValue(bytes) else {
            throw ConditionError(
                offset: start,
                message:
                    "'\(printable(String(decoding: bytes, as: UTF8.self)))' is not a number, a "
                    + "date such as 2024-02-29 or a version such as 5.2.0: compare with such a value, "
                    + "or use = or !=")
        }
        let text = printable(String(decoding: bytes, as: UTF8.self))
        switch bound.otherMeaning {
        case .date(let date):
            throw ConditionError(
                offset: start,
                message: "'\(text)' looks like a date: write \(date), here and in the list, or "
                    + "\(text).0 for a version")
        case .number(let number):
            throw ConditionError(
                offset: start,
                message: "'\(text)' looks like a number with dots between thousands: write "
                    + "\(number), here and in the list, or \(text).0 for a version")
        case .yearFirstDate, nil: return bound
        }
    }

    /// Parses a value, with or without quotes. Afterwards the offset is at a comma or at the end.
    private mutating func value(
        _ comparison: RowFilter.Comparison
    ) throws(ConditionError) -> [UInt8] {
        skipBlanks()
        let start = offset
        if let quoted = try quotedText() {
            skipBlanks()
            guard offset == text.count || text[offset] == UInt8(ascii: ",") else {
                throw ConditionError(
                    offset: offset,
                    message: "text follows a closing quote: write a comma between values, "
                        + "and \"\" for a quote inside a value")
            }
            return [UInt8](quoted.rawSpan.withoutBlanks)
        }
        if offset < text.count, RowFilter.isOperator(text[offset]) {
            throw ConditionError(
                offset: offset,
                message: "a value that begins with =, !, < or > is written in "
                    + "double quotes")
        }
        let plain = [UInt8](try plainText { $0 == UInt8(ascii: ",") })
        let bytes = [UInt8](plain.rawSpan.withoutBlanks)
        guard !bytes.isEmpty else {
            throw ConditionError(
                offset: start, message: "a value is missing: write it, or \"\" for an empty one")
        }
        // With an order, `bound` refuses a word for a missing value.
        if let foreign = ForeignValue(bytes), foreign != .missing || comparison.isOfSet {
            throw ConditionError(
                offset: start,
                message: foreign.message(
                    bytes, rest: Array(text[start...]), after: self.start, comparison))
        }
        return bytes
    }

    /// Parses a text in double quotes; nil if there is none at the current offset.
    private mutating func quotedText() throws(ConditionError) -> [UInt8]? {
        let quote = UInt8(ascii: "\"")
        guard offset < text.count, text[offset] == quote else { return nil }
        let start = offset
        var bytes: [UInt8] = []
        offset += 1
        while offset < text.count {
            let byte = text[offset]
            offset += 1
            if byte == quote {
                guard offset < text.count, text[offset] == quote else { return bytes }
                offset += 1
            }
            bytes.append(byte)
        }
        throw ConditionError(offset: start, message: "a quote is not closed: close it")
    }

    /// Parses a text up to a byte that ends it.
    private mutating func plainText(
        until isEnd: (UInt8) -> Bool
    ) throws(ConditionError) -> ArraySlice<UInt8> {
        let start = offset
        while offset < text.count, !isEnd(text[offset]) {
            guard text[offset] != UInt8(ascii: "\"") else {
                throw ConditionError(
                    offset: offset,
                    message: "a quote is inside a value: write the whole value in double "
                        + "quotes, with \"\" for a quote in it")
            }
            offset += 1
        }
        return text[start..<offset]
    }

    /// Returns the name of a column without surrounding blanks. Hidden characters are a part of a
    /// name, as in the header of a list.
    private static func withoutBlanks(_ name: ArraySlice<UInt8>) -> [UInt8] {
        let start = name.drop(while: RowFilter.isBlank)
        return start.reversed().drop(while: RowFilter.isBlank).reversed()
    }

    private mutating func skipBlanks() {
        while offset < text.count, RowFilter.isBlank(text[offset]) { offset += 1 }
    }
}
