internal import BroadsideAPNs
internal import BroadsideHygiene
import BroadsideLedgerFormat
public import BroadsideLedgers
import BroadsideLists
import BroadsideObservability
import BroadsideRows
public import BroadsideSupport

/// Joins the rows of a ledger with the receipts that devices reported. Rows and receipts get a
/// common key and are sorted by that key. The result has each device's rows and first receipt:
///
///     ledger ▶ key, arm, time ──────┐
///                                   ├─▶ sorted by key ▶ each device's rows and first receipt
///     receipts ▶ key, time, values ─┘
///
/// If receipts have apns-ids, the key is the row's number, and the number of its list. Otherwise,
/// the key is the fingerprint of the token. The sort spills to disk, so that memory is bounded.
enum ReceiptsJoin {
    /// Maximum number of columns to count by.
    static let columnLimit = 7
    /// Maximum number of values per column that are counted separately.
    static let valueLimit = 50
    /// Name for all values that are not counted separately.
    static let otherValues = "(others)"

    /// Returns the findings about a campaign from a file of receipts.
    ///
    /// - Parameters:
    ///   - path: CSV, TSV or JSON Lines with a column of apns-ids or tokens, and a column of times.
    ///   - columns: Names of these columns, and of further columns. Opened notifications are
    ///     counted separately for each value of a further column.
    static func findings(
        _ ledger: LedgerReader, receipts path: String, columns: ReceiptColumns
    ) throws(BroadsideError) -> ReceiptFindings {
        guard columns.by.count <= columnLimit, Set(columns.by).count == columns.by.count else {
            throw .usage(
                "by", "names a column twice, or more than \(columnLimit) columns: correct it")
        }
        guard path != ListBytes.standardInput else {
            throw .usage(
                "receipts",
                "- is standard input, but receipts are read more than once: name a file")
        }
        let (key, isToken) = try columns.key(of: path)
        if isToken { try checkTokens(ledger, receipts: path, column: key) }
        let time = try columns.time(of: path)
        let list = try TokenList(
            .file(path), format: nil, tokenColumn: key,
            wanted: [(time, "--time-column")] + columns.by.map { ($0, "--by") },
            option: "receipts", isInspected: false)
        let split = ledger.split
        let names = split?.names ?? ["all"]
        var tally = ReceiptTally(
            ReceiptFindings(
                arms: names.map {
                    .init(
                        name: $0, isHoldout: split != nil && $0 == ArmSplit.holdoutName,
                        columns: columns.by.count)
                },
                columns: columns.by.map { .init(name: $0, values: []) },
                namesTokens: isToken))
        var records = RecordSorter(directory: temporaryDirectory())
        let numbers = listNumbers(of: ledger)
        try collectRows(ledger, numbers, byToken: isToken, split: split, into: &records)
        try collectReceipts(list, numbers, time: time, columns: columns.by, &tally, into: &records)
        let findings = tally.findings
        guard findings.receipts > 0 else {
            throw .usage(
                "receipts", "\(printable(path)) contains no receipts: is it the right file?")
        }
        if findings.unreadable == findings.receipts {
            throw .usage(
                "receipts",
                "\(printable(path)): none of its \(grouped(findings.receipts)) receipts can be "
                    + "read (\(findings.firstUnreadable ?? "")): does the column "
                    + "'\(printable(key))' contain the \(isToken ? "tokens" : "apns-ids") "
                    + "(--token-column, --id-column), and does '\(printable(time))' contain the times "
                    + "(--time-column), such as 2030-01-31T19:00:00Z or Unix seconds?")
        }
        try records.merge { (record) throws(BroadsideError) in tally.take(record) }
        return tally.finish()
    }

    // MARK: The ledger

    /// Refuses receipts with tokens if the ledger has no tokens to compare them with.
    private static func checkTokens(
        _ ledger: LedgerReader, receipts path: String, column: String
    ) throws(BroadsideError) {
        guard let identity = ledger.ledgers.first?.manifest.identity, !identity.keepsTokens else {
            return
        }
        throw .usage(
            "receipts",
            "\(printable(path)): the tokens in column '\(printable(column))' can't be joined, "
                + "because the ledger keeps no tokens (--keep-tokens no): "
                + (identity.hasNotificationIDs
                    ? "name a column of apns-ids with --id-column"
                    : "a legacy gateway's rows have no apns-ids either, so leave --receipts out"))
    }

    /// Returns a number for each group of rows whose apns-ids differ only in the row. Parts share
    /// the campaign's number, but each shard has its own.
    private static func listNumbers(of ledger: LedgerReader) -> [NotificationID: UInt64] {
        var numbers: [NotificationID: UInt64] = [:]
        for (_, manifest) in ledger.ledgers {
            let first = manifest.notificationID
            numbers[first] = numbers[first] ?? UInt64(numbers.count)
        }
        return numbers
    }

    private static func collectRows(
        _ ledger: LedgerReader, _ numbers: [NotificationID: UInt64], byToken: Bool,
        split: ArmSplit?, into records: inout RecordSorter
    ) throws(BroadsideError) {
        for part in ledger.ledgers {
            let index = try ledger.index(part)
            guard let number = numbers[part.manifest.notificationID] else {
                preconditionFailure("each ledger has a number")
            }
            var verdicts = ChunkVerdicts(of: index)
            for chunk in 0..<index.chunkCount {
                do {
                    try verdicts.load(chunk: chunk)
                } catch {
                    throw LedgerReader.unreadable(error, part.directory)
                }
                try collect(
                    verdicts, list: number, byToken: byToken, split: split, into: &records)
            }
        }
    }

