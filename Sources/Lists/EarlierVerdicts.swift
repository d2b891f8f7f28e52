internal import BroadsideAPNs
internal import BroadsideHygiene
package import BroadsideLedgerFormat
internal import BroadsideRows
package import BroadsideSupport
internal import Glibc

/// Facts that a run needs from earlier ledgers.
package struct EarlierQuestions: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Which tokens are reported as dead.
    package static let dead = EarlierQuestions(rawValue: 1)
    /// How often each token was accepted.
    package static let accepted = EarlierQuestions(rawValue: 2)
}

/// Facts from earlier ledgers about the tokens of a list: which tokens are dead (by the same rule
/// as for `prune`), and how often each token was accepted.
///
///     each ledger ──▶ first reading: dead tokens ──▶ second reading: living tokens, acceptances
///
/// Verdicts are used only if they are older than the campaign's first start. So a resume gets the
/// same result. Memory is bounded by `DeadTokens.memoryLimit` and `AcceptanceCounts.memoryLimit`.
package final class EarlierVerdicts {
    /// The rules for skipping rows.
    package struct Rules: Sendable, Equatable {
        /// Whether rows with dead tokens are skipped.
        package var skipsDead: Bool
        /// Maximum age of a report of a dead token at the campaign's first start, in milliseconds;
        /// nil if unlimited.
        package var deadForMilliseconds: UInt64?
        /// Column with the registration time of a row's token; nil if there is none.
        package var registeredColumn: String?
        /// Limit on notifications per device; nil if unlimited.
        package var cap: FrequencyCap?
        /// Topic and environment of the list's tokens. The topic is nil if it is unknown, or if
        /// each row names its own.
        package var topic: String?
        package var environment: String?

        package init(
            skipsDead: Bool, deadForMilliseconds: UInt64?, registeredColumn: String?,
            cap: FrequencyCap?, topic: String?, environment: String?
        ) {
            self.skipsDead = skipsDead
            self.deadForMilliseconds = deadForMilliseconds
            self.registeredColumn = registeredColumn
            self.cap = cap
            self.topic = topic
            self.environment = environment
        }
    }

    private let rules: Rules
    private let reportTime: Range<UInt64>
    private let acceptanceTime: Range<UInt64>
    private let registrationTime: RegistrationTime
    private var dead = DeadTokens()
    private var acceptances: AcceptanceCounts
    private var ledgers: [(verdicts: VerdictLedger, questions: EarlierQuestions)] = []

    /// Number of ledgers of other apps or environments. Their reports do not apply to this list's
    /// tokens.
    package private(set) var foreignCount = 0

    /// Number of rows with a registration time.
    private var registeredRows: UInt64 = 0
    private var hasReadableRegistration = false
    /// Number of rows with a dead token and an unreadable registration time.
    private var unreadableRows: UInt64 = 0
    /// Line of the first row with a dead token and an unreadable registration time; nil if there is
    /// none.
    private var firstUnreadableLine: UInt64?
    /// Line of the first row with a dead token whose registration time has no offset from UTC and
    /// was read as UTC; nil if there is none.
    private var firstLineWithoutOffset: UInt64?

    /// - Parameter start: First start of the campaign, milliseconds since 1970.
    package init(_ rules: Rules, before start: UInt64) {
        self.rules = rules
        func time(since milliseconds: UInt64?) -> Range<UInt64> {
            let first = milliseconds.map { start > $0 ? start - $0 : 0 }
            return (first ?? 0)..<start
        }
        reportTime = time(since: rules.deadForMilliseconds)
        acceptanceTime = time(since: rules.cap?.milliseconds)
        registrationTime = RegistrationTime(nowMilliseconds: start)
        acceptances = AcceptanceCounts(directory: temporaryDirectory())
    }

    // MARK: Reading the ledgers

    /// Reads a ledger for the first time.
    package func take(
        _ manifest: Manifest, _ segments: [LedgerSegment], _ questions: EarlierQuestions
    ) throws(LedgerError) {
        var ledger = VerdictLedger(manifest: manifest, segments: segments)
        guard questions.contains(.dead) else {
            return try ledger.readAccepted { acceptances.add($0, within: acceptanceTime) }
        }
        let own = TokenScope(topic: rules.topic, environment: rules.environment)
        let isForeign = !ledger.scope.mayBe(own)
        if isForeign { foreignCount += 1 }
        try dead.insertDead(
            of: &ledger, reasons: isForeign ? [] : Self.deadReasons, settledIn: reportTime,
            countsResponses: false, among: own)
        ledgers.append((ledger, questions))
    }

    /// Reasons with which APNs reports a dead token (status 410).
    private static let deadReasons: Set<Reason> = [.unregistered, .expiredToken]

    /// Checks that all results so far could be stored. Called after each ledger of the first
    /// reading.
    ///
    /// - Throws: The reason why results could not be stored.
    package func checkRoom() throws(BroadsideError) {
        if let failure = acceptances.failure { throw failure }
        guard dead.isFull else { return }
        throw .usage(
            "skip-dead",
            "the ledgers name more dead tokens than fit into "
                + "\(DeadTokens.memoryLimit >> 20) MiB: remove these tokens from the "
                + "list with broadside prune, then name only newer ledgers")
    }

    /// Number of ledgers for the second reading.
    package var againCount: Int { ledgers.count }

    /// Ends the first reading.
    package func endFirstReading() { dead.seal() }

    /// Reads one of the ledgers a second time.
    package func takeAgain(_ index: Int) throws(LedgerError) {
        let (ledger, questions) = ledgers[index]
        let isCounted = questions.contains(.accepted)
        guard isCounted || dead.count > 0 else { return }
        try dead.rescueLiving(
            of: ledger, reasons: Self.deadReasons, settledBefore: reportTime.upperBound,
            accepted: { if isCounted { acceptances.add($0, within: acceptanceTime) } })
    }

    /// Ends the second reading.
    package func finish() throws(BroadsideError) {
        ledgers = []
        dead.seal()
        try acceptances.finish()
    }

    // MARK: Queries

    /// Whether any token is dead.
    var hasDead: Bool { dead.count > 0 }

    /// Whether a token with this fingerprint may be dead. False for nearly all tokens that are
    /// alive.
    func mayBeDead(_ fingerprint: UInt64) -> Bool { dead.mayContain(fingerprint) }

    /// Whether a row has a dead token. False if the token was registered after it died, or if the
    /// registration time is unreadable.
    ///
    /// - Parameters:
    ///   - digits: Lower-case digits of the row's token.
    ///   - fingerprint: Fingerprint of the token.
    ///   - topic: The topic that the row names; nil if all rows have the campaign's topic. A report
    ///     for another topic is ignored.
    ///   - registered: Index of the field with the registration time; nil if there is none.
    func isDead(
        _ digits: RawSpan, _ fingerprint: UInt64, topic: String? = nil, _ row: RowReader.Row,
        of reader: borrowing RowReader,
        registered field: Int?
    ) -> Bool {
        assert(ledgers.isEmpty, "both readings of the earlier ledgers have ended")
        let scope = topic.map { TokenScope(topic: $0, environment: rules.environment) }
        guard let field else {
            return dead.diedAt(digits: digits, fingerprint: fingerprint, in: scope) != nil
        }
        let registration = reader.field(field)
        if registration.form != .missing {
            registeredRows += 1
            if !hasReadableRegistration {
                hasReadableRegistration = time(registration, reader) != nil
            }
        }
        guard let diedAt = dead.diedAt(digits: digits, fingerprint: fingerprint, in: scope) else {
            return false
        }
        guard let time = time(registration, reader) else {
            unreadableRows += 1
            firstUnreadableLine = firstUnreadableLine ?? row.line
            return false
        }
        if time.lacksOffset { firstLineWithoutOffset = firstLineWithoutOffset ?? row.line }
        return !DeadTokens.lives(registeredAt: time.milliseconds, diedAt: diedAt)
    }

    private func time(
        _ field: RowReader.Field, _ reader: borrowing RowReader
    ) -> RegistrationTime.Reading? {
        field.isText ? registrationTime.read(reader.text(field)) : nil
    }

    /// Checks the column of registration times. Refuses the column if no row has a value in it, as
    /// `prune` does. Warns about rows with dead tokens whose registration time is unreadable or has
    /// no offset.
    ///
    /// - Parameter rows: Number of rows that were checked.
    func checkRegistrations(_ list: TokenList, rows: UInt64) throws(BroadsideError) {
        guard let column = rules.registeredColumn, rows > 0 else { return }
        guard registeredRows > 0 else {
            throw try list.noRow(with: column, option: "registered-column")
        }
        guard firstUnreadableLine == nil || hasReadableRegistration else {
            throw .unreadableRegistrations(column, in: list.name, firstLine: firstUnreadableLine)
        }
        warnOfTimesWithoutOffset(column, in: list)
        warnOfUnreadableTimes(column, in: list)
    }

    /// Warns about times that are too early if they are local times west of Greenwich. Rows with
    /// such times may be skipped although their tokens were registered again.
    private func warnOfTimesWithoutOffset(_ column: String, in list: TokenList) {
        guard let line = firstLineWithoutOffset else { return }
        standardErrorLine(
            "broadside: warning: \(list.name): times without an offset in '\(shownColumn(column))' "
                + "are read as UTC, the first on line \(line): if they are local times, write their "
                + "offset, as in 2026-01-31T12:00:00-05:00")
    }

    /// Warns about rows with dead tokens that are sent because their registration time is
    /// unreadable.
    private func warnOfUnreadableTimes(_ column: String, in list: TokenList) {
        guard let line = firstUnreadableLine else { return }
        let rows =
            unreadableRows == 1
            ? "1 row with a dead token is sent, because its '\(shownColumn(column))' on line \(line) is"
            : "\(grouped(unreadableRows)) rows with dead tokens are sent, because their "
                + "'\(shownColumn(column))', the first on line \(line), is"
        standardErrorLine(
            "broadside: warning: \(list.name): \(rows) not a readable time from 2009 to tomorrow: "
                + "write it as Unix seconds or as 2026-01-31T12:00:00Z")
    }

    /// Calls `visit` with the fingerprint of each token that reached the cap.
    func forEachCapped(
        _ visit: (UInt64) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        guard let cap = rules.cap else { return }
        assert(ledgers.isEmpty, "each ledger is counted")
        try acceptances.forEach(atLeast: cap.count, visit)
    }
}

/// Reads earlier ledgers once the campaign's number and start are known.
package struct EarlierReader {
    package let rules: EarlierVerdicts.Rules
    package let read: (RunningCampaign) throws(BroadsideError) -> EarlierVerdicts

    package init(
        _ rules: EarlierVerdicts.Rules,
        read: @escaping (RunningCampaign) throws(BroadsideError) -> EarlierVerdicts
    ) {
        self.rules = rules
        self.read = read
    }
}
