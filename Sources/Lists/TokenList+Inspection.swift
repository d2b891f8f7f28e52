import BroadsideAPNs
import BroadsideHygiene
package import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Number of rows that are checked before a list is used.
    static let firstCheckRows = 1000

    /// Returns statistics of the list's first rows.
    func survey() throws(BroadsideError) -> ListSurvey.Counts {
        var survey = ListSurvey()
        try readFirstRows { (row, reader) in
            _ = survey.take(row, of: reader)
            return true
        }
        return survey.counts
    }

    /// Passes the first rows to `visit`, until enough rows were passed or `visit` returns false.
    private func readFirstRows(
        _ visit: (RowReader.Row, borrowing RowReader) -> Bool
    ) throws(BroadsideError) {
        var rows = try RowCursor(
            self, ListSelection(rows: CampaignRows(limit: UInt64(Self.firstCheckRows))))
        // An error that makes the list unreadable takes precedence over errors in its rows.
        while let row = try rows.next(), visit(row, rows.reader) {}
    }

    /// Refuses a list whose tokens are not device tokens, before a command uses it.
    ///
    /// - Throws: Exit code 2 if none of the first rows has a device token, and one of two
    ///   conditions holds. Either the list is in another known JSON format, or has several objects
    ///   on its first line. Or at least half of the
    ///   first rows have the same known kind of foreign token, and no later row has a device token.
    func inspect() throws(BroadsideError) {
        let counts = try survey()
        guard counts.valid == 0, let first = counts.firstBadRows.first else { return }
        if format == .jsonl {
            let beginning = try bytes.readBeginning()
            if ForeignJSON.areObjectsOnOneLine(beginning) {
                throw .request(
                    name,
                    " has several JSON objects on the first line: write one per line, such as "
                        + command.filter(ListCommand.oneObjectPerLine, to: "jsonl"))
            }
            if let json = ForeignJSON.detect(beginning), json != .other {
                throw refusal(json, beginning)
            }
        }
        let known = counts.firstBadRows.compactMap { bad in
            bad.reason == .malformedToken
                ? ForeignToken.detect(bad.text).map { (kind: $0, text: bad.text) } : nil
        }
        guard let (kind, text) = known.first else { return }
        let same = known.count { $0.kind == kind }
        guard same * 2 >= counts.firstBadRows.count else { return }
        // A table for several platforms may begin with rows of another platform.
        let found = try firstTokenLine()
        guard found.line == nil, found.isComplete else { return }
        if format == .jsonl, try isWholeLine(first.line) {
            throw refusal(ofLines: kind, firstLine: first.line)
        }
        throw refusal(of: kind, firstLine: first.line, text: tokenExcerpt(text))
    }

    /// Returns the error for a JSON document from which rows can be extracted. The error explains
    /// how to extract them.
    private func refusal(_ json: ForeignJSON, _ beginning: [UInt8]) -> BroadsideError {
        let isOnePerLine = ForeignJSON.isOnePerLine(beginning)
        let remedy = json.remedy(
            command, tokenColumn: layout.names[0], isOnePerLine: isOnePerLine)
        return .request(
            name,
            isOnePerLine
                ? " has \(json.name), on each line: \(remedy)" : " is \(json.name): \(remedy)")
    }

    /// Returns the error for a list that has tokens of the given kind instead of device tokens.
    ///
    /// - Parameter text: Excerpt of the text in the row on `firstLine`.
    package func refusal(
        of kind: ForeignToken, firstLine: UInt64, text: String
    ) -> BroadsideError {
        let column = format == .lines ? "" : " in column '\(printable(layout.names[0]))'"
        return .request(
            name,
            " holds \(kind.name(withExample: text))\(column), the first on line \(firstLine): "
                + kind.remedy(command, isColumn: format != .lines))
    }

    /// Returns the error for JSON Lines whose lines are texts of the given kind, such as JSON
    /// strings, and not objects.
    private func refusal(ofLines kind: ForeignToken, firstLine: UInt64) -> BroadsideError {
        let option =
            hasFormatOption
            ? "a list with one token per line needs --format lines"
            : "let the name of a file with one token per line end in .txt"
        return .request(
            name,
            " holds \(kind.name), the first on line \(firstLine), but each line of JSON Lines must "
                + "be an object: \(kind.advice(isColumn: false)); \(option)")
    }

    /// Whether a line of JSON Lines, among the first rows, is not an object, so that the whole line
    /// counts as the text of its token.
    private func isWholeLine(_ line: UInt64) throws(BroadsideError) -> Bool {
        var isWhole = false
        try readFirstRows { (row, reader) in
            guard row.line == line else { return row.line < line }
            let field = reader.field(0)
            let text = reader.text(of: row)
            isWhole =
                field.form == .unusable && reader.value(field).elementsEqual([UInt8](text))
            return false
        }
        return isWhole
    }

    /// Maximum number of rows that are searched for a device token. Reading them takes a few
    /// seconds.
    private static let searchRowLimit: UInt64 = 10_000_000
    /// Maximum number of bytes that are searched for a device token in a list that can be read only
    /// once.
    private static let searchByteLimit: UInt64 = 1 << 20

    /// Returns the line of the first row with a device token. `isComplete` is whether the whole
    /// list was searched: only then does nil show that there is no such row.
    package func firstTokenLine() throws(BroadsideError) -> (line: UInt64?, isComplete: Bool) {
        var survey = ListSurvey()
        var rows = try RowCursor(self, endsOnSignals: true)
        while let row = try rows.next() {
            if survey.take(row, of: rows.reader) > 0 { return (row.line, true) }
            let isBeyond =
                row.number >= Self.searchRowLimit
                || !bytes.canReadAgain && rows.byteOffset(of: row) >= Self.searchByteLimit
            if isBeyond { return (nil, false) }
        }
        return (nil, true)
    }

    /// Error for a list without a device token.
    package func withoutToken(rows: UInt64) -> BroadsideError {
        .request(
            name,
            " contains \(rows == 0 ? "no rows" : "no device token"): is it the right file, with the "
                + "right --format and --token-column?")
    }

    /// Error for a column that no row has. With a misspelled key of JSON Lines, a command would
    /// otherwise decide by a value that is always missing.
    ///
    /// - Parameter option: The option that names the column.
    package func noRow(
        with column: String, option: String
    ) throws(BroadsideError) -> BroadsideError {
        .usage(
            option,
            "'\(column)': no row of \(name) has it"
                + (try keyAdvice(for: column).map { ": \($0)" } ?? ": name another column"))
    }

    /// Returns the columns of a table, or the keys of the first row of JSON Lines; empty for any
    /// other list, and for a list that can be read only once.
    package func columnNames() throws(BroadsideError) -> [String] {
        guard bytes.canReadAgain else { return [] }
        if format == .jsonl { return try firstKeys().all }
        guard let separator = format.separator else { return [] }
        let source = try ListSource(self)
        _ = try source.next(rowLimit: 1)
        return source.header.map { RowLayout.columns($0, separator: separator) } ?? []
    }

    /// Returns the keys of the first row that has any, those of them whose values are null, and
    /// those that can't be named.
    private func firstKeys() throws(BroadsideError) -> (
        all: [String], nulls: [String], unnameable: [String]
    ) {
        var keys: (all: [String], nulls: [String], unnameable: [String]) = ([], [], [])
        try readFirstRows { (row, reader) in
            let text = reader.text(of: row)
            keys = (
                JSONKeys.read(text), JSONKeys.read(text, isNull: true),
                JSONKeys.read(text, isNameable: false)
            )
            return keys.all.isEmpty
        }
        return keys
    }

    /// Returns advice about the keys of a JSON Lines list that lacks the wanted key; nil for other
    /// lists.
    package func keyAdvice(for wanted: String) throws(BroadsideError) -> String? {
        guard format == .jsonl else { return nil }
        let (keys, nulls, unnameable) = try firstKeys()
        if nulls.contains(wanted) { return "its value is null in the first row" }
        if unnameable.contains(wanted) {
            return "a key inside an object can't be named if a key on its path contains a dot: "
                + "rename that key"
        }
        let (last, others) = (wanted.pieces(at: ".").last, keys.filter { $0 != wanted })
        // One of several such keys has only some of the values.
        let same = Set(others.filter { $0.pieces(at: ".").last == last })
        let nearest =
            same.count > 1 ? nil : same.first ?? nearestName(to: wanted, among: others)
        return (nearest.map { "did you mean \(shownColumn($0))? " } ?? "")
            + "its first row has the keys \(shownColumns(keys)): name one, or a path such as "
            + "device.token for a key inside an object"
    }
}

extension ListSurvey.Counts {
    /// Whether any row has the token's column.
    var hasColumn: Bool { rows > withoutColumn }
}

/// Formats the names of a list's columns for a message: without control characters or whole tokens.
package func shownColumns(_ columns: [String]) -> String {
    let limit = 24
    let shown = columns.prefix(limit).map(shownColumn)
    let rest = columns.count > limit ? " and \(columns.count - limit) others" : ""
    return shown.joined(separator: ", ") + rest
}

/// Formats the name of a column for a message. A path may have a token among its keys.
package func shownColumn(_ column: String) -> String {
    let isSecret =
        resemblesToken(column) || column.pieces(at: ".").contains { resemblesToken(String($0)) }
    // Long sequences of digits are shortened in any text.
    let shown = ForeignText.escapedName(
        isSecret ? printable(column, limit: 8) : tokenExcerpt(column.utf8))
    return shown.hasSuffix("…") || !isSecret ? shown : shown + "…"
}

/// Whether a name in a header is a device token rather than a column's name.
func resemblesToken(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    if bytes.count >= 16, TokenText.isToken(bytes) { return true }
    return ForeignToken.detect(bytes[...]) != nil
}
