package import BroadsideLists
package import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// What the reactors of a run hold in common: the provider token, the guards that count over all
/// connections, the word to stop. It is one value behind a lock, and the time is a parameter, so that
/// several reactors of a simulation share it as threads do.
///
/// Reactors know it by their `RunChannel` alone; whoever watches over them asks and tells it directly.
package final class RunCoordinator: Sendable {
    struct State: ~Copyable {
        var stop: StopCause?
        /// A second signal: responses in flight are awaited no more.
        var isStoppingAtOnce = false
        var isPaused = false
        /// Requests in 1,000 seconds over all reactors; nil: unlimited.
        var milliRate: UInt64?
        /// Reactors that have rows to send.
        var rateParticipants = 0
        var anyAccepted = false
        var anyReady = false
        /// When the last response came, monotonic nanoseconds; 0 before the first.
        var lastResponse: UInt64 = 0
        var isListOver = false
        /// Requests that reactors have leave for before anything was accepted.
        var permits = 0
        var sessionVersion: UInt32 = 0

        var token: ProviderTokenLife
        /// By which the token is dated.
        var tokenClock = TokenClock()
        var sign: Signer?
        var guards: RefusalGuard
        var lastTrouble: ConnectionTrouble?
        var lastRefusal: StopCause.Refusal?
        /// The response by which a row was rejected last, but for devices that are gone.
        var lastRejection: StopCause.Refusal?
        /// Connections that servers ended by breaking the protocol.
        var broken = BrokenServerGuard()
        /// The connections in a row that called a provider token expired which can't be.
        var expiredOn: [UInt64] = []
        /// Since when every answer is TooManyProviderTokenUpdates, monotonic nanoseconds.
        var updatesRefusedSince: UInt64?
    }

    let state: Mutex<State>
    /// What reactors take from each other.
    let resources: SharedResources
    /// Holds the list back until its first rows are answered; nil where there is none.
    package let canary: CanaryGate?
    /// How many connections each reactor keeps up; nil: as many as the settings say.
    package let connectionTarget: ConnectionTarget?

    /// - Parameters:
    ///   - authorization: `bearer ...`, or nil with a client certificate.
    ///   - issuedAt: Seconds since 1970 at which the token was made.
    ///   - sign: Makes a new `bearer ...` value for an issue time; nil where the token comes from
    ///     elsewhere.
    ///   - milliRate: Requests in 1,000 seconds in all; nil: unlimited.
    ///   - assumesCanary: The canary of another part of the campaign has passed: the first responses are
    ///     not judged by themselves.
    ///   - rowsRead: Counts rows for `--max-invalid`, those of earlier runs among them.
    ///   - canary: nil: none.
    ///   - connectionTarget: nil: each reactor keeps up what its settings say.
    ///   - handoffRows: The most rows that lie between reactors.
    package init(
        authorization: [UInt8]?, issuedAt: UInt64, milliRate: UInt64?, abortAfter: Int,
        maxBadTokensPercent: Double, assumesCanary: Bool = false,
        rowsRead: InvalidRowsGuard = InvalidRowsGuard(maximumPercent: 100),
        canary: CanaryGate? = nil,
        connectionTarget: ConnectionTarget? = nil, handoffRows: Int = RowHandoff.rowsLimit,
        sign: Signer?
    ) {
        state = Mutex(
            State(
                milliRate: milliRate,
                token: ProviderTokenLife(
                    authorization.map { .init(value: $0, issuedAt: issuedAt) }),
                sign: sign,
                guards: RefusalGuard(
                    abortAfter: abortAfter, maximumBadTokensPercent: maxBadTokensPercent,
                    judgesFirst: !assumesCanary)))
        resources = SharedResources(
            handoff: RowHandoff(limit: handoffRows), rowsRead: SharedRowsRead(rowsRead))
        self.canary = canary
        self.connectionTarget = connectionTarget
    }

    // MARK: What the operator wants

    /// Requests in 1,000 seconds in all; nil: unlimited. May change while running.
    package var milliRate: UInt64? {
        get { state.withLock { $0.milliRate } }
        set { state.withLock { $0.milliRate = newValue } }
    }

    /// True while the operator wants no new requests; those in flight are answered.
    package var isPaused: Bool { state.withLock { $0.isPaused } }

    /// Begins a pause, or ends it.
    package func pause(_ isPaused: Bool) { state.withLock { $0.isPaused = isPaused } }

    /// Has every connection that stands replaced, one after the other: what sessions are made from
    /// has changed.
    package func replaceConnections() { state.withLock { $0.sessionVersion += 1 } }

    // MARK: What has happened so far

    /// True once a notification was accepted: the campaign works.
    package var anyAccepted: Bool { state.withLock { $0.anyAccepted } }

    /// When the last answer came, monotonic nanoseconds; nil before the first.
    package var lastResponse: UInt64? {
        let time = state.withLock { $0.lastResponse }
        return time == 0 ? nil : time
    }

    /// The answer by which APNs refused the credential last.
    package var lastRefusal: StopCause.Refusal? { state.withLock { $0.lastRefusal } }

    /// What the guards have counted.
    package var refusalCounts: RefusalCounts { state.withLock { $0.guards.counts } }

    /// The trouble with a connection noted last.
    package var lastTrouble: ConnectionTrouble? { state.withLock { $0.lastTrouble } }

    // MARK: Stopping

    /// True once the word to stop was given.
    package var isStopping: Bool { state.withLock { $0.stop != nil } }

    /// True once nothing is awaited any more.
    package var isStoppingAtOnce: Bool { state.withLock { $0.isStoppingAtOnce } }

    /// A second signal: answers in flight are awaited no more.
    package func stopAtOnce() { state.withLock { $0.isStoppingAtOnce = true } }

    /// Asks all reactors to stop.
    package func stop(_ cause: StopCause) { state.withLock { $0.stop(cause) } }

    /// Why the run stops; nil while it doesn't.
    package var stopCause: StopCause? { state.withLock { $0.stop } }

    /// The list is at its end, and all of its rows are counted.
    package func checkRowsAtEnd() {
        if let cause = resources.rowsRead.checkAtEnd() { stop(cause) }
    }

    /// The list of a part is at its end, and all of its rows are settled.
    ///
    /// - Parameter rows: Those that were sent, in all runs.
    package func checkPartAtEnd(_ rows: SentRows) {
        guard rows.areAllRefused else { return }
        state.withLock { $0.stop(.allRefused(rows: rows.refused, $0.lastRejection)) }
    }
}

extension RunCoordinator.State {
    /// The first cause stays, but a disk that fails while the run drains is worse than whatever came
    /// before: not all of what happened is in the ledger. Worse still is that the ledger is another's.
    mutating func stop(_ cause: StopCause) {
        switch (stop, cause) {
        case (nil, _): stop = cause
        case (.superseded, _): break
        case (_, .superseded): stop = cause
        case (.ledgerFailed, _), (.ledgerGone, _): break
        case (_, .ledgerFailed), (_, .ledgerGone): stop = cause
        default: break
        }
    }
}
