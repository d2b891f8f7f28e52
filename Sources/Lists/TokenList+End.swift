import BroadsideHygiene
import BroadsideRows
import BroadsideSupport

extension TokenList {
    /// Numbers of bytes at the end of the list that are compared. More bytes are read only if the
    /// rows are long. A compressed list, and standard input, keep the largest number in memory.
    private static let endByteCounts: [UInt64] = [1 << 14, 1 << 17, 1 << 20]
    /// Number of line feeds that end enough rows for a comparison.
    private static let comparedLineCount = 3

    /// A last row that was probably cut off, because a disk was full or a copy was interrupted.
    struct EndProblem: Equatable {
        /// Description of the row; a sentence continues with it.
        var text: String
        /// Whether such a row may also be whole, because an app has tokens of several lengths.
        var mayBeWhole = false

        fileprivate static let zeroBytes = EndProblem(text: "contains zero bytes")
    }

    /// Returns the problem of a last row that was probably cut off; nil if the row seems complete.
    /// Such a row has no line end. It has fewer fields than each of the rows before, fewer digits
    /// than most of them, ends inside quotes, or is not a whole JSON object. Nothing proves that the
    /// row is incomplete.
    ///
    /// Only a list whose end is known is checked. The checksum of a compressed list proves nothing:
    /// a compressor that reads a pipe also ends the list if the program before it dies.
    func endProblem() throws(BroadsideError) -> EndProblem? {
        guard let byteCount, byteCount > 0 else { return nil }
        let lineFeed = UInt8(ascii: "\n")
        var (text, start) = ([UInt8](), byteCount)
        for count in Self.endByteCounts {
            start = byteCount - min(byteCount, count)
            var buffer = ReadBuffer(byteCount: Int(byteCount - start))
            try read(at: start, into: &buffer)
            text = [UInt8](buffer.bytes)
            guard text.last != lineFeed else { return nil }
            let lines = text.count { $0 == lineFeed }
            if start == 0 || lines >= Self.comparedLineCount { break }
        }
        // The text may begin in the middle of a line.
        guard start > 0 else { return problem(ofEnd: text[...], isWhole: true) }
        guard let first = text.firstIndex(of: lineFeed) else {
            return text.contains(0) ? .zeroBytes : nil
        }
        return problem(ofEnd: text[(first + 1)...], isWhole: false)
    }

    /// Row at the end of the list.
    private struct EndRow {
        /// Number of fields; 1 if rows have no fields.
        var fieldCount: Int
        /// Number of hexadecimal digits in the token's field; nil if that has other characters.
        var digitCount: Int?
        /// Whether the row breaks the rules of its format.
        var isUnreadable: Bool
        /// Whether the row ends inside quotes.
        var isOpen: Bool
    }

    /// - Parameters:
    ///   - text: End of the list, from the beginning of a line.
    ///   - isWhole: Whether the text is the whole list.
    private func problem(ofEnd text: ArraySlice<UInt8>, isWhole: Bool) -> EndProblem? {
        let lastLineFeed = text.lastIndex(of: UInt8(ascii: "\n"))
        let line = lastLineFeed.map { text[($0 + 1)...] } ?? text
        if line.contains(0) { return .zeroBytes }
        // A blank line is not a row.
        guard line.contains(where: { $0 > 0x20 }) else { return nil }
        let rows = endRows(Array(text))
        guard let last = rows.last else { return nil }
        guard format != .jsonl else {
            return last.isUnreadable && rows.contains { !$0.isUnreadable }
                ? EndProblem(text: "is not a complete JSON object") : nil
        }
        if last.isOpen { return EndProblem(text: "ends inside quotes") }
        // The first row may be the list's header, or the end of a field with line breaks.
        let before = rows.dropFirst().dropLast().filter { !$0.isUnreadable }
        guard !last.isUnreadable, let fewest = before.map(\.fieldCount).min() else { return nil }
        if last.fieldCount < fewest {
            return EndProblem(text: "fewer fields than the rows before")
        }
        let counts = before.compactMap(\.digitCount)
        // Only a token in the last field can be cut off without a loss of fields.
        guard (layout.tokenIndex ?? 0) == last.fieldCount - 1, let count = last.digitCount,
            !counts.contains(count), let usual = Self.mostFrequent(counts), count < usual
        else { return nil }
        return EndProblem(
            text: "fewer digits than the rows before",
            mayBeWhole: count >= TokenLengths.shortestIssued && count.isMultiple(of: 2))
    }

    /// Returns the rows of a text, which begins with a line.
    private func endRows(_ text: [UInt8]) -> [EndRow] {
        var reader = RowReader(layout: layout)
        var rows: [EndRow] = []
        // SAFETY: the bytes are alive and do not change until the closure ends. The reader is closed
        // before that.
        unsafe text.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe reader.open(start, from: 0, count: bytes.count, line: 1)
            while let row = reader.next() {
                let token = reader.field(0)
                let text = [UInt8](reader.text(of: row))
                let isUnreadable = reader.isUnreadable(row)
                rows.append(
                    EndRow(
                        fieldCount: isUnreadable ? 0 : layout.fieldCount(of: text),
                        digitCount: token.isText ? Self.digitCount(reader.value(token)) : nil,
                        isUnreadable: isUnreadable,
                        isOpen: reader.isRowOpen && endsInsideQuotes(text)))
            }
            _ = reader.close()
        }
        return rows
    }

    private func endsInsideQuotes(_ row: [UInt8]) -> Bool {
        var scanner = RowScanner(checking: format, shape: nil)
        var scan = 0
        guard scanner.begin(row.rawSpan, from: 0),
            scanner.nextEnd(in: row.rawSpan, from: &scan) == nil, scanner.fault == nil
        else { return false }
        _ = scanner.endOfText(at: row.count)
        return scanner.fault?.kind == .openQuote
    }

    private static func mostFrequent(_ counts: [Int]) -> Int? {
        Dictionary(grouping: counts) { $0 }.max {
            ($0.value.count, $0.key) < ($1.value.count, $1.key)
        }?
        .key
    }

    /// Number of hexadecimal digits of a token, which may have blanks and brackets, or a quote that
    /// is not closed; nil if the text has other characters.
    private static func digitCount(_ text: [UInt8]) -> Int? {
        let decoration = Array("\r <>\"".utf8)
        let token = text.filter { !decoration.contains($0) }
        return token.allSatisfy { Unicode.Scalar($0).properties.isASCIIHexDigit }
            ? token.count : nil
    }
}
