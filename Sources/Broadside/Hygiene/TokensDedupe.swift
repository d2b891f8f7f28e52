import BroadsideHygiene
import BroadsideLedgers
import BroadsideLists
import BroadsideRows
public import BroadsideSupport

/// Runs `tokens dedupe`: writes a list with one row per token, or per value of a column.
public enum TokensDedupe {
    /// The counts of one run of `tokens dedupe`.
    public struct Result: Sendable {
        /// Number of rows in the list.
        public var rows: UInt64 = 0
        /// Number of rows that were removed.
        public var removed: UInt64 = 0
        /// Number of rows without a device token, which are kept.
        public var withoutToken: UInt64 = 0
        /// Number of rows with a token whose time of registration is unreadable.
        public var unreadableRegistrations: UInt64 = 0
        /// Line of the first row whose time of registration is unreadable.
        public var firstUnreadableLine: UInt64?
        /// Number of rows that have a value in the registration column.
        var withRegistration: UInt64 = 0
        /// Number of rows that have a token, but no value in the column `Rule.column`. These rows
        /// stay.
        public var withoutValue: UInt64 = 0
        /// Rows with a word such as NULL in the column `Rule.column`. `withoutValue` includes these
        /// rows.
        var nulls = UnusableValues()
        /// Rows with a number that a spreadsheet rounded in the column `Rule.column`. `withoutValue`
        /// includes these rows.
        var rounded = UnusableValues()
        /// Rows with a JSON array or object in the column `Rule.column`. `withoutValue` includes
        /// these rows.
        var nested = NestedValues()
        /// Numbers in the column `Rule.column`.
        var numbers = NumberForms()
    }

    /// The values that an unusually large number of rows share. Such values are probably not IDs of
    /// users.
    private struct SharedValues {
        /// Largest usual number of rows for one user.
        static let usualRows: UInt64 = 100

        /// Number of values that more than `usualRows` rows share.
        var count = 0
        /// Number of rows that have the most frequent value.
        var mostRows: UInt64 = 0
        /// Byte range of the row that is kept among all rows with the most frequent value (see
        /// `bytesWord`).
        var mostKept: UInt64 = 0

        /// - Parameter rows: Number of rows found so far that have the value.
        mutating func note(_ rows: UInt64, kept: UInt64) {
            if rows == Self.usualRows + 1 { count += 1 }
            if rows > mostRows { (mostRows, mostKept) = (rows, kept) }
        }
    }

    /// Rule that groups rows and decides which row of a group stays.
    public struct Rule: Sendable {
        /// Column whose equal values form a group, such as a user's ID; nil for the token.
        public var column: String?
        /// Column with times; the row with the newest time stays. nil: the first row stays.
        public var newestColumn: String?
        /// Option that named `newestColumn`, for messages.
        public var newestOption: String

        /// Creates a rule. Without columns, it keeps the first row of each token.
        public init(
            column: String? = nil, newestColumn: String? = nil,
            newestOption: String = "registered-column"
        ) {
            self.column = column
            self.newestColumn = newestColumn
            self.newestOption = newestOption
        }
    }

    /// Reads the list once to find the rows that stay, and again to copy them.
    ///
    /// - Parameters:
    ///   - options: The list that is read.
    ///   - path: Path of the new list. The list is written to a file beside this path, and that
    ///     file is then renamed to the path.
    ///   - rule: Rule that groups rows and decides which row of a group stays.
    /// - Returns: A human-readable summary, a few lines.
    public static func run(
        _ options: TokensOptions, output path: String, rule: Rule
    ) throws(BroadsideError) -> String {
        let list = try TokenList(
            .file(options.tokens), format: options.format, tokenColumn: options.tokenColumn,
            otherColumns: [rule.newestColumn, rule.column].compactMap(\.self), isReadAgain: true)
        try check(path, list)
        let output = try OutputFile(
            path, option: "output", permissions: list.permissions)
        let directory = temporaryDirectory()
        var tokens = RecordSorter(directory: directory)
        var result = try read(list, rule, into: &tokens)
        let withToken = result.rows - result.withoutToken
        guard withToken > 0 else { throw list.withoutToken(rows: result.rows) }
        assert(result.withoutValue <= withToken, "a row is counted for one reason")
        if let column = rule.newestColumn, result.withRegistration == 0 {
            throw try list.noRow(with: column, option: rule.newestOption)
        }
        if let column = rule.column, result.withoutValue == withToken {
            if result.nested.count > 0 {
                throw .usage("by", "'\(shownColumn(column))': \(result.nested.problem(of: column))")
            }
            if let problem = result.rounded.roundedProblem {
                throw .usage(
                    "by", "'\(shownColumn(column))': \(problem): \(UnusableValues.roundedAdvice)")
            }
            throw try list.noRow(with: column, option: "by")
        }
        var removedRows = RecordSorter(directory: directory)
        var shared = SharedValues()
        result.removed = try findRemovedRows(&tokens, into: &removedRows, shared: &shared)
        assert(
            result.removed == 0 || result.removed < withToken - result.withoutValue,
            "at least one row per token stays")
        if let column = rule.newestColumn, result.removed > 0,
            result.unreadableRegistrations == withToken - result.withoutValue
        {
            throw .unreadableRegistrations(
                column, option: rule.newestOption, in: list.name,
                firstLine: result.firstUnreadableLine)
        }
        if let column = rule.column, let field = valueField(rule), shared.count > 0 {
            try warn(of: shared, in: column, field: field, of: list)
        }
        try copy(list, without: &removedRows, to: output)
        // The list may have been moved to the output's path in the meantime.
        try check(path, list)
        try output.finish()
        return summary(result, rule)
    }

