internal import BroadsideAPNs
internal import BroadsideHygiene
package import BroadsidePayloads
package import BroadsideRows
package import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// A scan for the rows that a run skips:
///
/// - rows that a filter excludes,
/// - rows whose token is on the suppression list,
/// - rows whose token is also in an earlier row,
/// - rows whose token is dead or has reached the cap, as earlier ledgers show.
///
///     suppressions ▶ digests ─┐
///                             ├─▶ sorted by token ▶ skipped rows ▶ sorted by row ▶ ExclusionIndex
///     list ▶ digests, rows ───┘                          ▲
///      └─▶ rows excluded regardless of their tokens ─────┘
///
/// Both sorts spill to disk, so memory is bounded. Tokens are compared by hashes of 128 bits.
/// Earlier ledgers have only 64 bits of each accepted token, so accepted tokens are compared by
/// these bits. Dead tokens are compared digit by digit.
package struct ExclusionScan {
    /// The suppression list; nil if there is none.
    let suppress: TokenList?
    /// SHA-256 of the decoded suppression list, hexadecimal; nil if there is none.
    package let suppressSHA256: String?
    let skipsDuplicates: Bool
    /// Rules that exclude rows by their own columns.
    private let rules: RowRules
    /// The split of devices into arms, with a holdout; nil if no row is held out.
    private let split: ArmSplit?
    /// Reader of earlier ledgers; nil if there are none.
    private let earlier: EarlierReader?
    /// The campaign whose rows are scanned. Its start determines which verdicts of earlier ledgers
    /// are used.
    package var campaign: RunningCampaign
    /// Whether the campaign began earlier, so that its lists can't be corrected any more.
    package var isBegun = false
    /// Maximum percentage of rows without a token in the suppression list, 0 to 100. A campaign that
    /// has begun has no limit.
    package var maxInvalid = 100.0
    /// Whether the list is one of several that together are the campaign's table (`--part`).
    package var isPart = false
    /// Payloads of the rows. A row without a valid payload can't be sent, so a later row with its
    /// token is not a duplicate.
    private let payloads: PayloadSet
    /// Time zones whose rows can't be sent; nil if rows have no time zones.
    private let zones: UnsentZones?

    /// Maximum number of records that each of the two sorts has in memory. They take 16 MiB per
    /// sort.
    private static let sorterLimit = 1 << 19
    /// Number of bits of the token filter, which takes 8 MiB. The filter excludes most tokens that
    /// are not suppressed.
    private static let filterBitCount = 1 << 26

    /// Number of records between two checks for a stop signal.
    private static let stopInterval = 1 << 16

    /// - Returns: nil if no option of the run skips rows.
    package init?(
        of tokens: TokenSource?, suppress file: String?, skipsDuplicates: Bool,
        rules: RowRules = RowRules(), split: ArmSplit? = nil, earlier: EarlierReader? = nil,
        campaign: RunningCampaign = RunningCampaign(), tokenColumn: String?, payloads: PayloadSet,
        zones: UnsentZones? = nil
    ) throws(BroadsideError) {
        let split = split?.holdout == nil ? nil : split
        guard
            file != nil || skipsDuplicates || !rules.isEmpty || earlier != nil || split != nil
        else { return nil }
        self.earlier = earlier
        self.campaign = campaign
        self.skipsDuplicates = skipsDuplicates
        self.rules = rules
        self.split = split
        self.payloads = payloads
        self.zones = zones
        guard let path = file else {
            (suppress, suppressSHA256) = (nil, nil)
            return
        }
        let list = try Self.openList(path, tokenColumn: tokenColumn)
        if let tokens = Self.identity(of: tokens), list.identity == tokens {
            throw .usage(
                "suppress",
                "\(path) is also the list of --tokens, so every row would be "
                    + "skipped: name the list of opt-outs")
        }
        suppress = list
        suppressSHA256 = try Self.sha256(of: list)
    }

    /// Returns the identity of the list's file; nil if it is not a file.
    private static func identity(of tokens: TokenSource?) -> FileIdentity? {
        switch tokens {
        case .file(ListBytes.standardInput): FileIdentity(descriptor: STDIN_FILENO)
        case .file(let path): FileIdentity(path: path)
        case .single, nil: nil
        }
    }

    /// Opens the suppression list. Its token column has the same name as the list's token column,
    /// or the default name.
    private static func openList(
        _ path: String, tokenColumn: String?
    ) throws(BroadsideError) -> TokenList {
        guard path != ListBytes.standardInput else {
            throw .usage(
                "suppress",
                "-: opt-outs are read more than once, which standard input does not "
                    + "allow: name a file")
        }
        if let tokenColumn, let list = try listWithColumn(tokenColumn, path) {
            // Each row of JSON Lines names its own keys, so the header can't show whether the
            // column exists.
            if list.format != .jsonl { return list }
            if try list.survey().hasColumn { return list }
        }
        return try TokenList(.file(path), format: nil, tokenColumn: nil, option: "suppress")
    }

    /// Opens the list with this token column; nil if that fails, for example because the column is
    /// missing. Throws if the list has a fault, because no column can then be read.
    private static func listWithColumn(
        _ tokenColumn: String, _ path: String
    ) throws(BroadsideError) -> TokenList? {
        do throws(BroadsideError) {
            return try TokenList(
                .file(path), format: nil, tokenColumn: tokenColumn, option: "suppress")
        } catch {
            if error.isFaultyList { throw error }
            return nil
        }
    }

    private static func sha256(of list: TokenList) throws(BroadsideError) -> String {
        var sum = SHA256Sum()
        var buffer = ReadBuffer(byteCount: 1 << 18)
        var offset: UInt64 = 0
        while true {
            let count = try list.read(at: offset, into: &buffer)
            if count == 0 { return hexadecimal(sum.finish()) }
            // SAFETY: a span's bytes are set, and are read before the closure ends.
            unsafe buffer.bytes.withUnsafeBytes { unsafe sum.update($0) }
            offset += UInt64(count)
        }
    }

    /// Possible reasons for skipping rows, in order of precedence.
    package var possibleReasons: [SkipReason] {
        var reasons = rules.reasons
        if suppress != nil { reasons.append(.suppressed) }
        if skipsDuplicates { reasons.append(.duplicate) }
        if let earlier, earlier.rules.skipsDead { reasons.append(.deadToken) }
        if let earlier, earlier.rules.cap != nil { reasons.append(.frequencyCap) }
        if split != nil { reasons.append(.holdout) }
        return reasons.sorted()
    }

    /// The value that identifies the scan in its file, with one bit per reason. All other options
    /// of the scan are part of the campaign's identity.
    var code: UInt64 { possibleReasons.reduce(0) { $0 | 1 << UInt64($1.rawValue) } }

    /// Finds the rows to skip, and writes them to a file.
    ///
    /// - Parameter end: End of the rows to check; nil for all rows. If `end` is set, unreadable
    ///   suppressions are not reported, because the scan of the whole list reports them.
    package func run(
        _ list: TokenList, upTo end: UInt64? = nil, to descriptor: Int32, name: String
    ) throws(BroadsideError) {
        var tokens = RecordSorter(directory: temporaryDirectory(), limit: Self.sorterLimit)
        var rows = RecordSorter(directory: temporaryDirectory(), limit: Self.sorterLimit)
        let counts = try collect(list, upTo: end, into: &tokens, skipped: &rows)
        let suppressedRows = try write(&tokens, skipped: &rows, to: descriptor, name: name)
        if let suppress, let optOuts = counts?.optOuts, let rows = counts?.rows {
            warn(of: optOuts, in: suppress, for: rows, of: list, suppressedRows: suppressedRows)
        }
    }

    /// Collects tokens for which rows may have to be skipped. The smaller list is read first and
    /// gives a filter. Few tokens of the larger list pass this filter.
    ///
    /// - Parameter rows: Receives the rows that are skipped regardless of their tokens.
    /// - Returns: Counts of the suppression list, if there is one, and of the list; nil if the list
    ///   was not read completely.
    private func collect(
        _ list: TokenList, upTo end: UInt64?, into tokens: inout RecordSorter,
        skipped rows: inout RecordSorter
    ) throws(BroadsideError) -> (optOuts: ListSurvey.Counts?, rows: ListSurvey.Counts)? {
        var filter = TokenFilter(bitCount: suppress == nil ? 0 : Self.filterBitCount)
        if let end {
            // The scan of a list's first rows reads no earlier ledgers.
            _ = try collectRows(of: list, upTo: end, nil, into: &tokens, skipped: &rows) { token in
                filter.insert(token.low)
                return true
            }
            if let suppress {
                _ = try collectOptOuts(suppress, into: &tokens) { filter.mayContain($0.low) }
            }
            return nil
        } else {
            var optOuts: ListSurvey.Counts?
            if let suppress {
                let counts = try collectOptOuts(suppress, into: &tokens) { token in
                    filter.insert(token.low)
                    return true
                }
                try check(counts, of: suppress)
                optOuts = counts
            }
            let verdicts = try earlier?.read(campaign)
            var capped = TokenFilter(
                bitCount: earlier?.rules.cap == nil ? 0 : Self.filterBitCount)
            try verdicts?.forEachCapped { (fingerprint) throws(BroadsideError) in
                capped.insert(fingerprint)
                try tokens.append(.mark(fingerprint: fingerprint))
            }
            let counts = try collectRows(
                of: list, upTo: nil, verdicts, into: &tokens, skipped: &rows
            ) {
                skipsDuplicates || filter.mayContain($0.low) || capped.mayContain($0.high)
            }
            if let refusal = list.refusal(of: counts.headers, isBegun: isBegun) { throw refusal }
            list.warn(of: counts.headers, isBegun: isBegun)
            if !isBegun { try list.warnOfDamage(counts.overwritten) }
            if let suppress, let optOuts {
                try checkLengths(of: optOuts, in: suppress, for: counts, of: list)
            }
            try verdicts?.checkRegistrations(list, rows: counts.valid)
            return (optOuts, counts)
        }
    }

    private func collectOptOuts(
        _ list: TokenList, into tokens: inout RecordSorter, where isWanted: (TokenDigest) -> Bool
    ) throws(BroadsideError) -> ListSurvey.Counts {
        try read(list, upTo: nil, RowTests()) { (row) throws(BroadsideError) in
            guard let token = row.token, isWanted(token) else { return }
            try tokens.append(.mark(token, .suppressed))
        }
    }

    /// - Parameter verdicts: Facts from earlier ledgers; nil if there are none.
    private func collectRows(
        of list: TokenList, upTo end: UInt64?, _ verdicts: EarlierVerdicts?,
        into tokens: inout RecordSorter, skipped rows: inout RecordSorter,
        where isWanted: (TokenDigest) -> Bool
    ) throws(BroadsideError) -> ListSurvey.Counts {
        var tests = RowTests(rules: rules, split: split)
        if let earlier, earlier.rules.skipsDead {
            tests.verdicts = verdicts
            tests.registered = earlier.rules.registeredColumn.flatMap {
                list.layout.field(named: $0)
            }
            tests.topics = payloads.topic.map { RowTopicReader($0.template, layout: list.layout) }
        }
        if skipsDuplicates {
            tests.payloads = payloads.withUncountedTopics
            tests.zones = zones.map { zones in
                UnsentZonesPass(
                    zones, layout: list.layout,
                    startedAt: campaign.startedAtMilliseconds ?? Clock.now().wallMilliseconds)
            }
        }
        return try read(list, upTo: end, tests) { (row) throws(BroadsideError) in
            if let token = row.token, isWanted(token) {
                try tokens.append(
                    .row(row.number, token, isSendable: row.isSendable, row.reason))
            } else if let reason = row.reason {
                // No other reason can apply to the row.
                try rows.append(.skipped(row.number, reason))
            }
        }
    }

    /// Decides which of the collected rows are skipped, token by token.
    ///
    /// - Returns: Number of suppressed rows.
    private func write(
        _ tokens: inout RecordSorter, skipped rows: inout RecordSorter, to descriptor: Int32,
        name: String
    ) throws(BroadsideError) -> UInt64 {
        var token = TokenVerdict(skipsDuplicates: skipsDuplicates)
        var count = 0
        var suppressedRows: UInt64 = 0
        try tokens.merge { (record) throws(BroadsideError) in
            count += 1
            if count % Self.stopInterval == 0 { try SignalWatch.stopIfRequested() }
            guard let (row, reason) = token.take(record) else { return }
            if reason == .suppressed { suppressedRows += 1 }
            try rows.append(.skipped(row, reason))
        }
        let reasons = possibleReasons
        var writer = try ExclusionIndex.Writer(descriptor: descriptor, name: name)
        try rows.merge { (record) throws(BroadsideError) in
            guard let reason = SkipReason(rawValue: UInt8(record.second)) else {
                preconditionFailure("the records are those that were appended")
            }
            assert(reasons.contains(reason), "a row is skipped for a reason that the run has")
            try writer.append(row: record.first, reason)
        }
        try writer.finish(self)
        return suppressedRows
    }

    /// Row as read from the list.
    private struct ReadRow {
        let number: UInt64
        /// Token of the row; nil if the row has none.
        var token: TokenDigest?
        /// Whether the row has a valid payload, and its time zone allows a request.
        var isSendable: Bool
        /// Reason that applies to the row regardless of its token.
        var reason: SkipReason?
    }

    /// The tests of a list's rows; by default, none.
    private struct RowTests: ~Copyable {
        /// Rules about the rows' own columns.
        var rules = RowRules()
        /// Split whose holdout is excluded; nil to exclude no arm.
        var split: ArmSplit?
        /// Facts about dead tokens; nil if there are none.
        var verdicts: EarlierVerdicts?
        /// Index of the field with the registration time; nil if there is none.
        var registered: Int?
        /// Reader of the topics for which tokens may be dead; nil if rows name none.
        var topics: RowTopicReader?
        /// Payloads for checking whether rows can be sent; nil to skip that check.
        var payloads: PayloadSet?
        /// Test of the rows' time zones; nil if rows have none.
        var zones: UnsentZonesPass?
    }

    /// Calls `visit` with each row that has a token or is excluded by the rules.
    private func read(
        _ list: TokenList, upTo end: UInt64?, _ tests: consuming RowTests,
        _ visit: (ReadRow) throws(BroadsideError) -> Void
    ) throws(BroadsideError) -> ListSurvey.Counts {
        let set = tests.payloads ?? PayloadSet(constant: [])
        var pass = RowRulesPass(tests.rules, layout: list.layout)
        let chooser = tests.split.map { ArmChooser($0) }
        let holdout = tests.split?.holdout
        let verdicts = tests.verdicts
        var renderer = PayloadRenderer(set, layout: list.layout)
        var survey = ListSurvey()
        var rows = try RowCursor(
            list, ListSelection(rows: CampaignRows(limit: end)), endsOnSignals: true,
            showsProgress: true)
        while let row = try rows.next() {
            var reason = pass.reason(for: row, rows.reader)
            let isExcluded = reason != nil
            let count = survey.take(row, of: rows.reader)
            guard count > 0 || isExcluded else { continue }
            let digest = count > 0 ? TokenDigest(survey.token(count)) : nil
            if let verdicts, let digest {
                // A row that names no topic matches no report, and is not sent either.
                let topic =
                    verdicts.mayBeDead(digest.high)
                    ? tests.topics.map { $0.topic(of: rows.reader) ?? "" } : nil
                let isDead = verdicts.isDead(
                    survey.token(count), digest.high, topic: topic, row, of: rows.reader,
                    registered: tests.registered)
                if isDead { reason = reason ?? .deadToken }
            }
            if let chooser, count > 0, chooser.arm(of: survey.token(count)) == holdout {
                reason = reason ?? .holdout
            }
            var isSendable = count > 0 && !isExcluded && reason != .holdout
            if isSendable, set.isPersonal, case .invalid = renderer.render(rows.reader) {
                isSendable = false
            }
            if isSendable, tests.zones?.isUnsent(rows.reader) == true { isSendable = false }
            try visit(
                ReadRow(
                    number: row.number,
                    token: digest, isSendable: isSendable, reason: reason))
        }
        if end == nil {
            try pass.finish(list, mayRefuse: !isBegun && !isPart, isBegun: isBegun)
        }
        return survey.counts
    }
}

