import BroadsideAPNs
import BroadsideHygiene
import BroadsideRows
import BroadsideSupport

extension ListSurvey.BadRow {
    /// First characters of the text in the token column, safe to print on one line of a terminal.
    /// Invisible characters are escaped, because they may be what is wrong with the token.
    var excerpt: String { ForeignText.escapedName(tokenExcerpt(text)) }
}

/// Result of `tokens check`, as text and JSON.
public struct TokensReport {
    /// Duplicates of tokens.
    struct Duplicates {
        /// A duplicate, and the first row with the same token.
        struct Example {
            var line: UInt64
            var firstLine: UInt64
        }

        var count: UInt64 = 0
        /// The first duplicates in the order of the list.
        var examples: [Example] = []

        static let keptExampleCount = 5

        mutating func count(line: UInt64, firstLine: UInt64) {
            assert(firstLine < line, "a duplicate comes after its token's first row")
            count += 1
            if examples.count == Self.keptExampleCount {
                if line >= examples[examples.count - 1].line { return }
                examples.removeLast()
            }
            let example = examples.firstIndex { $0.line > line } ?? examples.count
            examples.insert(Example(line: line, firstLine: firstLine), at: example)
            assert(
                examples.count <= Self.keptExampleCount
                    && zip(examples, examples.dropFirst()).allSatisfy { $0.line < $1.line },
                "the examples are the first duplicates, in order")
        }
    }

    let file: String
    let format: ListFormat
    let compression: ListCompression?
    let byteCount: UInt64
    let columns: [String]
    let tokenColumn: String
    let counts: ListSurvey.Counts
    let duplicates: Duplicates?
    /// Whether `send` would refuse the list.
    let isRefused: Bool

    /// Human-readable report.
    public var text: String {
        var text = "format       \(format.name)"
        if let compression { text += " in \(compression.rawValue)" }
        if format == .semicolonCSV { text += " with ';' between columns" }
        if format != .lines { text += ", token in column '\(printable(tokenColumn))'" }
        if !columns.isEmpty { text += " of \(shownColumns(columns))" }
        text += "\nrows         \(grouped(counts.rows))\nvalid        \(grouped(counts.valid))\n"
        text += "invalid      \(grouped(counts.invalid))"
        if counts.invalid > 0 {
            text += ": \(Reason.malformedToken.text) \(grouped(counts.malformed)), "
            text += "\(Reason.missingColumn.text) \(grouped(counts.withoutColumn))"
            if counts.malformedRows > 0 {
                text += ", \(Reason.malformedRow.text) \(grouped(counts.malformedRows))"
            }
        }
        text += "\n"
        for row in counts.firstBadRows {
            text += "  line \(row.line): \(row.reason.text) '\(row.excerpt)'\n"
        }
        if counts.invalid > UInt64(counts.firstBadRows.count) { text += "  and others\n" }
        // Without a token there are no lengths.
        if !lengths.isEmpty {
            let counts = lengths.map { "\($0.digits): \(grouped($0.rows))" }.joined(separator: ", ")
            text += "digits       \(counts)\n"
        }
        if counts.suspicious > 0 {
            text +=
                "  \(grouped(counts.suspicious)) with fewer than 64 digits, which is suspicious\n"
        }
        text += "capitals     \(grouped(counts.withCapitals)), sent in lower case\n"
        if counts.decorated > 0 {
            text +=
                "decorated    \(grouped(counts.decorated)), with blanks or brackets, which are "
                + "ignored\n"
        }
        if let duplicates {
            text += "duplicates   \(grouped(duplicates.count))\n"
            for example in duplicates.examples {
                text += "  line \(example.line): first on line \(example.firstLine)\n"
            }
        }
        text +=
            isRefused
            ? "result       nothing would be sent, because send refuses this list\n"
            : "result       \(grouped(counts.valid)) would be sent, \(grouped(counts.invalid)) recorded as invalid\n"
        return text
    }

    /// The report as one line of JSON.
    public var json: String {
        var text = "{\"file\":\(JSONLine.quoted(file)),\"format\":\"\(format.name)\","
        text += "\"separator\":\(separator.map(JSONLine.quoted) ?? "null"),"
        text += "\"compression\":\(compression.map { JSONLine.quoted($0.rawValue) } ?? "null"),"
        text += "\"bytes\":\(byteCount),"
        text += "\"columns\":[\(columns.map(JSONLine.quoted).joined(separator: ","))],"
        text += "\"token_column\":\(format == .lines ? "null" : JSONLine.quoted(tokenColumn)),"
        text += "\"rows\":\(counts.rows),\"valid\":\(counts.valid),\"invalid\":\(counts.invalid),"
        text += "\"malformed_token\":\(counts.malformed),"
        text += "\"missing_column\":\(counts.withoutColumn),"
        text += "\"malformed_row\":\(counts.malformedRows),"
        let bad = counts.firstBadRows.map { row in
            "{\"line\":\(row.line),\"reason\":\"\(row.reason.text)\","
                + "\"text\":\(JSONLine.quoted(row.excerpt))}"
        }
        text += "\"first_invalid\":[\(bad.joined(separator: ","))],"
        let digits = lengths.map { "\"\($0.digits)\":\($0.rows)" }
        text += "\"digits\":{\(digits.joined(separator: ","))},"
        text += "\"shorter_than_64_digits\":\(counts.suspicious),"
        text += "\"with_capitals\":\(counts.withCapitals),\"decorated\":\(counts.decorated)"
        if let duplicates {
            let examples = duplicates.examples.map { example in
                "{\"line\":\(example.line),\"first_line\":\(example.firstLine)}"
            }
            text += ",\"duplicates\":\(duplicates.count),"
            text += "\"first_duplicates\":[\(examples.joined(separator: ","))]"
        }
        return text + "}\n"
    }

    private var separator: String? { format.separator.map { String(Unicode.Scalar($0)) } }

    private var lengths: [(digits: Int, rows: UInt64)] {
        counts.byDigitCount.enumerated().filter { $0.element > 0 }.map { ($0.offset, $0.element) }
    }
}
