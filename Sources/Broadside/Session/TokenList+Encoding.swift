import BroadsideLists
import BroadsideRows
import BroadsideSupport

extension TokenList {
    /// Advice on a list with rows that are not UTF-8.
    ///
    /// The bytes of a text do not name their encoding: almost any text can be read as
    /// WINDOWS-1252. So no encoding is assumed. As `ENCODING` is unknown to iconv, the command
    /// writes nothing until it is replaced.
    ///
    /// - Parameter utf8Line: Line of a row that is UTF-8 text with non-ASCII characters; nil if
    ///   there is none. A conversion of the whole list would encode such rows twice.
    func encodingAdvice(utf8Line: UInt64?) -> String {
        if let utf8Line {
            return "the row on line \(utf8Line) is UTF-8 text; if it looks right, only some rows "
                + "are in another encoding: write these rows as UTF-8 before you join them with "
                + "the others, because iconv converts all rows, and check the texts with --preview 3"
        }
        return "write the list as UTF-8 (\(command.filter("iconv -f ENCODING -t UTF-8"))), where "
            + "ENCODING is that of the program that exported the list (often WINDOWS-1252 in "
            + "Western Europe, WINDOWS-1250 in Central Europe, WINDOWS-1251 for Cyrillic, "
            + "SHIFT_JIS in Japan); a wrong one garbles the texts: check them with --preview 3"
    }

    /// Limit on the rows in which UTF-8 text is searched for.
    private static let encodingRowLimit: UInt64 = 100_000

    /// Advice on a list with rows that are not UTF-8, after a look at its rows.
    ///
    /// Input that can be read only once, such as a pipe, is not examined.
    func encodingAdvice() -> String {
        var encoding = OtherEncoding()
        do throws(BroadsideError) {
            let first = ListSelection(rows: CampaignRows(limit: Self.encodingRowLimit))
            var rows = try RowCursor(self, first)
            while !encoding.isDecided, let row = try rows.next() {
                encoding.take(row, of: rows.reader)
            }
        } catch {
            return encodingAdvice(utf8Line: nil)
        }
        return encodingAdvice(utf8Line: encoding.utf8Line)
    }
}

/// Whether bytes are text in UTF-8.
func isUTF8Text(_ bytes: [UInt8]) -> Bool { String(validating: bytes, as: UTF8.self) != nil }
