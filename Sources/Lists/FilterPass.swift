package import BroadsideRows
package import BroadsideSupport

/// A pass of a filter over the rows of a list. It decides which rows the filter excludes, and
/// records values that could not be compared.
package struct FilterPass {
    /// Statistics of a condition's column.
    private struct Column {
        /// Index of the field in each row.
        let field: Int
        /// Whether any row has a value in the column.
        var hasValue = false
        /// Whether any row has a text or number in the column.
        var hasText = false
        var nested = NestedValues()
        /// Evidence that numbers with one dot, such as 5.9 and 5.10, are versions; nil if it does
        /// not matter for the condition.
        var dottedNumbers: DottedNumbers?
        /// Whether any value could be compared.
        var hasComparable = false
        /// Number of values that cannot be compared with the condition's bound. The first of them
        /// is `firstText`, on line `firstLine`.
        var incomparable: UInt64 = 0
        var firstLine: UInt64 = 0
        var firstText = ""
        /// Whether the first value that cannot be compared with the bound is a version.
        var isFirstVersion = false
        /// For `=` and `!=`: the texts of the set that occur in the column, and other values of the
        /// column.
        var occurrences: SetOccurrences
        /// Result of the condition for a value that is in the condition's set. nil for a condition
        /// with `<`, `<=`, `>` or `>=`. Also nil once all texts of the set have occurred.
        var setMatch: RowFilter.Match?
        /// For `=` and `!=`: other spellings of the set's texts that decide whether rows are sent.
        var spellings: OtherSpellings
        /// Whether the condition is `!=`, and no condition names the wanted values of the column
        /// with `=`.
        let keepsUnnamed: Bool
    }

    /// Number of rows at the start of the list whose values are recorded, for the warning about
    /// texts of a set that do not occur.
    private static let sampledRows: UInt64 = 1_000

    private let filter: RowFilter
    private var columns: [Column]
    /// Number of rows that were tested.
    private var rowCount: UInt64 = 0

    /// - Parameter layout: A layout with every column that the filter reads.
    package init(_ filter: RowFilter, layout: RowLayout) {
        self.filter = filter
        columns = filter.conditions.map { condition in
            guard let field = layout.field(named: condition.column) else {
                preconditionFailure("the layout was made for other columns")
            }
            return Column(
                field: field, dottedNumbers: condition.bound?.mayBeVersion == true ? .init() : nil,
                occurrences: SetOccurrences(condition.texts.count), setMatch: condition.setMatch,
                spellings: OtherSpellings(of: condition.texts),
                keepsUnnamed: condition.comparison == .notEqual
                    && !filter.conditions.contains {
                        $0.comparison == .equal && $0.column == condition.column
                    })
        }
    }

    /// Whether the filter excludes the latest row, because a condition does not hold. A row that
    /// can't be read is not tested: it is settled as invalid.
    package mutating func leavesOut(
        _ row: RowReader.Row, _ reader: borrowing RowReader
    ) -> Bool {
        if !reader.field(0).isText, reader.isUnreadable(row) { return false }
        rowCount += 1
        var failureCount = 0
        var lastFailure = 0
        for index in columns.indices {
            let field = reader.field(columns[index].field)
            if field.form != .missing {
                columns[index].hasValue = true
                if field.isText {
                    columns[index].hasText = true
                    if columns[index].spellings.isColumnWatched {
                        columns[index].spellings.noteInColumn(reader.text(field).withoutBlanks)
                    }
                } else {
                    columns[index].nested.note(line: row.line)
                }
                if columns[index].dottedNumbers != nil { noteNumber(index, field, reader) }
            }
            let match = filter.conditions[index].match(field, in: reader)
            if match != .incomparable, field.form != .missing {
                columns[index].hasComparable = true
            }
            if match == columns[index].setMatch { noteInSet(index, field, reader) }
            if rowCount <= Self.sampledRows { sample(index, field, reader) }
            if match == .holds { continue }
            failureCount += 1
            lastFailure = index
            if match == .incomparable { note(index, row, field, reader) }
        }
        if failureCount == 0 {
            for index in columns.indices where columns[index].keepsUnnamed {
                noteSpelling(index, row, reader)
            }
        } else if failureCount == 1, filter.conditions[lastFailure].comparison == .equal {
            noteSpelling(lastFailure, row, reader)
        }
        return failureCount > 0
    }

    /// Records the row's value if it is another spelling of a text of the set, and if this decides
    /// whether the row is sent. The value is not in the set.
    private mutating func noteSpelling(
        _ index: Int, _ row: RowReader.Row, _ reader: borrowing RowReader
    ) {
        let field = reader.field(columns[index].field)
        guard field.isText else { return }
        columns[index].spellings.note(reader.text(field).withoutBlanks, line: row.line)
    }

    /// Records that a row has a text of the set.
    @inline(never)
    private mutating func noteInSet(
        _ index: Int, _ field: RowReader.Field, _ reader: borrowing RowReader
    ) {
        let text = reader.text(field).withoutBlanks
        guard let number = filter.conditions[index].index(of: text) else {
            preconditionFailure("the value was found in the set")
        }
        columns[index].occurrences.note(number)
        if columns[index].occurrences.isComplete { columns[index].setMatch = nil }
    }

    private mutating func noteNumber(
        _ index: Int, _ field: RowReader.Field, _ reader: borrowing RowReader
    ) {
        guard field.isText, columns[index].dottedNumbers?.areVersions == false else { return }
        columns[index].dottedNumbers?.note(reader.text(field).withoutBlanks)
    }

    /// Records a value of a column, for a message. Tokens are secret, so values of the token column
    /// are not recorded.
    private mutating func sample(
        _ index: Int, _ field: RowReader.Field, _ reader: borrowing RowReader
    ) {
        guard filter.conditions[index].comparison.isOfSet, columns[index].field > 0, field.isText
        else { return }
        columns[index].occurrences.sample(reader.text(field).withoutBlanks)
    }

    private mutating func note(
        _ index: Int, _ row: RowReader.Row, _ field: RowReader.Field, _ reader: borrowing RowReader
    ) {
        // An empty text has no kind, so it is not counted as a value of another kind.
        guard field.count > 0 else { return }
        if columns[index].incomparable == 0 {
            columns[index].firstLine = row.line
            columns[index].firstText = ForeignText.escapedName(
                tokenExcerpt(reader.value(field)))
            columns[index].isFirstVersion = VersionText.dotCount(reader.text(field)) ?? 0 >= 2
        }
        columns[index].incomparable += 1
    }

    /// Warns about values that could not be compared or do not occur, after all rows of a list were
    /// read.
    ///
    /// - Parameters:
    ///   - mayRefuse: Whether the list is the whole table of a campaign that has not begun. If so, a
    ///     condition that no value of its column can meet is an error. The same applies to a column
    ///     without a value in any row of JSON Lines: its name is probably misspelled, and would
    ///     exclude all rows or none.
    ///   - isBegun: Whether the campaign has begun, so that its filter can't be changed. If not, rows
    ///     that the filter keeps because of another spelling of a boolean are an error.
    package func finish(
        _ list: TokenList, mayRefuse: Bool, isBegun: Bool
    ) throws(BroadsideError) {
        assert(!mayRefuse || !isBegun, "a campaign that has begun is not refused")
        for (condition, column) in zip(filter.conditions, columns) where rowCount > 0 {
            let text = ForeignText.escapedName(printable(condition.canonicalText))
            let start = "broadside: warning: --where '\(text)': "
            if list.format.namesColumnsInEachRow, !column.hasValue {
                let advice = try list.keyAdvice(for: condition.column).map { ": \($0)" }
                let problem =
                    "no row of \(list.name) has a value of '\(printable(condition.column))'"
                if mayRefuse {
                    throw .usage(
                        "where",
                        "'\(text)': \(problem)"
                            + (advice ?? ": name another column"))
                }
                standardErrorLine(start + problem + (advice ?? ""))
                continue
            }
            if mayRefuse, let problem = refusal(of: condition, column, list) {
                throw .usage("where", "'\(text)': \(problem)")
            }
            if !isBegun, let problem = condition.keepsOtherSpellings(column.spellings) {
                throw .usage("where", "'\(text)': \(problem)")
            }
            for warning in warnings(of: condition, column) { standardErrorLine(start + warning) }
        }
    }

    /// Returns why the condition is probably a mistake, judged by all values of the column; nil if
    /// nothing suggests a mistake.
    private func refusal(
        of condition: RowFilter.Condition, _ column: Column, _ list: TokenList
    ) -> String? {
        if column.nested.count > 0, !column.hasText {
            return column.nested.problem(of: condition.column)
        }
        if let bound = condition.bound, column.incomparable > 0, !column.hasComparable {
            return
                "no row of \(list.name) has a value that is \(bound.kindName), so no device would "
                + "get this campaign: line \(column.firstLine) has '\(column.firstText)'"
                + (column.isFirstVersion ? bound.versionAdvice : "")
        }
        return condition.selectsNobody(column.occurrences, of: "\(list.name)")
    }

    private func warnings(of condition: RowFilter.Condition, _ column: Column) -> [String] {
        var warnings = condition.spellingWarnings(column.spellings)
        // Another spelling of the only value explains why that value may be absent.
        let isExplained = !warnings.isEmpty && condition.texts.count == 1
        if !isExplained,
            let warning = condition.absenceWarning(column.occurrences) ?? condition.versionWarning
        {
            warnings.append(warning)
        }
        if column.nested.count > 0, condition.comparison.isOfSet {
            warnings.append(
                column.nested.subject
                    + (condition.comparison == .notEqual
                        ? ": such a value differs from every text, so this condition keeps these "
                            + "rows"
                        : ": such a value does not match"))
        }
        guard let bound = condition.bound else { return warnings }
        if let example = column.dottedNumbers?.example {
            warnings.append(
                "'\(example)' is compared as a number, and so are all values with one dot"
                    + bound.versionAdvice)
        }
        if column.incomparable > 0 {
            let rows =
                column.incomparable == 1 ? "1 row has" : "\(grouped(column.incomparable)) rows have"
            warnings.append(
                "\(rows) a value that is not \(bound.kindName), the first on line "
                    + "\(column.firstLine) ('\(column.firstText)'): such values do not match"
                    + (column.isFirstVersion ? bound.versionAdvice : ""))
        }
        return warnings
    }
}

/// Evidence from a column's values that numbers with one dot are versions: digits after the dot end
/// with 0, as in 5.10, but not all values have the same number of digits there.
private struct DottedNumbers {
    /// First value such as 5.10, which ends with 0; nil if there was none yet.
    private var zeroAtEnd: String?
    private var hasOneDigit = false

    /// An example of a value that is a version rather than a number; nil if there is none.
    var example: String? { hasOneDigit ? zeroAtEnd : nil }

    var areVersions: Bool { example != nil }

    mutating func note(_ text: RawSpan) {
        guard VersionText.dotCount(text) == 1, text.byteCount >= 3 else { return }
        let end = text.byteCount
        if text.byte(at: end - 2) == UInt8(ascii: ".") {
            hasOneDigit = true
        } else if zeroAtEnd == nil, text.byte(at: end - 1) == UInt8(ascii: "0"), end <= 16 {
            zeroAtEnd = String(decoding: [UInt8](text), as: UTF8.self)
        }
    }
}