extension RecordSorter.Record {
    /// Record of a skipped row. Such records are sorted by row number.
    fileprivate static func skipped(_ row: UInt64, _ reason: SkipReason) -> Self {
        .init(first: row, second: UInt64(reason.rawValue), third: 0, fourth: 0)
    }

    /// Record of a reason that applies to all rows with this token. It sorts before the records of
    /// these rows.
    fileprivate static func mark(_ token: TokenDigest, _ reason: SkipReason) -> Self {
        .init(first: token.high, second: token.low, third: 0, fourth: UInt64(reason.rawValue))
    }

    /// Record of a token that reached the cap and is known only by its fingerprint. It sorts before
    /// the marks and rows of tokens with this fingerprint.
    fileprivate static func mark(fingerprint: UInt64) -> Self {
        .init(
            first: fingerprint, second: 0, third: 0,
            fourth: UInt64(SkipReason.frequencyCap.rawValue))
    }

    /// Record of a row in the list. Such records are sorted by token, then by row number.
    ///
    /// - Parameters:
    ///   - isSendable: Whether the row has a valid payload, and its time zone allows a request.
    ///   - reason: Reason that applies to this row regardless of its token.
    fileprivate static func row(
        _ row: UInt64, _ token: TokenDigest, isSendable: Bool, _ reason: SkipReason?
    ) -> Self {
        .init(
            first: token.high, second: token.low, third: row + 1,
            fourth: (isSendable ? 1 : 0) | (reason.map { UInt64($0.rawValue) + 1 } ?? 0) << 1)
    }
}

