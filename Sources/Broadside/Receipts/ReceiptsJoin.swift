internal import BroadsideAPNs
internal import BroadsideHygiene
import BroadsideLedgerFormat
public import BroadsideLedgers
import BroadsideLists
import BroadsideObservability
import BroadsideRows
public import BroadsideSupport

/// Join of receipts, which devices reported, with a ledger's rows.
///
///     ledger ▶ key, arm, time ──────┐
///                                   ├─▶ sorted by key ▶ each device's rows and first receipt
///     receipts ▶ key, time, values ─┘
///
/// The key is the row's number if receipts have apns-ids, or the fingerprint of the token. The sort
/// spills to disk, so that memory is bounded.
public enum ReceiptsJoin {
    /// Columns of a receipts file.
    static let notificationColumn = "apns_id"
    static let tokenColumn = "token"
    static let timeColumn = "time"
    /// Maximum number of columns to count by, and of values that are counted one by one.
    public static let columnLimit = 7
    static let valueLimit = 50
    /// Name for all further values.
    static let otherValues = "(others)"

    /// Returns what the receipts in a file say about a campaign.
    ///
    /// - Parameters:
    ///   - path: CSV, TSV or JSON Lines with the columns `apns_id` or `token`, and `time`.
    ///   - columns: Further columns by whose values opens are counted.
    static func findings(
        _ ledger: LedgerReader, receipts path: String, by columns: [String]
    ) throws(BroadsideError) -> ReceiptFindings {
        guard columns.count <= columnLimit, Set(columns).count == columns.count else {
            throw .usage("by", "names one column twice or more than \(columnLimit): correct that")
        }
        let key = try keyColumn(path)
        let list = try TokenList(
            .file(path), format: nil, tokenColumn: key,
            wanted: [(timeColumn, "--receipts")] + columns.map { ($0, "--by") },
            option: "receipts", isInspected: false)
        let split = ledger.split
        let names = split?.names ?? ["all"]
        var tally = ReceiptTally(
            ReceiptFindings(
                arms: names.map {
                    .init(
                        name: $0, isHoldout: split != nil && $0 == ArmSplit.holdoutName,
                        columns: columns.count)
                },
                columns: columns.map { .init(name: $0, values: []) },
                namesTokens: key == tokenColumn))
        var records = RecordSorter(directory: temporaryDirectory())
        try collectRows(ledger, byToken: key == tokenColumn, split: split, into: &records)
        try collectReceipts(list, of: ledger, columns: columns, &tally, into: &records)
        try records.merge { (record) throws(BroadsideError) in tally.take(record) }
        return tally.finish()
    }

    /// Column that names the row or the device.
    private static func keyColumn(_ path: String) throws(BroadsideError) -> String {
        guard path != ListBytes.standardInput else {
            throw .usage("receipts", "-: receipts are read more than once: name a file")
        }
        for column in [notificationColumn, tokenColumn] {
            do throws(BroadsideError) {
                let list = try TokenList(
                    .file(path), format: nil, tokenColumn: column, option: "receipts",
                    isInspected: false)
                guard list.format.hasHeader || list.format.namesColumnsInEachRow else { continue }
                if try hasValue(list) { return column }
            } catch {
                if error.isFaultyList || error.exitCode != ExitCode.badRequest { throw error }
                // A file that can't be opened has no other column either.
                if column == tokenColumn, !(try fileExists(path)) { throw error }
            }
        }
        throw .usage(
            "receipts",
            "\(printable(path)) has neither a column \(notificationColumn) nor a column "
                + "\(tokenColumn): add one, with a header or in each line of JSON")
    }

    /// Whether any of the first rows has the key.
    private static func hasValue(_ list: TokenList) throws(BroadsideError) -> Bool {
        var rows = try RowCursor(list, rowsAtOnce: 1_000)
        var count = 0
        while count < 1_000, try rows.next() != nil {
            count += 1
            if rows.reader.field(0).isText { return true }
        }
        return count == 0
    }

    // MARK: The ledger