    private static func collect(
        _ verdicts: borrowing ChunkVerdicts, list: UInt64, byToken: Bool, split: ArmSplit?,
        into records: inout RecordSorter
    ) throws(BroadsideError) {
        let (holdout, rows) = (split?.holdout, verdicts.index.rows)
        var digits: [UInt8] = []
        for place in verdicts.rows.indices {
            let verdict = verdicts.rows[place]
            let row = verdicts.firstRow + UInt64(place)
            guard rows.contains(row, verdict.state) else { continue }
            let isHeldOut =
                verdict.state == .skipped && verdict.reason == Reason.holdout.rawValue
                && verdict.arm == holdout
            let isRefused = [.rejected, .failed, .unknown].contains(verdict.state)
            // Rows that were not accepted matter only for the comparison with a holdout.
            guard verdict.state == .accepted || isHeldOut || isRefused && holdout != nil else {
                continue
            }
            let arm = split == nil ? 1 : verdict.arm
            guard arm > 0 else { continue }
            var key = list << 40 | row
            if byToken {
                if case .fingerprint(let fingerprint) = verdict.token {
                    key = fingerprint
                } else {
                    digits.removeAll(keepingCapacity: true)
                    verdicts.appendToken(ofRow: place, to: &digits)
                    guard !digits.isEmpty else { continue }
                    key = TokenText.fingerprint(digits.rawSpan)
                }
            }
            try records.append(
                .row(key, arm, settled: isRefused ? nil : verdict.settledAtMilliseconds))
        }
    }

    // MARK: The receipts

    private static func collectReceipts(
        _ list: TokenList, _ numbers: [NotificationID: UInt64], time timeColumn: String,
        columns: [String], _ tally: inout ReceiptTally, into records: inout RecordSorter
    ) throws(BroadsideError) {
        let time = field(timeColumn, of: list)
        let fields = columns.map { field($0, of: list) }
        let byToken = tally.findings.namesTokens
        var digits = TokenDigits()
        var overwritten = OverwrittenRows()
        var rows = try RowCursor(list, endsOnSignals: true, showsProgress: true)
        while let row = try rows.next() {
            tally.findings.receipts += 1
            let name = rows.reader.field(0)
            let key: UInt64
            if byToken {
                guard name.isText,
                    digits.write({ rows.reader.readToken(name, into: &$0) }) == nil
                else {
                    overwritten.take(row, of: rows.reader)
                    tally.noteUnreadable(line: row.line, "has no device token", value: nil)
                    continue
                }
                key = TokenText.fingerprint(digits.bytes)
            } else {
                let text = rows.reader.text(name)
                guard name.isText, text.byteCount == NotificationID.textCount else {
                    overwritten.take(row, of: rows.reader)
                    tally.noteUnreadable(line: row.line, "has no apns-id", value: nil)
                    continue
                }
                // The apns-ids of other senders are UUIDs of another kind.
                guard let identifier = NotificationID(parsing: text),
                    let number = numbers[identifier.withRow(0)]
                else {
                    tally.findings.foreign += 1
                    continue
                }
                key = number << 40 | identifier.row
            }
            let timeField = rows.reader.field(time)
            guard let written = WrittenTime(rows.reader.text(timeField)), written.last >= 0 else {
                tally.noteUnreadable(
                    line: row.line, "has no readable time", value: rows.reader.value(timeField))
                continue
            }
            var values: UInt64 = 0
            for (index, field) in fields.enumerated() {
                let value = tally.number(of: rows.reader.value(rows.reader.field(field)), index)
                assert(value <= UInt8.max && index < columnLimit, "a number fits in its byte")
                values |= UInt64(value) << UInt64(8 * index)
            }
            // A written time may stand for a whole second or minute; the end of that range is used.
            try records.append(
                .receipt(key, at: UInt64(written.last), values))
        }
        try list.warnOfDamage(overwritten)
    }

    private static func field(_ column: String, of list: TokenList) -> Int {
        guard let field = list.layout.field(named: column) else {
            preconditionFailure("the layout was made with this column")
        }
        return field
    }
}

extension Manifest {
    /// The apns-id of the ledger's row 0.
    fileprivate var notificationID: NotificationID {
        NotificationID(campaign: campaignNumber, part: identity.partNumber, row: 0)
    }
}

extension NotificationID {
    fileprivate func withRow(_ row: UInt64) -> NotificationID {
        NotificationID(campaign: campaign, part: part, row: row)
    }
}

/// Result of `report --receipts`: what devices reported about a campaign.
public struct ReceiptsReport {
    private let ledger: LedgerReader
    private let findings: ReceiptFindings

    /// Reads a ledger and the receipts.
    ///
    /// - Parameters:
    ///   - ledger: The campaign's ledger.
    ///   - path: File of the receipts.
    ///   - columns: Columns of the file.
    public init(
        _ ledger: LedgerReader, receipts path: String, columns: ReceiptColumns
    ) throws(BroadsideError) {
        self.ledger = ledger
        findings = try ReceiptsJoin.findings(ledger, receipts: path, columns: columns)
    }

    /// Facts that make the figures doubtful, one line each, without a line end.
    public var warnings: [String] { findings.warnings }

    /// The figures as JSON, one object and a line end.
    public var json: String { findings.json }

    /// Writes the campaign's page with the figures.
    public func write(to output: OutputFile) throws(BroadsideError) {
        try output.write(try ledger.reportPage(receipts: findings))
        try output.finish()
    }
}
