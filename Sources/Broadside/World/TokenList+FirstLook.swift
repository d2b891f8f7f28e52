import APNs
import Campaign

extension TokenList {
    /// Rows that are looked at.
    private static let firstLookRows = 1000

    /// A list whose first rows hold no token at all is most likely the wrong file, or has another
    /// form: nothing is refused, but a campaign that reaches nobody is told of before it starts.
    ///
    /// - Returns: The warning; nil where there is a token.
    func firstLook() throws(BroadsideError) -> String? {
        let source = try ListSource(
            list: self, pool: ChunkPool(limit: 3), plan: nil, rowsLimit: nil)
        guard let chunk = try source.next(rowLimit: Self.firstLookRows) else {
            return "\(name) holds no row: nobody gets this campaign"
        }
        var survey = ListSurvey()
        var reader = RowReader(layout: layout)
        reader.open(chunk)
        while let row = reader.next() { _ = survey.take(row, of: reader) }
        _ = reader.close()
        guard survey.counts.valid == 0, let bad = survey.counts.firstBadRows.first else {
            return nil
        }
        let rows = survey.counts.rows
        let (subject, article) =
            rows == 1 ? ("its row", "no") : ("none of its first \(rows) rows", "a")
        let column = layout.names.first ?? Self.defaultTokenColumn
        let verb = bad.reason == .missingColumn ? "has" : "holds"
        let start = "\(name): \(subject) \(verb) \(article)"
        if bad.reason == .missingColumn {
            return "\(start) '\(column)': name the tokens' key with --token-column"
        }
        return
            "\(start) device token, line \(bad.line) is '\(bad.text)': hexadecimal digits in pairs "
            + "are wanted; is it the right file, with the right --format and --token-column?"
    }
}
