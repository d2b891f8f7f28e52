import BroadsideAPNs
import BroadsideHygiene
internal import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePayloads
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Checks the first rows of a list before any connection is opened, so that a list without tokens
/// of this app is refused at no cost.
///
/// If rows may be skipped, `check` considers only the tokens. `checkPayloads` then considers the
/// payloads and time zones of the rows that are not skipped. To find the rows to skip, the whole
/// list must be read, and a wrong list should be refused earlier.
struct FirstRowsCheck {
    /// The first invalid row.
    struct Sample {
        var line: UInt64
        var finding: RowInspector.Finding
        /// Start of the row's text in the token column.
        var text: String
        /// Start of the value that makes the row invalid.
        var value: String
        /// Number of its bytes.
        var valueByteCount: Int
        /// Value that names no known time zone; empty if the row is not invalid because of it.
        var zone: String
        /// Whether the value that makes the row invalid is UTF-8 text.
        var isUTF8: Bool
        /// Whether the value that makes the row invalid is a JSON array or object.
        var isNested: Bool
        /// Keys of the row whose values are null, if the row lacks a value.
        var nullKeys: [String]
        /// Kind of the text in the token column; nil if unknown.
        var kind: ForeignToken?
        /// Number of hexadecimal digits in the token column; nil if its text has other characters.
        var digitCount: Int?
        /// Problem of a line of JSON Lines that is not a JSON object; nil for any other row.
        var jsonProblem: PayloadCheck.Problem?
        /// Whether the row is overwritten with zero bytes.
        var isOverwritten: Bool
        /// Whether the row is malformed and escapes quotes with backslashes instead of doubling
        /// them.
        var escapesQuotes: Bool
        /// Index of the field of a malformed row that is an object or array without quotes; nil if
        /// there is none.
        var bracketedField: Int?
        /// Kind of the description of an NSData in a malformed row; nil if there is none.
        var description: ForeignToken?
    }

    private let list: TokenList
    private let plan: Plan
    private let rows: CampaignRows
    private let isBegun: Bool

    /// - Parameters:
    ///   - rows: Rows of the run.
    ///   - isBegun: Whether an earlier run began the campaign.
    init(_ list: TokenList, plan: Plan, rows: CampaignRows, isBegun: Bool = false) {
        self.list = list
        self.plan = plan
        self.rows = rows
        self.isBegun = isBegun
    }

    /// Refuses a list with too many invalid rows among its first 1,000, or without a valid row.
    ///
    /// - Parameter earlier: Rows that earlier runs read. If there are enough of them, they are
    ///   checked instead of the list's first rows.
    func check(earlier: InvalidRowsGuard? = nil) throws(BroadsideError) {
        if var rows = earlier, rows.rows >= InvalidRowsGuard.firstCheck,
            rows.invalid < rows.rows
        {
            guard case .tooMany(let invalid, let count)? = rows.check() else { return }
            throw .request(
                list.name,
                ": \(Self.share(invalid, of: count)) rows read so far are "
                    + "invalid: see ledger export --state invalid, and raise "
                    + "--max-invalid to continue"
            )
        }
        try checkFirstRows(
            isWaiting ? .tokens : .whole, mayBeMasked: earlier != nil && list.isSpooled)
    }

    /// Checks the payloads and time zones that `check` did not, if there are such.
    ///
    /// - Parameter skips: Rows that the run skips.
    func checkPayloads(skips: ExclusionIndex?) throws(BroadsideError) {
        guard isWaiting else { return }
        try checkFirstRows(.payloads(skips), mayBeMasked: isBegun && list.isSpooled)
    }

    /// Whether the check of payloads and time zones waits until the rows to skip are known.
    private var isWaiting: Bool {
        plan.options.mayExcludeRows
            && (plan.payloads.set.isPersonal || plan.options.delivery.isUsed)
    }

    /// What is checked in each row.
    private enum Scope {
        /// The token, the payload and the time zone.
        case whole
        /// The token, because the rows to skip are not known yet.
        case tokens
        /// The payload and the time zone of each row that is not skipped. The tokens were checked
        /// before.
        case payloads(ExclusionIndex?)

        var includesPayloads: Bool { if case .tokens = self { false } else { true } }
        var isFirst: Bool { if case .payloads = self { false } else { true } }
        var skips: ExclusionIndex? { if case .payloads(let skips) = self { skips } else { nil } }
    }