    private static func collectRows(
        _ ledger: LedgerReader, byToken: Bool, split: ArmSplit?, into records: inout RecordSorter
    ) throws(BroadsideError) {
        for part in ledger.ledgers {
            let index = try ledger.index(part)
            let number = UInt64(part.manifest.identity.partNumber)
            var verdicts = ChunkVerdicts(of: index)
            for chunk in 0..<index.chunkCount {
                do {
                    try verdicts.load(chunk: chunk)
                } catch {
                    throw LedgerReader.unreadable(error, part.directory)
                }
                try collect(
                    verdicts, part: number, byToken: byToken, split: split, into: &records)
            }
        }
    }

    private static func collect(
        _ verdicts: borrowing ChunkVerdicts, part: UInt64, byToken: Bool, split: ArmSplit?,
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
            guard verdict.state == .accepted || isHeldOut else { continue }
            let arm = split == nil ? 1 : verdict.arm
            guard arm > 0 else { continue }
            var key = part << 40 | row
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
                .init(
                    first: key, second: 0, third: verdict.settledAtMilliseconds,
                    fourth: UInt64(arm)))
        }
    }

    // MARK: The receipts

    private static func collectReceipts(
        _ list: TokenList, of ledger: LedgerReader, columns: [String], _ tally: inout ReceiptTally,
        into records: inout RecordSorter
    ) throws(BroadsideError) {
        let campaign = ledger.ledgers.first?.manifest.campaignNumber
        let time = field(timeColumn, of: list)
        let fields = columns.map { field($0, of: list) }
        let byToken = tally.findings.namesTokens
        var digits = TokenDigits()
        var rows = try RowCursor(list, endsOnSignals: true, showsProgress: true)
        while try rows.next() != nil {
            tally.findings.receipts += 1
            let name = rows.reader.field(0)
            guard name.isText,
                let written = WrittenTime(rows.reader.text(rows.reader.field(time))),
                written.last >= 0
            else {
                tally.findings.unreadable += 1
                continue
            }
            let key: UInt64
            if byToken {
                guard digits.write({ rows.reader.readToken(name, into: &$0) }) == nil else {
                    tally.findings.unreadable += 1
                    continue
                }
                key = TokenText.fingerprint(digits.bytes)
            } else {
                let text = rows.reader.text(name)
                guard text.byteCount == NotificationID.textCount else {
                    tally.findings.unreadable += 1
                    continue
                }
                // Other senders have UUIDs of other kinds.
                guard let identifier = NotificationID(parsing: text),
                    identifier.campaign == campaign
                else {
                    tally.findings.foreign += 1
                    continue
                }
                key = UInt64(identifier.part) << 40 | identifier.row
            }
            var values: UInt64 = 0
            for (index, field) in fields.enumerated() {
                let value = tally.number(of: rows.reader.value(rows.reader.field(field)), index)
                values |= UInt64(value) << UInt64(8 * index)
            }
            // The whole range of what was written may be meant: a second, or a minute.
            try records.append(
                .init(first: key, second: 1, third: UInt64(written.last), fourth: values))
        }
    }

    private static func field(_ column: String, of list: TokenList) -> Int {
        guard let field = list.layout.field(named: column) else {
            preconditionFailure("the layout was made with this column")
        }
        return field
    }
}

extension LedgerReader {
    /// Writes the report page with what the receipts in a file say.
    ///
    /// - Parameters:
    ///   - path: File of the receipts.
    ///   - columns: Further columns by whose values opens are counted.
    public func writeReport(
        to output: OutputFile, receipts path: String, by columns: [String]
    ) throws(BroadsideError) {
        let findings = try ReceiptsJoin.findings(self, receipts: path, by: columns)
        try output.write(try reportPage(receipts: findings))
        try output.finish()
    }

    /// Returns what the receipts in a file say, as JSON.
    public func receiptsJSON(
        _ path: String, by columns: [String]
    ) throws(BroadsideError) -> String {
        try ReceiptsJoin.findings(self, receipts: path, by: columns).json
    }
}
