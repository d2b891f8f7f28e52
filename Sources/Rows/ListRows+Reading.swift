import BroadsideSupport

extension ListRows {
    /// Replaces the rows with those of a chunk.
    ///
    /// - Parameters:
    ///   - chunk: The chunk, which remains the caller's.
    ///   - layout: Layout whose first column is the token.
    public mutating func read(_ chunk: RowChunk, layout: RowLayout) {
        precondition(RowChunk.capacity <= ListRows.textByteCountMax)
        begin(line: chunk.start.line)
        var reader = RowReader(layout: layout)
        reader.open(chunk)
        while let row = reader.next() {
            let field = reader.field(0)
            if append(line: row.line, { reader.readToken(field, into: &$0) == nil }) { continue }
            // The ledger keeps the same excerpt of a settled row.
            let text = TextExcerpt.of(reader.value(field))
            append(line: row.line, text: text.rawSpan, isToken: false)
        }
        _ = reader.close()
    }
}
