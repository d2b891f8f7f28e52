import BroadsideSupport

extension ListRows {
    /// Reads a chunk's rows, in place of those that are here.
    ///
    /// - Parameters:
    ///   - chunk: the caller's, before and after.
    ///   - layout: its first column is the token's.
    public mutating func read(_ chunk: RowChunk, layout: RowLayout) {
        precondition(RowChunk.capacity <= ListRows.textByteCountMax)
        begin(line: chunk.start.line)
        var reader = RowReader(layout: layout)
        reader.open(chunk)
        while let row = reader.next() {
            let field = reader.field(0)
            if append(line: row.line, { reader.readToken(field, into: &$0) == nil }) { continue }
            // As much of it as the ledger keeps of a row that was settled.
            let text = TextExcerpt.of(reader.value(field))
            append(line: row.line, text: text.rawSpan, isToken: false)
        }
        _ = reader.close()
    }
}
