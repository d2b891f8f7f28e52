/// Format of a token list.
public enum ListFormat: String, Sendable, CaseIterable {
    /// One token per line.
    case lines
    /// Comma-separated values with a header (RFC 4180).
    case csv
    /// CSV with semicolons, as spreadsheets write it if numbers contain commas.
    case semicolonCSV = "csv;"
    /// CSV with tabs.
    case tsv
    /// One JSON object per line.
    case jsonl

    /// Separator of fields; nil if rows have no fields.
    public var separator: UInt8? {
        switch self {
        case .csv: UInt8(ascii: ",")
        case .semicolonCSV: UInt8(ascii: ";")
        case .tsv: UInt8(ascii: "\t")
        case .lines, .jsonl: nil
        }
    }

    /// Whether a field in quotes may span lines. In tab-separated lists it may not, because most
    /// writers treat quotes as text and leave them unclosed.
    var quotesSpanLines: Bool { self == .csv || self == .semicolonCSV }

    /// Name of the format for users, without the separator.
    public var name: String { self == .semicolonCSV ? "csv" : rawValue }

    /// Whether the first row names the columns.
    public var hasHeader: Bool { separator != nil }

    /// Whether each row names its own columns.
    public var namesColumnsInEachRow: Bool { self == .jsonl }

    /// Whether `byte` may occur in a blank line.
    ///
    /// In TSV a tab separates empty fields, so a line of tabs is a row.
    func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\r")
            || (byte == UInt8(ascii: "\t") && self != .tsv)
    }
}

extension ListFormat {
    /// Detects a list's format from the extension of the file's name. If the extension is unknown,
    /// detects the format from the file's first bytes.
    ///
    /// - Parameters:
    ///   - fileName: The known extensions are `.csv`, `.tsv`, `.tab`, `.jsonl` and `.ndjson`. A
    ///     `.gz` or `.zst` after the extension is ignored.
    ///   - firstBytes: Beginning of the decoded list, with its first line if possible.
    ///   - tokenColumn: Name of the column of tokens. A first line with only this name is a header.
    public static func detect(
        fileName: String = "", firstBytes: [UInt8], tokenColumn: String
    ) -> ListFormat {
        named(fileName) ?? byContent(firstBytes, tokenColumn: tokenColumn)
    }

    /// Format by file name extension; nil for any other extension.
    public static func named(_ fileName: String) -> ListFormat? {
        var name = fileName.lowercased()
        for packed in [".gz", ".zst"] where name.hasSuffix(packed) {
            name.removeLast(packed.count)
        }
        let endings: [(String, ListFormat)] = [
            (".csv", .csv), (".tsv", .tsv), (".tab", .tsv), (".jsonl", .jsonl), (".ndjson", .jsonl),
        ]
        for (ending, format) in endings where name.hasSuffix(ending) { return format }
        return nil
    }

    private static func byContent(_ bytes: [UInt8], tokenColumn: String) -> ListFormat {
        var rest = bytes[...]
        if rest.starts(with: byteOrderMark) { rest = rest.dropFirst(byteOrderMark.count) }
        rest = rest.drop { $0 <= 0x20 }
        // The description of an NSData is not a JSON object.
        if ForeignToken.startsLikeDescription(rest) { return .lines }
        if rest.first == UInt8(ascii: "{") { return .jsonl }
        if SeparatorLine.format(rest) != nil { return .csv }
        let line = rest.prefix { $0 != UInt8(ascii: "\n") }
        if line.contains(UInt8(ascii: "\t")), !isOneToken(line) { return .tsv }
        if line.contains(UInt8(ascii: ",")) || line.contains(UInt8(ascii: ";")) { return .csv }
        var name = line
        while let last = name.last, last <= 0x20 { name.removeLast() }
        let column = Array(tokenColumn.lowercased().utf8)
        let quoted = [UInt8(ascii: "\"")] + column + [UInt8(ascii: "\"")]
        // Case is ignored, as in the search for columns.
        name = Array(String(decoding: name, as: UTF8.self).lowercased().utf8)[...]
        return name.elementsEqual(column) || name.elementsEqual(quoted) ? .csv : .lines
    }

    /// Finds the separator of a list that is declared as CSV. A first line such as `sep=;` decides.
    /// Otherwise the separator is a semicolon if the header has one outside quotes and has no
    /// comma. If the header has both, the separator that yields the wanted column is used.
    ///
    /// - Parameter firstBytes: Beginning of the decoded list, with its header if possible.
    public static func separator(_ firstBytes: [UInt8], tokenColumn: String) -> ListFormat {
        var header = firstBytes[...]
        if header.starts(with: byteOrderMark) { header = header.dropFirst(byteOrderMark.count) }
        header = header.drop { $0 <= 0x20 }
        if let format = SeparatorLine.format(header) { return format }
        var (hasComma, hasSemicolon, isQuoted) = (false, false, false)
        for (offset, byte) in zip(header.indices, header) {
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            if isQuoted { continue }
            if byte == UInt8(ascii: "\n") {
                header = header[..<offset]
                break
            }
            hasComma = hasComma || byte == UInt8(ascii: ",")
            hasSemicolon = hasSemicolon || byte == UInt8(ascii: ";")
        }
        guard hasSemicolon, hasComma else { return hasSemicolon ? .semicolonCSV : .csv }
        func hasToken(_ format: ListFormat) -> Bool {
            RowLayout.columns(Array(header), separator: format.separator ?? 0).contains {
                $0.lowercased() == tokenColumn.lowercased()
            }
        }
        return !hasToken(.csv) && hasToken(.semicolonCSV) ? .semicolonCSV : .csv
    }

    /// Whether a line has only one word between blanks. A tab in such a line separates no fields.
    private static func isOneToken(_ line: ArraySlice<UInt8>) -> Bool {
        let words = line.split { $0 <= 0x20 }
        return words.count == 1
    }

    /// UTF-8 byte-order mark, which some programs write at the start of a file.
    public static var byteOrderMark: [UInt8] { [0xef, 0xbb, 0xbf] }
}
