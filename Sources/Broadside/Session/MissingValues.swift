import BroadsideHygiene
import BroadsideLists
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

/// Warnings about words such as NULL in a column, which mean a missing value, about escapes such as
/// `\n` in a TSV list, and about damaged texts. A run sends all of them as text.
enum MissingValues {
    /// Limit on the rows in which columns other than the token column are checked.
    private static let rowLimit: UInt64 = 1000
    /// Limit on the columns that are checked in each row.
    private static let columnLimit = 200

    /// Warns about each column that contains a word such as NULL.
    static func warn(of words: MissingWords, in layout: RowLayout, of list: TokenList) {
        for (name, occurrence) in zip(layout.names, words.occurrences) {
            guard let occurrence else { continue }
            let column = layout.format == .lines ? "" : " in column '\(printable(name, limit: 40))'"
            let others = otherRows(occurrence.rows - 1)
            standardErrorLine(
                "broadside: warning: \(list.name): line \(occurrence.line) has the word "
                    + "'\(occurrence.word)'\(column)\(others): such a word is sent as text; export missing "
                    + "values as empty fields")
        }
    }

    /// Warns about each column of a TSV list that contains an escape such as `\n`, and about texts
    /// that end at an escaped line break or tab.
    static func warn(of escapes: TabEscapes, in layout: RowLayout, of list: TokenList) {
        if let cut = escapes.cutTexts {
            standardErrorLine(
                "broadside: warning: \(list.name): line \(cut.line) has a text that ends with a "
                    + "backslash\(otherRows(cut.rows - 1)): MySQL's INTO OUTFILE writes a backslash "
                    + "before a line break or a tab, but in a list these end the text, so only its "
                    + "beginning is sent; export the list as JSON Lines")
        }
        for (name, occurrence) in zip(layout.names, escapes.occurrences) {
            guard let occurrence else { continue }
            let others = otherRows(occurrence.rows - 1)
            standardErrorLine(
                "broadside: warning: \(list.name): line \(occurrence.line) has the escape "
                    + "'\(occurrence.escape)' in column '\(printable(name, limit: 40))'\(others): escapes "
                    + "are sent as text; export the list as CSV or JSON Lines")
        }
    }

    /// Warns about each column that contains texts that a program has damaged.
    static func warn(of damage: DamagedTexts, in layout: RowLayout, of list: TokenList) {
        for (field, name) in layout.names.enumerated() {
            for sign in DamagedTexts.Sign.allCases {
                guard let occurrence = damage.occurrence(of: sign, in: field) else { continue }
                let others = otherRows(occurrence.rows - 1)
                let (what, advice) = words(sign, occurrence.text)
                standardErrorLine(
                    "broadside: warning: \(list.name): line \(occurrence.line) has \(what) in column "
                        + "'\(printable(name, limit: 40))'\(others): \(advice)")
            }
        }
    }

    private static func words(
        _ sign: DamagedTexts.Sign, _ text: String
    ) -> (what: String, advice: String) {
        switch sign {
        case .lostCharacter:
            (
                "U+FFFD (\(text)) in place of a lost character",
                "export the list again as UTF-8, from the data before this loss"
            )
        case .object:
            ("'\(text)'", "this is sent as text; export one of the object's values in its place")
        case .entity:
            (
                "'\(text)'",
                "devices show this as it is, because an alert is not HTML; export the character "
                    + "itself"
            )
        }
    }

    /// Text about the number of further rows with the same problem, to append to a warning about
    /// one row; empty if there are none.
    private static func otherRows(_ count: UInt64) -> String {
        switch count {
        case 0: ""
        case 1: ", and so does 1 more row"
        default: ", and so do \(grouped(count)) more rows"
        }
    }

    /// Checks the first rows of a table for words such as NULL, for escapes and for damaged texts,
    /// in all columns except the token column.
    ///
    /// - Parameter header: Header of the list.
    static func warnOfOtherColumns(of list: TokenList, header: [UInt8]?) {
        guard let separator = list.format.separator, let header else { return }
        let names = RowLayout.columns(header, separator: separator).filter { name in
            !name.isEmpty && name.lowercased() != list.layout.names[0].lowercased()
        }.prefix(columnLimit)
        guard !names.isEmpty,
            let layout = try? RowLayout(format: list.format, names: Array(names), header: header)
        else { return }
        var words = MissingWords(layout)
        var escapes = TabEscapes(layout)
        var damage = DamagedTexts(layout)
        do throws(BroadsideError) {
            let first = ListSelection(rows: CampaignRows(limit: rowLimit))
            var rows = try RowCursor(list, first, layout: layout)
            while let row = try rows.next() {
                words.take(row, of: rows.reader)
                escapes.take(row, of: rows.reader)
                damage.take(row, of: rows.reader)
            }
        } catch {
            // Input that can be read only once, such as a pipe, has already been read.
            return
        }
        warn(of: words, in: layout, of: list)
        warn(of: escapes, in: layout, of: list)
        warn(of: damage, in: layout, of: list)
    }
}
