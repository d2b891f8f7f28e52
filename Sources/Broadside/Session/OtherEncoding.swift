import BroadsideLists
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// Finds the first row that is not UTF-8. Spreadsheets write such rows in the encoding of their
/// system. The values of such a row would make the payload invalid JSON.
struct OtherEncoding {
    /// Maximum number of rows with non-ASCII characters to examine.
    private static let examinedLimit = 10_000

    private var examined = 0
    /// Line of the first row that is not UTF-8.
    private(set) var line: UInt64?
    /// Line of the first row that is UTF-8 and has non-ASCII characters.
    private(set) var utf8Line: UInt64?

    /// Whether further rows change nothing.
    var isDecided: Bool { line != nil && utf8Line != nil || examined >= Self.examinedLimit }

    /// Examines the latest row.
    mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) {
        guard !isDecided else { return }
        let text = reader.text(of: row)
        guard ByteScan.hasNonASCII(text) else { return }
        examined += 1
        if isUTF8Text([UInt8](text)) {
            utf8Line = utf8Line ?? row.line
        } else {
            line = line ?? row.line
        }
    }

    /// Warns about the first row that is not UTF-8, with advice on converting the list.
    func warn(_ list: TokenList) {
        guard let line, list.format != .lines else { return }
        standardErrorLine(
            "broadside: warning: \(list.name): the row on line \(line) is not UTF-8 text, and its "
                + "values can't be part of a payload: \(list.encodingAdvice(utf8Line: utf8Line))")
    }
}