/// Decides which rows with the same token are skipped, and why. Takes the records in sorted order:
/// first a token's marks, then its rows.
private struct TokenVerdict {
    let skipsDuplicates: Bool
    private var token: (high: UInt64, low: UInt64)?
    /// First reason that applies to all rows with the current token.
    private var mark: SkipReason?
    /// Whether an earlier row with the current token is sent.
    private var hasSentRow = false
    /// Fingerprint in the latest record of a token that reached the cap.
    private var cappedFingerprint: UInt64?

    init(skipsDuplicates: Bool) { self.skipsDuplicates = skipsDuplicates }

    /// - Returns: The row and the reason to skip it; nil if the record is not a row that is
    ///   skipped.
    mutating func take(_ record: RecordSorter.Record) -> (row: UInt64, SkipReason)? {
        if token?.high != record.first || token?.low != record.second {
            token = (record.first, record.second)
            (mark, hasSentRow) = (nil, false)
        }
        guard record.third > 0 else {
            assert(!hasSentRow, "a token's marks come before its rows")
            guard record.fourth != UInt64(SkipReason.frequencyCap.rawValue) else {
                cappedFingerprint = record.first
                return nil
            }
            // The marks of a token are in the order of their reasons.
            mark = mark ?? SkipReason(rawValue: UInt8(record.fourth))
            return nil
        }
        let own =
            record.fourth >> 1 == 0 ? nil : SkipReason(rawValue: UInt8(record.fourth >> 1 - 1))
        let duplicate: SkipReason? = skipsDuplicates && hasSentRow ? .duplicate : nil
        let cap: SkipReason? = cappedFingerprint == record.first ? .frequencyCap : nil
        let reason = firstInPrecedence(
            firstInPrecedence(mark, cap), firstInPrecedence(duplicate, own))
        // Only a row that can be sent makes later rows duplicates.
        if mark == nil, own == nil, cap == nil, record.fourth & 1 == 1 { hasSentRow = true }
        return reason.map { (record.third - 1, $0) }
    }

    /// Returns the reason that takes precedence; nil if both are nil.
    private func firstInPrecedence(_ left: SkipReason?, _ right: SkipReason?) -> SkipReason? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }
}

extension ExclusionScan {
    /// Returns the rows to be skipped. Their file has no name, so it disappears with the process.
    ///
    /// - Parameter end: End of the rows to check; nil for all.
    package func listAside(
        of list: TokenList, upTo end: UInt64? = nil
    ) throws(BroadsideError) -> ExclusionIndex {
        let name = "a temporary file in \(temporaryDirectory())"
        let descriptor = try openNameless(in: temporaryDirectory())
        do throws(BroadsideError) {
            _ = try run(list, upTo: end, to: descriptor, name: name)
        } catch {
            close(descriptor)
            throw error
        }
        return try taken(descriptor, name: name)
    }

    package func taken(_ descriptor: Int32, name: String) throws(BroadsideError) -> ExclusionIndex {
        guard let list = try ExclusionIndex(descriptor: descriptor, name: name, search: self) else {
            throw BroadsideError("\(name) was changed after it was written", exitCode: 5)
        }
        return list
    }
}
