import APNs
import Campaign
package import Support

extension TokenList {
    /// Rows that are looked at before a list is used.
    static let firstLookRows = 1000

    /// What its first rows are.
    func survey() throws(BroadsideError) -> ListSurvey.Counts {
        var survey = ListSurvey()
        try readFirstRows { (row, reader) in
            _ = survey.take(row, of: reader)
            return true
        }
        return survey.counts
    }

    /// Hands out the first rows until there are enough, or `visit` returns false.
    private func readFirstRows(
        _ visit: (RowReader.Row, borrowing RowReader) -> Bool
    ) throws(BroadsideError) {
        let source = try ListSource(
            list: self, pool: ChunkPool(limit: 3), plan: nil, rowsLimit: nil)
        guard let chunk = try source.next(rowLimit: Self.firstLookRows) else { return }
        var reader = RowReader(layout: layout)
        reader.open(chunk)
        while let row = reader.next(), visit(row, reader) {}
        _ = reader.close()
    }

    /// Tokens of another kind are named, whoever reads the list, and before anything is done with it.
    ///
    /// - Throws: Exit code 2 where none of the first rows has a device token, and it is known what
    ///   most of them have instead.
    func inspect(file: String) throws(BroadsideError) {
        let counts = try survey()
        guard counts.valid == 0, let first = counts.firstBadRows.first else { return }
        let kinds = counts.firstBadRows.compactMap { bad in
            bad.reason == .malformedToken ? ForeignToken.detect(bad.text) : nil
        }
        guard let kind = kinds.first else { return }
        let same = kinds.count { $0 == kind }
        guard same * 2 >= counts.firstBadRows.count else { return }
        let column = format == .lines ? "" : " in column '\(printable(layout.names[0]))'"
        throw .request(
            name,
            " holds \(kind.name)\(column), the first on line \(first.line): "
                + kind.remedy(file: shellWord(file), isColumn: format != .lines))
    }

    /// That no row has the column that says when its token was registered: a name with a slip in it
    /// would keep the oldest rows.
    package func noRegistration(_ column: String) throws(BroadsideError) -> BroadsideError {
        .usage(
            "registered-column",
            "'\(column)': no row of \(name) has it"
                + (try keyAdvice(for: column).map { ": \($0)" } ?? ": name another column"))
    }

    /// Which keys a JSON Lines list has where none is the one that is wanted; nil for other lists.
    package func keyAdvice(for wanted: String) throws(BroadsideError) -> String? {
        guard format == .jsonl else { return nil }
        var keys: [String] = []
        try readFirstRows { (row, reader) in
            keys = JSONKeys.read(reader.text(of: row))
            return keys.isEmpty
        }
        let last = wanted.pieces(at: ".").last
        let nearest =
            keys.first { $0.pieces(at: ".").last == last }
            ?? nearestName(to: wanted, among: keys)
        return (nearest.map { "did you mean \(printable($0))? " } ?? "")
            + "its first row has the keys \(shownColumns(keys)): name one, or a path such as "
            + "device.token for a key inside an object"
    }
}

extension ListSurvey.Counts {
    /// Whether a row has the token's column.
    var hasColumn: Bool { rows > withoutColumn }
}

/// The names of a list's columns, as a message shows them: none moves a cursor, none is a whole token.
package func shownColumns(_ columns: [String]) -> String {
    let limit = 24
    let shown = columns.prefix(limit).map { column in
        let isSecret = looksLikeToken(column)
        return printable(column, limit: isSecret ? 8 : 40)
            + (isSecret || column.unicodeScalars.count > 40 ? "…" : "")
    }
    let rest = columns.count > limit ? " and \(columns.count - limit) others" : ""
    return shown.joined(separator: ", ") + rest
}

/// Whether a name in a header is a device's token rather than a column's name.
func looksLikeToken(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    if bytes.count >= 16, TokenText.isToken(bytes) { return true }
    return ForeignToken.detect(bytes[...]) != nil
}
