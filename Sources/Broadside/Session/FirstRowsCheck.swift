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
                finding = .badZone
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
                if warnsOfRows { rows.warn(of: list, mayHaveMore: true) }
                return
            }
        }
        guard let verdict = rows.finish(),
            try !verdict.isEmptyPart(of: list, plan.options.shard)
        else {
            if warnsOfRows { rows.warn(of: list, mayHaveMore: false) }
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

    /// Whether the row's value is invalid because it is not UTF-8 text.
    private var isInOtherEncoding: Bool { finding.reason == .badValue && !isNested && !isUTF8 }

    /// Line and problem of the row. The advice follows if it names the cause, or a change that
    /// repairs all such rows.
    func explanation(_ list: TokenList) -> String {
        let (what, advice) = words(list)
        let problem =
            switch finding.reason {
            case .badValue, .noPayload, .payloadTooLarge:
                cause(list).map { "on line \(line), \($0)" } ?? what
            default: what
            }
        if isInOtherEncoding || finding.reason == .malformedRow || jsonProblem != nil {
            return "\(problem): \(advice.hasSuffix(".") ? String(advice.dropLast()) : advice)"
        }
        guard finding.reason == .malformedToken, let kind else { return problem }
        return "\(problem); such rows have \(kind.content)"
    }

    /// Description of the wrong value, with its column.
    private func cause(_ list: TokenList) -> String? {
        guard let culprit = finding.culprit else { return nil }
        let column = "column '\(printable(list.layout.names[culprit.field], limit: 40))'"
        if case .payloadOver(let limit) = culprit.use {
            return "the payload has more than \(grouped(limit)) bytes; its longest value, in "
                + "\(column), has \(grouped(valueByteCount))"
        }
        if isNested { return "'\(value)' in \(column) is an array or object" }
        if isInOtherEncoding { return "'\(value)' in \(column) is not UTF-8 text" }
        let wanted =
            switch culprit.use {
            case .text: "is not UTF-8 text"
            case .badge where value.drop(while: { $0 == " " }).hasPrefix("-"):
                "is not a badge, which is 0 or above"
            case .integer, .badge: "is not a whole number"
            case .interruptionLevel:
                "is not an interruption level (passive, active, time-sensitive, critical)"
            case .boolean: "is not true or false"
            case .collapseID: "is not usable in a collapse ID"
            case .payloadOver: "is too long"
            case .payloadName: "names no payload"
            case .topic: "does not make a topic for this push type"
            case .topicBeyondLimit:
                "makes more than the \(RowTopics.limit) topics that a run may have"
            }
        return "'\(value)' in \(column) \(wanted)"
    }

    /// Problem of the row, and advice for lists with such rows.
    fileprivate func words(_ list: TokenList) -> (what: String, advice: String) {
        let column = list.layout.names.first ?? TokenList.defaultTokenColumn
        switch (finding.reason, finding.isPersonal) {
        case (.missingColumn, false):
            return (
                lack(of: column),
                nullKeys.contains(column)
                    ? "leave out such rows, or name another column with --token-column."
                    : "name the tokens' column with --token-column\(keyAdvice(column, list))."
            )
        case (.malformedRow, false) where isOverwritten:
            return (
                "the row on line \(line) contains zero bytes",
                "the list is damaged, and other rows may be missing; replace it with an intact copy."
            )
        case (.malformedRow, false) where escapesQuotes:
            return (
                "the row on line \(line) has quotes after backslashes (\\\") in a quoted field",
                "write such quotes twice (\"\") and without backslashes, in Spark with "
                    + "option(\"escape\", \"\\\"\")."
            )
        case (.malformedRow, false):
            if let description {
                return (
                    "the row on line \(line) breaks the rules of its format",
                    "such rows have \(description.content), which are not in quotes: "
                        + "\(description.advice(isColumn: true))."
                )
            }
            if let bracketedField {
                let names = (try? list.columnNames()) ?? []
                let name =
                    names.indices.contains(bracketedField)
                    ? "column '\(printable(names[bracketedField], limit: 40))'"
                    : "field \(bracketedField + 1)"
                return (
                    "\(name) on line \(line) is an array or object, which is not in quotes",
                    "put such values in quotes, and write quotes in them twice (\"\")."
                )
            }
            return (
                "the row on line \(line) breaks the rules of its format",
                list.format.separator == nil
                    ? "does it have more than \(RowChunk.rowByteCountMax >> 20) MiB?"
                    : "does it have more fields than the header, text after a closing quote, or more "
                        + "than \(RowChunk.rowByteCountMax >> 20) MiB?"
            )
        case (.malformedToken, false):
            if let jsonProblem { return words(jsonProblem) }
            if isNested {
                return (
                    "'\(printable(column))' on line \(line) is an array or object",
                    "name a key inside an object with --token-column, as in "
                        + "\(shownColumn(column)).value, and write one row per value of an array."
                )
            }
            if let kind {
                let advice = kind.advice(isColumn: list.format != .lines)
                return ("line \(line) is '\(text)'", "such rows have \(kind.content): \(advice).")
            }
            if let digitCount, digitCount > 0 {
                return (
                    "line \(line) is '\(text)', which has \(digitCount) digits",
                    "a device token has an even number of digits, at most "
                        + "\(TokenText.maximumDigitCount): were some of them cut off?"
                )
            }
            return (
                "line \(line) is '\(text)'",
                "expected an even number of hexadecimal digits; is it the right file, with the right "
                    + "--format and --token-column?"
            )
        case (.missingColumn, true):
            return missingKey(list)
        case (.badZone, _):
            return (
                "line \(line) names no time zone that this system knows",
                ZoneDatabase().packageAdvice.map { "\($0)." }
                    ?? "does --zone-column name a column of time zones such as Europe/Berlin? Rows "
                    + "without a zone get --zone-default."
            )
        case (.badValue, _) where isNested:
            let name = finding.culprit.map { shownColumn(list.layout.names[$0.field]) } ?? "name"
            return (
                "line \(line) is \(finding.reason.text)\(cause(list).map { ", because \($0)" } ?? "")",
                "name a key inside it, as in {{\(name).first}}."
            )
        case (.badValue, _) where isInOtherEncoding:
            return (
                "line \(line) is \(finding.reason.text)\(cause(list).map { ", because \($0)" } ?? "")",
                "\(list.encodingAdvice())."
            )
        default:
            return (
                "line \(line) is \(finding.reason.text)\(cause(list).map { ", because \($0)" } ?? "")",
                "check the columns that the payload\(finding.isOfTopic ? " and the topic are" : " is") made from."
            )
        }
    }
}

