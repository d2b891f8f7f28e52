/// The lines above a table's header, such as a report's title.
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

    /// The likely header of a table: the line above the first row with a device token, if it has as
    /// many fields as that row and is not the first line.
    ///
    /// - Returns: The line, from 1, and its columns; nil if no line is likely.
    public static func likelyHeader(_ firstBytes: [UInt8]) -> (line: Int, columns: [String])? {
        let lines = firstBytes.split(
            separator: UInt8(ascii: "\n"), maxSplits: lineLimit, omittingEmptySubsequences: false
        ).prefix(lineLimit)
        guard
            let row = lines.firstIndex(where: { line in
                line.split { !ForeignToken.isLetterOrDigit($0) }
                    .contains(where: ForeignToken.isLongToken)
            }), row >= 2, lines[row].count < 4_096, lines[row - 1].count < 4_096
        else { return nil }
        let (header, first) = (Array(lines[row - 1]), Array(lines[row]))
        let separators = Array(",;\t".utf8)
        // A header without a separator has one column. It is split in any case, to trim it.
        for separator in separators.filter(header.contains) + separators.prefix(1) {
            let columns = RowLayout.columns(header, separator: separator)
            let fields = RowLayout.columns(first, separator: separator)
            guard columns.count == fields.count, columns.allSatisfy({ !$0.isEmpty }) else {
                continue
            }
            let isOne = columns.count == 1
            if !isOne || !separators.contains(where: { header.contains($0) || first.contains($0) })
            {
                return (row, columns)
            }
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
