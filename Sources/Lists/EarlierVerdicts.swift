internal import BroadsideAPNs
internal import BroadsideHygiene
package import BroadsideLedgerFormat
internal import BroadsideRows
package import BroadsideSupport
internal import Glibc

/// What a run asks of earlier ledgers.
package struct EarlierQuestions: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Which tokens they report as dead.
    package static let dead = EarlierQuestions(rawValue: 1)
    /// How often they say that tokens were accepted.
    package static let accepted = EarlierQuestions(rawValue: 2)
}

/// What earlier ledgers say of the tokens of a list: which are dead, by the rule of `prune`, and how often
/// each was accepted.
///
///     each ledger ──▶ first reading: dead tokens ──▶ second reading: what says otherwise, and acceptances
///
/// Only verdicts that were settled before the campaign's first start count, so that they
/// are the same however late they are read again. Memory is bounded: `DeadTokens.memoryLimit`, `AcceptanceCounts.memoryLimit`.
package final class EarlierVerdicts {
    /// The rules by which rows are skipped.
    package struct Rules: Sendable, Equatable {
        /// Whether rows of dead tokens are.
        package var skipsDead: Bool
        /// For how long a report that a token is dead counts, in milliseconds; nil: for ever.
        package var deadForMilliseconds: UInt64?
        /// The column that says when a row's token was registered; nil: none.
        package var registeredColumn: String?
        /// How often a device may get a notification; nil: it does not matter.
        package var cap: FrequencyCap?
        /// Whose tokens the list has.
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

    /// Ledgers of other apps or environments: what they call dead says nothing of this list's tokens.
    package private(set) var foreignCount = 0

    /// Rows that have a time of registration.
    private var registeredRows: UInt64 = 0
    private var hasReadableRegistration = false
    /// The line of the first dead token's row whose time of registration can't be read.
    private var firstUnreadableLine: UInt64?

    /// - Parameter start: The campaign's first start, milliseconds since 1970.
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
            countsResponses: false)
        ledgers.append((ledger, questions))
    }

    /// The reasons of a 410.
    private static let deadReasons: Set<Reason> = [.unregistered, .expiredToken]

    /// Whether a ledger can be read for the first time, after those before.
    ///
    /// - Throws: Why what they said could not be kept.
    package func checkRoom() throws(BroadsideError) {
        if let failure = acceptances.failure { throw failure }
        guard dead.isFull else { return }
        throw .usage(
            "skip-dead",
            "the ledgers name more dead tokens than \(DeadTokens.memoryLimit >> 20) MiB hold: remove "
                + "these tokens from the list with broadside prune, and name newer ledgers")
    }

    /// How many ledgers are to be read once more.
    package var againCount: Int { ledgers.count }

    /// Ends the first reading.
    package func endFirstReading() { dead.seal() }

    /// Reads one of the ledgers once more.
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

    // MARK: Asking it

    /// Whether there is a dead token.
    var hasDead: Bool { dead.count > 0 }

    /// Whether a row is one of a dead token: not if the token was registered after it had died, or at a time
    /// that is unreadable.
    ///
    /// - Parameters:
    ///   - digits: The row's token, lower-case digits.
    ///   - fingerprint: Its fingerprint.
    ///   - registered: The field with the time of registration; nil: there is none.
    func isDead(
        _ digits: RawSpan, _ fingerprint: UInt64, _ row: RowReader.Row,
        of reader: borrowing RowReader,
        registered field: Int?
    ) -> Bool {
        guard let field else { return dead.diedAt(digits: digits, fingerprint: fingerprint) != nil }
        let registration = reader.field(field)
        if registration.form != .missing {
            registeredRows += 1
            if !hasReadableRegistration {
                hasReadableRegistration = time(registration, reader) != nil
            }
        }
        guard let diedAt = dead.diedAt(digits: digits, fingerprint: fingerprint) else {
            return false
        }
        guard let time = time(registration, reader) else {
            firstUnreadableLine = firstUnreadableLine ?? row.line
            return false
        }
        return !DeadTokens.lives(registeredAt: time, diedAt: diedAt)
    }

    private func time(_ field: RowReader.Field, _ reader: borrowing RowReader) -> Int64? {
        field.isText ? registrationTime.milliseconds(reader.text(field)) : nil
    }

    /// Refuses a column of which no row says when its token was registered, as `prune` does.
    ///
    /// - Parameter rows: Rows that were asked for.
    func checkRegistrations(_ list: TokenList, rows: UInt64) throws(BroadsideError) {
        guard let column = rules.registeredColumn, rows > 0 else { return }
        guard registeredRows > 0 else {
            throw try list.noRow(with: column, option: "registered-column")
        }
        guard firstUnreadableLine == nil || hasReadableRegistration else {
            throw .unreadableRegistrations(column, in: list.name, firstLine: firstUnreadableLine)
        }
    }

    /// Hands out the fingerprint of each token that was accepted as often as the cap allows, or more often.
    func forEachCapped(
        _ visit: (UInt64) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        guard let cap = rules.cap else { return }
        try acceptances.forEach(atLeast: cap.count, visit)
    }
}

/// Reads earlier ledgers once it is known which campaign asks.
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