    private static func check(_ path: String, _ list: TokenList) throws(BroadsideError) {
        guard path != "-" else {
            throw .usage(
                "output",
                "- is standard output, where a failure could leave half of the list: name a file")
        }
        try OutputRule.checkDestination(option: "output", path: path)
        guard let existing = FileIdentity(path: path) else { return }
        guard existing != list.identity else {
            throw .usage(
                "output",
                "\(path) is the list that is being read: write to another file, "
                    + "then rename that file to \(path)")
        }
        guard existing.isRegular else {
            throw .usage("output", "\(path) is not a regular file: name a file")
        }
    }

    /// Collects a record for each row that may be removed. The record has the digest of the row's
    /// token or value, the row's age (0 for the newest), and its byte range.
    private static func read(
        _ list: TokenList, _ rule: Rule, into tokens: inout RecordSorter
    ) throws(BroadsideError) -> Result {
        let hasRegistration = rule.newestColumn != nil
        let keyField = valueField(rule)
        var survey = ListSurvey()
        let registrationTime = RegistrationTime(nowMilliseconds: Clock.now().wallMilliseconds)
        var result = Result()
        var rows = try RowCursor(list, showsProgress: true)
        while let row = try rows.next() {
            let count = survey.take(row, of: rows.reader)
            if hasRegistration, rows.reader.field(1).form != .missing {
                result.withRegistration += 1
            }
            if count == 0 {
                result.withoutToken += 1
                continue
            }
            let key = keyField.map { rows.reader.field($0) }
            if let key, !key.isText, key.form != .missing {
                result.nested.note(line: row.line)
                result.withoutValue += 1
                continue
            }
            let value = key.map { rows.reader.value($0) }
            if let value {
                let key = value.rawSpan.withoutBlanks
                guard result.isUsable(key, line: row.line) else {
                    result.withoutValue += 1
                    continue
                }
            }
            var age: UInt64 = 0
            if hasRegistration {
                let field = rows.reader.field(1)
                let time =
                    field.isText ? registrationTime.milliseconds(rows.reader.text(field)) : nil
                if time == nil {
                    result.unreadableRegistrations += 1
                    result.firstUnreadableLine = result.firstUnreadableLine ?? row.line
                }
                // An unreadable time counts as the oldest.
                age = time.map { .max - 1 - UInt64(max($0, 0)) } ?? .max
            }
            let digest =
                if let value {
                    TokenDigest(value.rawSpan.withoutBlanks)
                } else {
                    TokenDigest(survey.token(count))
                }
            try tokens.append(
                .init(
                    first: digest.high, second: digest.low, third: age,
                    fourth: bytesWord(rows.byteOffset(of: row), rows.reader.position - row.start)))
        }
        if let refusal = list.refusal(of: survey.counts.headers) { throw refusal }
        list.warn(of: survey.counts.lengths)
        list.warn(of: survey.counts.headers)
        try list.warnOfDamage(survey.counts.overwritten)
        if let column = rule.column { warn(of: result, in: column) }
        result.rows = survey.counts.rows
        return result
    }

    /// Index of the field whose values form groups; nil if tokens form groups.
    private static func valueField(_ rule: Rule) -> Int? {
        rule.column == nil ? nil : rule.newestColumn == nil ? 1 : 2
    }

    /// Warns about rows that stay because of their values in a column, and about values that are
    /// written in two forms.
    private static func warn(of result: Result, in column: String) {
        let start = "broadside: warning: --by '\(shownColumn(column))': "
        if let problem = result.nulls.wordProblem {
            standardErrorLine(
                start + problem + ", because such a word means a missing value: if it is an ID, "
                    + "spell it differently")
        }
        if let problem = result.rounded.roundedProblem {
            standardErrorLine(
                start + "\(problem): such rows stay, because different IDs may have become one "
                    + "number; \(UnusableValues.roundedAdvice)")
        }
        if result.nested.count > 0 {
            standardErrorLine(
                start + "\(result.nested.subject): such rows stay; to compare values inside, name "
                    + "a key, as in \(shownColumn(column)).id")
        }
        if let problem = result.numbers.problem {
            standardErrorLine(
                start + "\(problem): 12 and 12.0 are different values, so a user may keep several "
                    + "rows: write all numbers in one form")
        }
    }

