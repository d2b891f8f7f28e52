/// How a token list is written.
public enum ListFormat: String, Sendable, CaseIterable {
    /// One token a line.
    case lines
    /// Comma-separated values with a header (RFC 4180).
    case csv
    /// The same with tabs.
    case tsv
    /// A JSON object a line.
    case jsonl

    /// What stands between fields; nil where a row is not made of fields.
    public var separator: UInt8? {
        switch self {
        case .csv: UInt8(ascii: ",")
        case .tsv: UInt8(ascii: "\t")
        case .lines, .jsonl: nil
        }
    }

    /// Whether the first row names the columns.
    public var hasHeader: Bool { separator != nil }

    /// Whether `octet` counts as nothing when a line is asked whether it is blank.
    ///
    /// A tab separates empty fields in TSV, and a line of those is a row.
    func isBlank(_ octet: UInt8) -> Bool {
        octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\r")
            || (octet == UInt8(ascii: "\t") && self != .tsv)
    }
}

extension ListFormat {
    /// What a file's name, or else its first octets, say about the format.
    ///
    /// - Parameters:
    ///   - fileName: endings `.gz` and `.zst` are looked through; `.csv`, `.tsv`, `.tab`, `.jsonl`
    ///     and `.ndjson` decide.
    ///   - firstOctets: the decoded list's beginning, with its first line if possible.
    ///   - tokenColumn: a first line that is just this name is a header of one column.
    public static func detect(
        fileName: String, firstOctets: [UInt8], tokenColumn: String
    ) -> ListFormat {
        byName(fileName) ?? byContent(firstOctets, tokenColumn: tokenColumn)
    }

    private static func byName(_ fileName: String) -> ListFormat? {
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

    private static func byContent(_ octets: [UInt8], tokenColumn: String) -> ListFormat {
        var rest = octets[...]
        if rest.starts(with: byteOrderMark) { rest = rest.dropFirst(byteOrderMark.count) }
        rest = rest.drop { $0 <= 0x20 }
        if rest.first == UInt8(ascii: "{") { return .jsonl }
        let line = rest.prefix { $0 != UInt8(ascii: "\n") }
        if line.contains(UInt8(ascii: "\t")), !isOneToken(line) { return .tsv }
        if line.contains(UInt8(ascii: ",")) { return .csv }
        var name = line
        while let last = name.last, last <= 0x20 { name.removeLast() }
        let column = Array(tokenColumn.utf8)
        let quoted = [UInt8(ascii: "\"")] + column + [UInt8(ascii: "\"")]
        return name.elementsEqual(column) || name.elementsEqual(quoted) ? .csv : .lines
    }

    /// Digits with blanks only round them: a tab there does not make fields.
    private static func isOneToken(_ line: ArraySlice<UInt8>) -> Bool {
        let words = line.split { $0 <= 0x20 }
        return words.count == 1
    }

    /// UTF-8's byte-order mark, which some programs put at a file's start.
    static var byteOrderMark: [UInt8] { [0xef, 0xbb, 0xbf] }
}
