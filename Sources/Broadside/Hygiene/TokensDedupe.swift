import BroadsideHygiene
import BroadsideLedgers
import BroadsideLists
public import BroadsideSupport

/// One `tokens dedupe`: a list with one row a token.
public enum TokensDedupe {
    /// What was done.
    public struct Result: Sendable {
        /// Rows of the list.
        public var rows: UInt64 = 0
        /// Rows that were left out.
        public var removed: UInt64 = 0
        /// Rows without a device token; they stay.
        public var withoutToken: UInt64 = 0
        /// Rows with a token whose time of registration nobody can read.
        public var unreadableRegistrations: UInt64 = 0
        /// The line on which the first of those starts.
        public var firstUnreadableLine: UInt64?
        /// Rows that have the column of registration times.
        var withRegistration: UInt64 = 0
    }

    /// Goes through the list for its tokens, and once more to copy what stays.
    ///
    /// - Parameters:
    ///   - options: The list that is read.
    ///   - path: Where the list goes: written beside and renamed.
    ///   - registeredColumn: The newest row of a token stays; nil: its first.
    /// - Returns: What was done, in a few lines for people.
    public static func run(
        _ options: TokensOptions, output path: String, registeredColumn: String?
    ) throws(BroadsideError) -> String {
        let list = try TokenList(
            .file(options.tokens), format: options.format, tokenColumn: options.tokenColumn,
            otherColumns: registeredColumn.map { [$0] } ?? [], isReadAgain: true)
        try check(path, list)
        let output = try OutputFile(
            path, option: "output", permissions: list.permissions)
        let directory = temporaryDirectory()
        var tokens = RecordSorter(directory: directory)
        var result = try read(
            list, name: options.tokens, hasRegistration: registeredColumn != nil, into: &tokens)
        if let registeredColumn, result.rows > 0, result.withRegistration == 0 {
            throw try list.noRegistration(registeredColumn)
        }
        var removedRows = RecordSorter(directory: directory)
        result.removed = try findRemovedRows(&tokens, into: &removedRows)
        let withToken = result.rows - result.withoutToken
        if let registeredColumn, result.removed > 0, result.unreadableRegistrations == withToken {
            throw .unreadableRegistrations(
                registeredColumn, in: list.name, firstLine: result.firstUnreadableLine)
        }
        try copy(list, without: &removedRows, to: output)
        // The list may have been put in the output's place meanwhile.
        try check(path, list)
        try output.finish()
        return summary(result, hasRegistration: registeredColumn != nil)
    }

    private static func check(_ path: String, _ list: TokenList) throws(BroadsideError) {
        guard path != "-" else {
            throw .usage("output", "-: a list is written whole or not at all: name a file")
        }
        try OutputRule.checkDestination(option: "output", path: path)
        guard let existing = FileIdentity(path: path) else { return }
        guard existing != list.identity else {
            throw .usage(
                "output", "\(path) is the list that is read: write beside it, then replace it")
        }
        guard existing.isRegular else {
            throw .usage("output", "\(path) is not a regular file: name a file")
        }
    }

    /// A record a token: its digest, its age (0 for the newest), and the bytes of its row.
    private static func read(
        _ list: TokenList, name: String, hasRegistration: Bool,
        into tokens: inout RecordSorter
    ) throws(BroadsideError) -> Result {
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
            var age: UInt64 = 0
            if hasRegistration {
                let field = rows.reader.field(1)
                let time =
                    field.isText ? registrationTime.milliseconds(rows.reader.text(field)) : nil
                if time == nil {
                    result.unreadableRegistrations += 1
                    result.firstUnreadableLine = result.firstUnreadableLine ?? row.line
                }
                // What can't be read counts as the oldest of all.
                age = time.map { .max - 1 - UInt64(max($0, 0)) } ?? .max
            }
            let digest = TokenDigest(survey.token(count))
            try tokens.append(
                .init(
                    first: digest.high, second: digest.low, third: age,
                    fourth: packed(rows.byteOffset(of: row), rows.reader.position - row.start)))
        }
        list.warn(of: survey.counts.lengths)
        result.rows = survey.counts.rows
        return result
    }

    /// The bits that hold how long a row is.
    private static let countBits: UInt64 = 21

    /// A row's bytes in one word, in the list's order: a row with a token has at most 2^20 bytes
    /// and its line feed.
    private static func packed(_ offset: UInt64, _ count: Int) -> UInt64 {
        precondition(offset < 1 << (64 - countBits) && count < 1 << countBits)
        return offset << countBits | UInt64(count)
    }

    /// All rows of a token but the newest, or the first among equals.
    private static func findRemovedRows(
        _ tokens: inout RecordSorter, into removedRows: inout RecordSorter
    ) throws(BroadsideError) -> UInt64 {
        var removed: UInt64 = 0
        var kept: RecordSorter.Record?
        try tokens.merge { (record) throws(BroadsideError) in
            if let kept, kept.first == record.first, kept.second == record.second {
                removed += 1
                try removedRows.append(
                    .init(first: record.fourth, second: 0, third: 0, fourth: 0))
            } else {
                kept = record
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

    private static func summary(_ result: Result, hasRegistration: Bool) -> String {
        var text = "rows         \(grouped(result.rows))\nremoved      \(grouped(result.removed))"
        text += "\nkept         \(grouped(result.rows - result.removed))"
        if result.withoutToken > 0 {
            text += "\n  without a device token: \(grouped(result.withoutToken))"
        }
        if hasRegistration {
            text += "\n  registration unreadable: \(grouped(result.unreadableRegistrations))"
            if let line = result.firstUnreadableLine { text += ", the first on line \(line)" }
        }
        return text
    }
}

/// Copies parts of a list, in order, through a window.
private struct Copier: ~Copyable {
    let list: TokenList
    let output: OutputFile
    /// The window, and where it starts in the list.
    private var buffer = ReadBuffer(byteCount: 1 << 20)
    private var start: UInt64 = 0
    /// Where the next byte to be copied lies.
    private var position: UInt64 = 0

    init(list: TokenList, output: OutputFile) {
        self.list = list
        self.output = output
    }

    mutating func skip(to offset: UInt64) { position = offset }

    mutating func copy(upTo end: UInt64) throws(BroadsideError) {
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
