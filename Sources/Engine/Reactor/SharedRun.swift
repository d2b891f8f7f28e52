import APNs
package import Campaign
package import Support
internal import Synchronization

/// What the reactors of a run hold in common: the provider token, the guards that count over all
/// connections, the word to stop. Everything here is a value behind a lock or an atomic, and the
/// time is a parameter, so that several reactors of a simulated world share it as threads do.
package final class SharedRun: Sendable {
    struct State: ~Copyable {
        var stop: StopCause?
        var token: ProviderTokenLife
        var sign: Signer?
        var guards: RefusalGuard
        var lastTrouble: ConnectionTrouble?
        var lastRefusal: StopCause.Refusal?
        /// Connections that servers ended by breaking the protocol.
        var broken = BrokenServerGuard()
        /// The connections in a row that called a provider token expired which is not old enough.
        var expiredOn: [UInt64] = []
        /// Since when every answer is TooManyProviderTokenUpdates, monotonic nanoseconds.
        var updatesRefusedSince: UInt64?
    }

    let state: Mutex<State>
    /// How the endpoint's addresses fare.
    let addressHealth = AddressHealth()
    let lossyAddresses = LossyAddresses()
    /// How many connections may be made in place of others.
    let churn = ConnectionChurn()
    /// Rows of reactors that can't send them.
    let exchange: RowExchange
    /// Rows that were read, for `--max-invalid`.
    private let rowsRead: Mutex<(judge: InvalidRowsGuard, leased: UInt64)>
    /// Holds the list back until its first rows are answered; nil where there is none.
    package let canary: CanaryGate?
    /// How many connections each reactor keeps up; nil: as many as the settings say.
    package let connectionTarget: ConnectionTarget?

    let tokenVersion = Atomic<UInt32>(1)
    let tokenStale = Atomic<Bool>(false)
    let sessionVersionCounter = Atomic<UInt32>(0)
    private let stopping = Atomic<Bool>(false)
    private let stoppingAtOnce = Atomic<Bool>(false)
    private let accepted = Atomic<Bool>(false)
    private let answered = Atomic<UInt64>(0)
    private let ready = Atomic<Bool>(false)
    private let hungry = Atomic<Int>(0)
    /// Requests that reactors have leave for before anything was accepted.
    private let earlyLeaves = Atomic<Int>(0)
    /// Refusals that count towards `--abort-after`.
    private let refusals = Atomic<Int>(0)

    private let listOver = Atomic<Bool>(false)
    /// Requests in 1,000 seconds over all reactors; the highest number: unlimited.
    private let rateLimit: Atomic<UInt64>
    private let paused = Atomic<Bool>(false)
    private let pauseEnd = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - authorization: `bearer ...`, or nil with a client certificate.
    ///   - issuedAt: Seconds since 1970 at which the token was made.
    ///   - sign: Makes a new `bearer ...` value for an issue time; nil where the token comes from
    ///     elsewhere.
    ///   - milliRate: Requests in 1,000 seconds in all; nil: unlimited.
    ///   - rowsRead: Counts rows for `--max-invalid`, those of earlier runs among them.
    ///   - canary: nil: none.
    ///   - connectionTarget: nil: each reactor keeps up what its settings say.
    ///   - exchangedRows: The most rows that lie between reactors.
    package init(
        authorization: [UInt8]?, issuedAt: UInt64, milliRate: UInt64?, abortAfter: Int,
        maxBadTokensPercent: Double,
        rowsRead: InvalidRowsGuard = InvalidRowsGuard(maximumPercent: 100),
        canary: CanaryGate? = nil,
        connectionTarget: ConnectionTarget? = nil, exchangedRows: Int = RowExchange.rowsLimit,
        sign: Signer?
    ) {
        state = Mutex(
            State(
                token: ProviderTokenLife(
                    authorization.map { .init(value: $0, issuedAt: issuedAt) }),
                sign: sign,
                guards: RefusalGuard(
                    abortAfter: abortAfter, maximumBadTokensPercent: maxBadTokensPercent)))
        self.rowsRead = Mutex((rowsRead, 0))
        self.canary = canary
        self.connectionTarget = connectionTarget
        exchange = RowExchange(limit: exchangedRows)
        rateLimit = Atomic(milliRate ?? .max)
    }

    /// Requests in 1,000 seconds in all; nil: unlimited. May change while running.
    package var milliRate: UInt64? {
        get {
            let rate = rateLimit.load(ordering: .relaxed)
            return rate == .max ? nil : rate
        }
        set { rateLimit.store(newValue ?? .max, ordering: .relaxed) }
    }

    /// True while the operator wants no new requests; those in flight are answered.
    package var isPaused: Bool { paused.load(ordering: .relaxed) }

    /// When the last pause ended, monotonic nanoseconds; 0 before the first.
    var lastPauseEnd: UInt64 { pauseEnd.load(ordering: .relaxed) }

    /// Begins a pause, or ends it.
    package func pause(_ isPaused: Bool, now: Now) {
        if !isPaused { pauseEnd.store(now.nanoseconds, ordering: .relaxed) }
        paused.store(isPaused, ordering: .releasing)
    }

    /// Changes with every new provider token.
    package var authorizationVersion: UInt32 { tokenVersion.load(ordering: .relaxed) }

    /// True while APNs calls the provider token expired and there is no other yet.
    var isTokenStale: Bool { tokenStale.load(ordering: .relaxed) }

    // MARK: What has happened so far

    /// True once a notification was accepted: the campaign works.
    package var anyAccepted: Bool { accepted.load(ordering: .relaxed) }

    /// True once a connection stood ready to send.
    var anyReady: Bool { ready.load(ordering: .relaxed) }

    /// When the last answer came, monotonic nanoseconds; nil before the first.
    package var lastAnswer: UInt64? {
        let time = answered.load(ordering: .relaxed)
        return time == 0 ? nil : time
    }

    /// Takes leave to have up to `count` more requests in flight although none was accepted yet.
    /// Together with the refusals that count so far there are never more than `limit`: so many
    /// requests, and no more, find out that a setting is wrong.
    ///
    /// - Returns: How many there may be.
    func takeEarlyLeaves(_ count: Int, limit: Int) -> Int {
        let taken = earlyLeaves.add(count, ordering: .acquiringAndReleasing).newValue
        let excess = min(count, max(0, taken + refusals.load(ordering: .acquiring) - limit))
        if excess > 0 { giveBackEarlyLeaves(excess) }
        return count - excess
    }

    /// Once what became of the requests was counted.
    func giveBackEarlyLeaves(_ count: Int) {
        earlyLeaves.subtract(count, ordering: .acquiringAndReleasing)
    }

    /// True once no reactor gets further rows of the list.
    var isListOver: Bool { listOver.load(ordering: .acquiring) }

    func noteListEnd() { listOver.store(true, ordering: .releasing) }

    func noteReady() { ready.store(true, ordering: .relaxed) }

    func noteAccepted(_ now: Now) {
        accepted.store(true, ordering: .relaxed)
        noteAnswer(now)
    }

    func noteAnswer(_ now: Now) { answered.store(now.nanoseconds, ordering: .relaxed) }

    /// Reactors that have rows to send: the rate is divided among them.
    var hungryReactors: Int { max(1, hungry.load(ordering: .relaxed)) }

    func enterHungry() { hungry.add(1, ordering: .relaxed) }

    func leaveHungry() { hungry.subtract(1, ordering: .relaxed) }

    // MARK: Stopping

    /// True once the word to stop was given.
    package var isStopping: Bool { stopping.load(ordering: .acquiring) }

    /// True once nothing is awaited any more.
    package var isStoppingAtOnce: Bool { stoppingAtOnce.load(ordering: .acquiring) }

    /// A second signal: answers in flight are awaited no more.
    package func stopAtOnce() { stoppingAtOnce.store(true, ordering: .releasing) }

    /// Asks all reactors to stop. The first cause stays, but a disk that fails while the run drains
    /// is worse than whatever came before: not all of what happened is in the ledger.
    package func stop(_ cause: StopCause) {
        state.withLock { state in
            switch (state.stop, cause) {
            case (nil, _): state.stop = cause
            case (.ledgerFailed, _): break
            case (_, .ledgerFailed): state.stop = cause
            default: break
            }
        }
        stopping.store(true, ordering: .releasing)
    }

    /// Why the run stops; nil while it doesn't.
    package var stopCause: StopCause? { state.withLock { $0.stop } }

    // MARK: Guards

    /// Counts rows that a reactor read; stops the run where too many are invalid.
    ///
    /// Rows until the next judgement are leased to the reactors, so that it is made at its row with
    /// one reactor, and at most as many rows later as there are reactors with several.
    ///
    /// - Parameters:
    ///   - lease: The reactor's lease so far, given back.
    ///   - reactors: Between how many the rows are divided; 0: none is leased for now.
    /// - Returns: The reactor's lease from now on.
    func count(rowsRead rows: UInt64, invalid: UInt64, lease: UInt64, reactors: Int) -> UInt64 {
        let (verdict, lease) = rowsRead.withLock { state in
            let verdict = state.judge.note(rows: rows, invalid: invalid)
            state.leased -= lease
            let left = state.judge.rowsUntilJudgement
            let free = left - min(left, state.leased)
            let new = reactors == 0 ? 0 : max(1, free / UInt64(reactors))
            state.leased += new
            return (verdict, new)
        }
        if let verdict { stop(verdict) }
        return lease
    }

    /// The list is at its end, and all of its rows are counted.
    package func judgeRowsAtEnd() {
        guard let verdict = rowsRead.withLock({ $0.judge.finish() }) else { return }
        stop(verdict)
    }

    private func stop(_ verdict: InvalidRowsGuard.Verdict) {
        switch verdict {
        case .tooMany(let invalid, let rows): stop(.tooManyInvalid(count: invalid, rows: rows))
        case .noValidRow(let rows): stop(.tooManyInvalid(count: rows, rows: rows))
        // A part of a list without rows of its own: an empty list is refused before.
        case .noRow: break
        }
    }

    /// Counts answers for the guards.
    func count(accepted: Int) {
        guard accepted > 0 else { return }
        let cause = state.withLock { state in
            var cause: RefusalGuard.Cause?
            state.updatesRefusedSince = nil
            state.broken.noteAccepted()
            state.expiredOn.removeAll(keepingCapacity: true)
            for _ in 0..<accepted { cause = state.guards.note(.accepted) }
            return cause
        }
        // The answer that makes the window full may be a good one.
        if let cause {
            stop(cause, StopCause.Refusal(status: 200, reason: nil, isCredential: false))
        }
    }

    /// Counts an answer that was not 200; stops the run where a guard says so.
    func count(_ signal: AnswerClass.CampaignSignal, status: UInt16, reason: Reason?) {
        let refusal = StopCause.Refusal(
            status: status, reason: reason, isCredential: signal == .refusesCredential)
        let cause = state.withLock { state in
            if reason != .tooManyProviderTokenUpdates { state.updatesRefusedSince = nil }
            if reason != .expiredProviderToken { state.expiredOn.removeAll(keepingCapacity: true) }
            if signal == .refusesCredential { state.lastRefusal = refusal }
            let cause = state.guards.note(signal)
            refusals.store(state.guards.refusalCount, ordering: .releasing)
            return cause
        }
        if let cause { stop(cause, refusal) }
    }

    private func stop(_ cause: RefusalGuard.Cause, _ refusal: StopCause.Refusal) {
        switch cause {
        case .refusedInARow: stop(.refused(refusal))
        case .onlyBadTokens: stop(.onlyBadTokens(refusal))
        case .tooManyBadTokens: stop(.tooManyBadTokens)
        }
    }

    /// Counts a connection that the server ended by breaking the protocol; stops the run if it breaks
    /// one after the other, as each costs the rows in flight on it.
    func noteBroken(_ trouble: ConnectionTrouble, _ now: Now) {
        let isEnough = state.withLock { $0.broken.noteBroken(now.nanoseconds) }
        if isEnough { stop(.brokenServer(trouble)) }
    }

    /// The answer by which APNs refused the credential last.
    package var lastRefusal: StopCause.Refusal? { state.withLock { $0.lastRefusal } }

    /// The last trouble with a connection, for the message of a run that gives up.
    func note(_ trouble: ConnectionTrouble) {
        state.withLock { $0.lastTrouble = trouble }
    }

    /// The trouble noted last.
    package var lastTrouble: ConnectionTrouble? { state.withLock { $0.lastTrouble } }
}
