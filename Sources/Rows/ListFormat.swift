/// How a token list is written.
public enum ListFormat: String, Sendable, CaseIterable {
    /// One token a line.
    case lines
    /// Comma-separated values with a header (RFC 4180).
    case csv
    /// The same with semicolons, as spreadsheets write them where a comma stands in numbers.
    case semicolonCSV = "csv;"
    /// The same with tabs.
    case tsv
    /// A JSON object a line.
    case jsonl

    /// What stands between fields; nil where a row is not made of fields.
    public var separator: UInt8? {
        switch self {
        case .csv: UInt8(ascii: ",")
        case .semicolonCSV: UInt8(ascii: ";")
        case .tsv: UInt8(ascii: "\t")
        case .lines, .jsonl: nil
        }
    }

    /// Whether a field in quotes may go over several lines. Where tabs are, quotes are text to most
    /// writers, who close none.
    var quotesSpanLines: Bool { self == .csv || self == .semicolonCSV }

    /// How users call it; the separator is not part of that.
    public var name: String { self == .semicolonCSV ? "csv" : rawValue }

    /// Whether the first row names the columns.
    public var hasHeader: Bool { separator != nil }

    /// Whether each row names its own columns.
    public var namesColumnsInEachRow: Bool { self == .jsonl }

    /// Whether `byte` counts as nothing when a line is asked whether it is blank.
    ///
    /// A tab separates empty fields in TSV, and a line of those is a row.
    func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\r")
            || (byte == UInt8(ascii: "\t") && self != .tsv)
    }
}

extension ListFormat {
    /// What a file's name, or else its first bytes, say about the format.
    ///
    /// - Parameters:
    ///   - fileName: endings `.gz` and `.zst` are looked through; `.csv`, `.tsv`, `.tab`, `.jsonl`
    ///     and `.ndjson` decide.
    ///   - firstBytes: the decoded list's beginning, with its first line if possible.
    ///   - tokenColumn: a first line that is just this name is a header of one column.
    public static func detect(
        fileName: String = "", firstBytes: [UInt8], tokenColumn: String
    ) -> ListFormat {
        named(fileName) ?? byContent(firstBytes, tokenColumn: tokenColumn)
    }

    /// What a file's name says about the format.
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
        // The description of an NSData is not an object.
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
        // In any case, as columns are found.
        name = Array(String(decoding: name, as: UTF8.self).lowercased().utf8)[...]
        return name.elementsEqual(column) || name.elementsEqual(quoted) ? .csv : .lines
    }

    /// What separates the columns of a list that is called CSV: what a first line `sep=;` says; a
    /// semicolon where its header has one outside quotes and no comma; where it has both, whichever gives
    /// a column that is wanted.
    ///
    /// - Parameter firstBytes: the decoded list's beginning, with its header if possible.
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

    /// Digits with blanks only round them: a tab there does not make fields.
    private static func isOneToken(_ line: ArraySlice<UInt8>) -> Bool {
        let words = line.split { $0 <= 0x20 }
        return words.count == 1
    }

    /// UTF-8's byte-order mark, which some programs put at a file's start.
    public static var byteOrderMark: [UInt8] { [0xef, 0xbb, 0xbf] }
}
