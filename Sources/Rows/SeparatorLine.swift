/// First line `sep=;` of a CSV file, which names the separator of columns for Excel. It is neither
/// a header nor a row.
public enum SeparatorLine {
    /// Maximum number of bytes of a line `sep=;`, with quotes and blanks.
    public static let lengthLimit = 16

    /// Returns the separator named by a list's first line; nil for any other line.
    ///
    /// - Parameter line: The line, with or without its line end.
    public static func separator(_ line: some Sequence<UInt8>) -> UInt8? {
        var text = Array(line.prefix(lengthLimit + 1))
        guard text.count <= lengthLimit else { return nil }
        while let last = text.last, last == 0x0a || last == 0x0d || last == 0x20 {
            text.removeLast()
        }
        if text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\""), text.count > 2 {
            text = Array(text[1..<text.count - 1])
        }
        guard text.count == 5, let separator = text.last,
            zip(text, "sep=".utf8).allSatisfy({ $0 | ($1 == UInt8(ascii: "=") ? 0 : 0x20) == $1 })
        else { return nil }
        return separator
    }

    /// Returns the format of a list whose first line names its separator; nil for any other line or
    /// separator.
    static func format(_ firstBytes: ArraySlice<UInt8>) -> ListFormat? {
        guard
            let named = separator(
                firstBytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") })
        else { return nil }
        return [.csv, .semicolonCSV, .tsv].first { $0.separator == named }
    }
}