extension FirstRowsCheck.Sample {
    /// Problem of a line of JSON Lines that is not a JSON object.
    private func words(_ problem: PayloadCheck.Problem) -> (what: String, advice: String) {
        let what = "line \(line) is not a JSON object"
        if let digitCount, digitCount > 0 {
            return (what, "is it a list with one token per line? Then add --format lines.")
        }
        guard let column = problem.column, column > 1 else {
            return (what, "write each row as an object on a line of its own, as jq -c does.")
        }
        return ("\(what) (column \(column))", "\(problem.message).")
    }

    /// Problem of a row that lacks a column of its payload. (A header without the column is refused
    /// earlier.)
    private func missingKey(_ list: TokenList) -> (what: String, advice: String) {
        let column = list.layout.names[finding.culprit?.field ?? 0]
        let keys = keyAdvice(column, list)
        if finding.culprit?.use == .topic {
            return (
                "\(lack(of: column)), from which the topic is made",
                "name another column in --topic, or write a default, as in "
                    + "{{app|com.example.app}}\(keys)."
            )
        }
        return (
            "\(lack(of: column)), from which the payload is made",
            "name another column in the payload, or write a default, as in {{name|friend}}\(keys)."
        )
    }

    /// Problem of a row that lacks a value in a column.
    private func lack(of column: String) -> String {
        "line \(line) has \(nullKeys.contains(column) ? "null in" : "no") '\(printable(column))'"
    }

    /// Advice about the keys of a JSON Lines list, after a colon; empty if the row has the key.
    private func keyAdvice(_ column: String, _ list: TokenList) -> String {
        if nullKeys.contains(column) { return "" }
        return ((try? list.keyAdvice(for: column)) ?? nil).map { ": \($0)" } ?? ""
    }
}

extension InvalidRowsGuard.Verdict {
    /// Whether the shard has no rows although the list has some. A short list that is divided into
    /// many shards leaves some of them empty.
    func isEmptyPart(of list: TokenList, _ shard: ListShard?) throws(BroadsideError) -> Bool {
        guard self == .noRow, shard != nil else { return false }
        return try list.hasRow()
    }

    /// Error that refuses a list before anything is sent.
    ///
    /// - Parameters:
    ///   - sample: Invalid row that is explained.
    ///   - percent: Value of `--max-invalid`.
    ///   - reasons: Number of invalid rows by reason, as text; empty if all have one reason.
    func refusal(
        of list: TokenList, _ sample: FirstRowsCheck.Sample?, _ percent: Double, reasons: String
    ) -> BroadsideError {
        let words = sample?.words(list)
        let what = words.map { ", \($0.what)" } ?? ""
        let advice = words.map { "\($0.advice)" } ?? "is it the right file?"
        switch self {
        case .noRow:
            return .request(
                list.name,
                " contains no rows, so no device gets this campaign: is it the "
                    + "right file?")
        case .noValidRow(let rows):
            let subject =
                rows == 1 ? "its row is invalid" : "all of its \(grouped(rows)) rows are invalid"
            let fix = advice.hasSuffix(".") ? String(advice.dropLast()) : advice
            return .request(list.name, ": \(subject)\(reasons)\(what): \(fix)")
        case .tooMany(let invalid, let rows):
            return .request(
                list.name,
                ": \(FirstRowsCheck.share(invalid, of: rows)) rows read are invalid\(reasons)\(what): "
                    + "\(advice) If these rows need not be sent, raise --max-invalid, which is "
                    + percentNumber(percent))
        }
    }
}

extension TokenList {
    /// Whether the list has any row.
    func hasRow() throws(BroadsideError) -> Bool {
        var rows = try RowCursor(self, rowsAtOnce: 1)
        return try rows.next() != nil
    }
}