    /// - Parameter mayBeMasked: Whether `ledger forget` may have masked rows. Masked rows count as
    ///   valid.
    private func checkFirstRows(_ scope: Scope, mayBeMasked: Bool) throws(BroadsideError) {
        var cursor = try RowCursor(
            list, ListSelection(rows: self.rows, skips: scope.skips),
            rowsAtOnce: Int(InvalidRowsGuard.firstCheck))
        let payloads = scope.includesPayloads ? plan.payloads.set : PayloadSet(constant: [])
        var inspector = RowInspector(payloads, layout: list.layout)
        var rows = InvalidRows(maximumPercent: plan.options.maxInvalid)
        var lengths = TokenLengths()
        var values = RowValues(list.layout, plan.payloads.set)
        defer {
            if scope.isFirst { warn(of: lengths, values) }
            if scope.includesPayloads {
                if !isBegun { values.warnOfBlankAlerts(list, plan) }
                plan.warnOfRowTopics()
            }
            // A scan for skipped rows warns about the headers in the whole list.
            if !plan.options.skipsAny { list.warn(of: rows.headers, isBegun: isBegun) }
        }
        // One warning names all reasons.
        let warnsOfRows = scope.includesPayloads && !isBegun
        var pass = RowRulesPass(plan.options.rules, layout: list.layout)
        let delivery = plan.options.delivery
        var zones =
            scope.includesPayloads && delivery.isUsed
            ? ZoneNumbers(delivery.zoneRule(ZoneDatabase()), layout: list.layout) : nil
        while let row = try cursor.next() {
            let isExcluded =
                cursor.disposition != .send || pass.reason(for: row, cursor.reader) != nil
            var finding = isExcluded ? nil : inspector.finding(in: cursor.reader)
            if finding == nil, !isExcluded, zones?.isUnknown(in: cursor.reader) == true {
                finding = .badZone(delivery, list.layout)
            }
            let isMasked =
                mayBeMasked && finding != nil
                && DeviceSet.isMasked(cursor.reader.text(of: row))
            if isMasked { finding = nil }
            if finding == nil, !isExcluded, !isMasked {
                lengths.note(inspector.tokenDigitCount, line: row.line)
                values.take(
                    row, of: cursor.reader, token: inspector.tokenFingerprint,
                    hasBlankAlert: inspector.hasBlankAlert)
            }
            if let verdict = rows.note(finding, row, of: cursor.reader) {
                throw rows.refusal(verdict, of: list, plan.options.maxInvalid)
            }
            if let refusal = list.refusal(of: rows.headers, isBegun: isBegun) { throw refusal }
            // Without a limit on invalid rows, the search for one valid row continues.
            if rows.rowCount >= InvalidRowsGuard.firstCheck, rows.invalidCount < rows.rowCount {
                if warnsOfRows {
                    rows.warn(of: list, mayHaveMore: true)
                    inspector.unmatchedValues?.warn(plan, isOfFirstRows: true)
                }
                return
            }
        }
        guard let verdict = rows.finish(),
            try !verdict.isEmptyPart(of: list, plan.options.shard)
        else {
            if warnsOfRows {
                rows.warn(of: list, mayHaveMore: false)
                inspector.unmatchedValues?.warn(plan, isOfFirstRows: false)
            }
            return
        }
        throw rows.refusal(verdict, of: list, plan.options.maxInvalid)
    }

    private func warn(of lengths: TokenLengths, _ values: RowValues) {
        list.warn(of: lengths)
        list.warnOfShortTokens(lengths)
        // The list of a campaign that has begun can't be corrected.
        guard !isBegun else { return }
        try? list.warnOfDamage()
        values.warn(list, plan, knowsSkips: !plan.options.mayExcludeRows)
    }

    /// Formats a number of invalid rows and their share of all rows, such as `300 (30.0%) of the
    /// 1,000`.
    static func share(_ invalid: UInt64, of rows: UInt64) -> String {
        assert(invalid <= rows, "each invalid row is one of the rows")
        let percent = decimal(Double(invalid) * 100 / Double(max(1, rows)), places: 1)
        return "\(grouped(invalid)) (\(percent)%) of the \(grouped(rows))"
    }
}

extension FirstRowsCheck.Sample {
    init(_ row: RowReader.Row, _ finding: RowInspector.Finding, of reader: borrowing RowReader) {
        line = row.line
        self.finding = finding
        let token = reader.value(reader.field(0))
        text = tokenExcerpt(token)
        let culprit = finding.culprit.map { reader.value(reader.field($0.field)) } ?? []
        value = tokenExcerpt(culprit)
        valueByteCount = culprit.count
        isUTF8 = isUTF8Text(culprit)
        zone = String(
            decoding: finding.zoneField.map { reader.value(reader.field($0)) } ?? [],
            as: UTF8.self)
        let wrong = reader.field(finding.culprit?.field ?? 0)
        let start = reader.value(wrong).first
        isNested =
            wrong.form == .unusable && (start == UInt8(ascii: "{") || start == UInt8(ascii: "["))
        nullKeys =
            finding.reason == .missingColumn
            ? JSONKeys.read(reader.text(of: row), isNull: true) : []
        kind = ForeignToken.detect(token.prefix(ForeignToken.excerptByteCount))
        digitCount =
            token.allSatisfy { Unicode.Scalar($0).properties.isASCIIHexDigit } ? token.count : nil
        isOverwritten = finding.reason == .malformedRow && reader.overwrittenLine != nil
        escapesQuotes =
            finding.reason == .malformedRow && !isOverwritten && reader.escapesQuotes(row)
        if finding.reason == .malformedRow, !isOverwritten {
            let start = [UInt8](reader.text(of: row)).prefix(ForeignToken.excerptByteCount)
            description = ForeignToken.description(in: Array(start))
            bracketedField = reader.unquotedBrackets(row)
        }
        if reader.field(0).form == .unusable {
            jsonProblem = PayloadCheck.syntaxProblem(reader.text(of: row))
        }
    }
}

extension InvalidRowsGuard.Verdict {
    /// Whether the shard has no rows although the list has some. A short list that is divided into
    /// many shards leaves some of them empty.
    func isEmptyPart(of list: TokenList, _ shard: ListShard?) throws(BroadsideError) -> Bool {
        guard self == .noRow, shard != nil else { return false }
        return try list.hasRow()
    }
}

extension TokenList {
    /// Whether the list has any row.
    func hasRow() throws(BroadsideError) -> Bool {
        var rows = try RowCursor(self, rowsAtOnce: 1)
        return try rows.next() != nil
    }
}