    /// Warns about values that many rows share. Of the rows with such a value, all but one are
    /// removed.
    private static func warn(
        of shared: SharedValues, in column: String, field: Int, of list: TokenList
    ) throws(BroadsideError) {
        var rows = try RowCursor(list)
        while let row = try rows.next() {
            guard rows.byteOffset(of: row) == shared.mostKept >> countBits else { continue }
            let value = tokenExcerpt(rows.reader.value(rows.reader.field(field)))
            let others =
                shared.count == 1
                ? ""
                : "; \(grouped(shared.count - 1)) other values have more than "
                    + "\(SharedValues.usualRows) rows each"
            return standardErrorLine(
                "broadside: warning: --by '\(shownColumn(column))': \(grouped(shared.mostRows)) "
                    + "rows have the value '\(value)', and only the one on line \(row.line) "
                    + "stays\(others): if '\(value)' is not the ID of one user, "
                    + "leave the field empty in these rows"
            )
        }
    }

    /// Number of bits for the length of a row.
    private static let countBits: UInt64 = 21

    /// Encodes a row's byte range in one number. The numbers sort in the list's order. A row with a
    /// token has at most 2^20 bytes, plus its line feed.
    private static func bytesWord(_ offset: UInt64, _ count: Int) -> UInt64 {
        precondition(offset < 1 << (64 - countBits) && count < 1 << countBits)
        return offset << countBits | UInt64(count)
    }

    /// Finds the rows to remove. For each token or value, the newest row stays; if several rows are
    /// equally new, the first of them stays.
    private static func findRemovedRows(
        _ tokens: inout RecordSorter, into removedRows: inout RecordSorter,
        shared: inout SharedValues
    ) throws(BroadsideError) -> UInt64 {
        var removed: UInt64 = 0
        var kept: RecordSorter.Record?
        var rows: UInt64 = 0
        try tokens.merge { (record) throws(BroadsideError) in
            if let kept, kept.first == record.first, kept.second == record.second {
                removed += 1
                rows += 1
                shared.note(rows, kept: kept.fourth)
                try removedRows.append(
                    .init(first: record.fourth, second: 0, third: 0, fourth: 0))
            } else {
                kept = record
                rows = 1
            }
        }
        return removed
    }

    private static func copy(
        _ list: TokenList, without removedRows: inout RecordSorter, to output: OutputFile
    ) throws(BroadsideError) {
        var copier = Copier(list: list, output: output)
        try removedRows.merge { (record) throws(BroadsideError) in
            let offset = record.first >> countBits
            try copier.copy(upTo: offset)
            copier.skip(to: offset + record.first & (1 << countBits - 1))
        }
        try copier.copy(upTo: .max)
    }

    private static func summary(_ result: Result, _ rule: Rule) -> String {
        var text = "rows         \(grouped(result.rows))\nremoved      \(grouped(result.removed))"
        text += "\nkept         \(grouped(result.rows - result.removed))"
        if result.withoutToken > 0 {
            text += "\n  without a device token: \(grouped(result.withoutToken))"
        }
        if let column = rule.column, result.withoutValue > 0 {
            text +=
                "\n  without a value in '\(shownColumn(column))': \(grouped(result.withoutValue))"
        }
        if rule.newestColumn != nil {
            text += "\n  registration unreadable: \(grouped(result.unreadableRegistrations))"
            if let line = result.firstUnreadableLine { text += ", the first on line \(line)" }
        }
        return text
    }
}

extension TokensDedupe.Result {
    /// Whether a value may be an ID. Counts the value if it is a word such as NULL, or a number that
    /// a spreadsheet rounded.
    fileprivate mutating func isUsable(_ value: RawSpan, line: UInt64) -> Bool {
        if value.isEmpty { return false }
        if MissingWords.isWordAmongIDs(value) {
            nulls.note(value, line: line)
            return false
        }
        if UnusableValues.isRounded(value) {
            rounded.note(value, line: line)
            return false
        }
        numbers.note(value, line: line)
        return true
    }
}

/// Copies ranges of a list through a buffer. The ranges must be in the order of the list.
private struct Copier: ~Copyable {
    let list: TokenList
    let output: OutputFile
    /// Window on the list.
    private var buffer = ReadBuffer(byteCount: 1 << 20)
    /// Offset of the window in the list.
    private var start: UInt64 = 0
    /// Offset of the next byte to copy.
    private var position: UInt64 = 0

    init(list: TokenList, output: OutputFile) {
        self.list = list
        self.output = output
    }

    mutating func skip(to offset: UInt64) {
        assert(offset > position, "a removed row has bytes")
        position = offset
    }

    mutating func copy(upTo end: UInt64) throws(BroadsideError) {
        assert(end >= position, "rows are removed in the list's order")
        while position < end {
            if position >= start + UInt64(buffer.count) {
                start = position
                if try list.readOriginal(at: position, into: &buffer) == 0 { return }
            }
            let first = Int(position - start)
            let last = Int(min(end - start, UInt64(buffer.count)))
            try output.write(buffer.bytes.extracting(first..<last))
            position = start + UInt64(last)
        }
    }
}
