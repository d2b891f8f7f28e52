/// Lines above a table's header, such as a report's title.
public enum TitleLines {
    /// Maximum number of lines that are searched.
    private static let lineLimit = 100

    /// Line of a list's header, from 1; nil if the header is on the first line or not found.
    ///
    /// - Parameters:
    ///   - firstBytes: Beginning of the decoded list.
    ///   - tokenColumn: Name of a column that identifies the header.
    public static func headerLine(_ firstBytes: [UInt8], tokenColumn: String) -> Int? {
        var text = firstBytes[...]
        if text.starts(with: ListFormat.byteOrderMark) { text = text.dropFirst(3) }
        let lines = text.split(
            separator: UInt8(ascii: "\n"), maxSplits: lineLimit, omittingEmptySubsequences: false)
        for (index, line) in lines.prefix(lineLimit).enumerated() {
            if names(line, tokenColumn) { return index == 0 ? nil : index + 1 }
            // A row comes before the header, so the list has no title.
            let words = line.split { !ForeignToken.isLetterOrDigit($0) }
            if words.contains(where: ForeignToken.isLongToken) { return nil }
        }
        return nil
    }

    private static func names(_ line: ArraySlice<UInt8>, _ column: String) -> Bool {
        // A line of this length is a row, not a header, and need not be parsed.
        guard line.count < 4_096 else { return false }
        return Array(",;\t".utf8).contains { separator in
            RowLayout.columns(Array(line), separator: separator).contains {
                $0.lowercased() == column.lowercased()
            }
        }
    }
}
