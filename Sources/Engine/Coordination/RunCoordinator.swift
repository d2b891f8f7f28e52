package import BroadsideLists
package import BroadsidePayloads
package import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// The state that all reactors of a run share: the provider token, the guards that count over all
/// connections, and the stop request. The state is one value behind a lock. Its functions get the
/// time as a parameter, so that a deterministic simulation can use the state in the same way as
/// threads do.
///
/// Reactors access the coordinator only through their `RunChannel`. The supervising thread calls
/// the coordinator directly.
package final class RunCoordinator: Sendable {
    struct State: ~Copyable {
        var stop: StopCause?
        /// Whether a second signal came. If so, the run ends without waiting for responses in
        /// flight.
        var isStoppingAtOnce = false
        /// What the operator may change while the run sends.
        var settings: OperatorSettings
        /// Number of reactors that have rows to send.
        var rateParticipants = 0
        var anyAccepted = false
        /// Whether any connection of the pass has been ready to send.
        var anyReady = false
        /// Whether any connection of an earlier pass has been ready to send.
        var wasReachedEarlier = false
        /// Time of the last response, monotonic nanoseconds; 0 before the first.
        var lastResponse: UInt64 = 0
        var isListOver = false
        /// Number of permits that all reactors together hold. Until a row is accepted, each request
        /// needs a permit.
        var permits = 0
        var sessionVersion: UInt32 = 0

        var token: ProviderTokenLife
        /// The clock that gives the issue times of provider tokens.
        var tokenClock = TokenClock()
        var sign: Signer?
        /// Whether another process can make a new token while the run waits; used if this process
        /// cannot sign.
        var awaitsTokens = false
        /// The guards of the whole run. If rows name their topics, this is only the guard against a
        /// refused credential.
        var guards: RefusalGuard
        /// The guards of the topics that rows name; nil: all rows have the same topic.
        var topics: TopicGuards?
        /// Texts of the unknown reasons in the reactors' effects.
        let unknownReasons: UnknownReasons
        var lastTrouble: ConnectionTrouble?
        /// The last trouble with another peer than that of `lastTrouble`.
        var otherTrouble: ConnectionTrouble?
        var lastRefusal: StopCause.Refusal?
        var lastPushback: Pushback?
        /// The last response that rejected a row, except responses about dead tokens.
        var lastRejection: StopCause.Refusal?
        /// Counts connections that ended because the server violated the protocol.
        var broken = BrokenServerGuard()
        /// Consecutive connections that reported an expired token although the token cannot have
        /// expired.
        var expiredOn: [UInt64] = []
        /// Version of the provider token that these connections reported.
        var expiredVersion: UInt32 = 0
        /// Counts of the canary of an earlier pass; nil if there was none.
        var earlierCanary: (responses: UInt64, refused: UInt64)?
        /// Time since which every response has been TooManyProviderTokenUpdates, monotonic
        /// nanoseconds; nil if the last response was a different one.
        var updatesRefusedSince: UInt64?
    }

    let state: Mutex<State>
    /// Resources that only one reactor can have.
    let resources: SharedResources
    /// The gate that holds all other rows back until the canary's rows have responses; nil if there
    /// is no canary.
    package let canary: CanaryGate?
    /// Number of connections that each reactor keeps open; nil for the number in the settings.
    package let connectionTarget: ConnectionTarget?

    /// - Parameters:
    ///   - authorization: `bearer ...`, or nil with a client certificate.
    ///   - issuedAt: Issue time of the token, seconds since 1970.
    ///   - sign: Makes a `bearer ...` value for an issue time; nil if the token comes from another
    ///     process.
    ///   - keyID: ID of the key of a token from another process; nil for other tokens.
    ///   - milliRate: Requests per 1,000 seconds in total; nil: unlimited.
    ///   - ramp: How the rate rises over time, instead of `milliRate`; nil: the rate does not rise.
    ///   - assumesCanary: Whether the canary of another part of the campaign has passed. If so, the
    ///     run continues even if all of its first responses are BadDeviceToken.
    ///   - topics: The topics that rows name; nil if all rows have the same topic.
    ///   - rowsRead: Counter of rows for `--max-invalid`, including those of earlier runs.
    ///   - canary: Gate for the canary; nil for none.
    ///   - connectionTarget: Number of connections of each reactor; nil for the settings' value.
    ///   - handoffRows: Limit on rows in the handoff between reactors.
    package init(
        authorization: [UInt8]?, issuedAt: UInt64, milliRate: UInt64?,
        ramp: RampClock? = nil, abortAfter: Int,
        maxBadTokensPercent: Double, assumesCanary: Bool = false,
        topics: RowTopics? = nil,
        rowsRead: InvalidRowsGuard = InvalidRowsGuard(maximumPercent: 100),
        canary: CanaryGate? = nil,
        connectionTarget: ConnectionTarget? = nil, handoffRows: Int = RowHandoff.rowsLimit,
        sign: Signer?, keyID: String? = nil
    ) {
        let unknownReasons = UnknownReasons()
        state = Mutex(
            State(
                settings: OperatorSettings(milliRate: ramp?.milliRate ?? milliRate, ramp: ramp),
                token: ProviderTokenLife(
                    authorization.map { .init(value: $0, issuedAt: issuedAt, keyID: keyID) }),
                sign: sign,
                guards: RefusalGuard(
                    abortAfter: abortAfter, maximumBadTokensPercent: maxBadTokensPercent,
                    judgesFirst: !assumesCanary),
                topics: topics.map { topics in
                    TopicGuards(topics) {
                        RefusalGuard(
                            abortAfter: abortAfter,
                            maximumBadTokensPercent: maxBadTokensPercent,
                            judgesFirst: !assumesCanary)
                    }
                }, unknownReasons: unknownReasons))
        resources = SharedResources(
            handoff: RowHandoff(limit: handoffRows), rowsRead: SharedRowsRead(rowsRead),
            unknownReasons: unknownReasons)
        self.canary = canary
        self.connectionTarget = connectionTarget
    }

    // MARK: Operator requests

    /// All settings of the operator, for the next pass of a run.
    package var settings: OperatorSettings {
        get { state.withLock { $0.settings } }
        set { state.withLock { $0.settings = newValue } }
    }

    /// The rate limit of the whole run, in requests per 1,000 seconds; nil: unlimited. May change
    /// during the run; setting it ends a ramp.
    package var milliRate: UInt64? {
        get { state.withLock { $0.settings.milliRate } }
        set {
            state.withLock { state in
                state.settings.milliRate = newValue
                state.settings.ramp = nil
            }
        }
    }

    /// The progress of a rate ramp; nil: the rate does not rise. Setting a ramp starts it from its
    /// beginning.
    package var ramp: RampClock? {
        get { state.withLock { $0.settings.ramp } }
        set {
            state.withLock { state in
                state.settings.ramp = newValue
                if let newValue { state.settings.milliRate = newValue.milliRate }
            }
        }
    }

    /// Whether the operator paused the run: no new requests, but responses in flight are processed.
    package var isPaused: Bool { state.withLock { $0.settings.isPaused } }

    /// Starts or ends a pause.
    package func pause(_ isPaused: Bool) { state.withLock { $0.settings.isPaused = isPaused } }

    /// Replaces each open connection, one after the other, because the configuration of sessions
    /// has changed.
    package func replaceConnections() { state.withLock { $0.sessionVersion += 1 } }

    // MARK: Progress

    /// Whether any notification was accepted.
    package var anyAccepted: Bool { state.withLock { $0.anyAccepted } }

    /// Time of the last response, monotonic nanoseconds; nil before the first.
    package var lastResponse: UInt64? {
        let time = state.withLock { $0.lastResponse }
        return time == 0 ? nil : time
    }

    /// The last response that refused the credential.
    package var lastRefusal: StopCause.Refusal? { state.withLock { $0.lastRefusal } }

    /// The last response that made the run send its row again; nil if there was none.
    package var lastPushback: Pushback? { state.withLock { $0.lastPushback } }

    /// Number of responses to the canary's rows, and number of refusals among them, in this pass or
    /// in an earlier one; nil if there was no canary.
    package var canaryCounts: (responses: UInt64, refused: UInt64)? {
        canary?.counts ?? state.withLock { $0.earlierCanary }
    }

    /// The counts of the guards.
    package var refusalCounts: RefusalCounts {
        state.withLock { $0.topics?.counts ?? $0.guards.counts }
    }

    /// The counts for each topic; nil if all rows have the same topic.
    package var topicReports: [TopicReport]? { state.withLock { $0.topics?.reports } }

    /// The last recorded connection trouble.
    package var lastTrouble: ConnectionTrouble? { state.withLock { $0.lastTrouble } }

    // MARK: Stopping

    /// Whether a stop was requested.
    package var isStopping: Bool { state.withLock { $0.stop != nil } }

    /// Whether the run ends without waiting for responses in flight.
    package var isStoppingAtOnce: Bool { state.withLock { $0.isStoppingAtOnce } }

    /// Ends the run without waiting for responses in flight, after a second signal.
    package func stopAtOnce() { state.withLock { $0.isStoppingAtOnce = true } }

    /// Asks all reactors to stop.
    package func stop(_ cause: StopCause) { state.withLock { $0.stop(cause) } }

    /// Cause of the run's stop; nil while the run continues.
    package var stopCause: StopCause? { state.withLock { $0.stop } }

    /// Makes the final check of invalid rows. Call it when the list has ended and all its rows are
    /// counted.
    package func checkRowsAtEnd() {
        if let cause = resources.rowsRead.checkAtEnd() { stop(cause) }
    }

    /// Makes the final check of one part of a campaign. Call it when the part's list has ended and
    /// all its rows are settled.
    ///
    /// - Parameter rows: Rows that were sent, in all runs.
    package func checkPartAtEnd(_ rows: SentRows) {
        guard rows.areAllRefused else { return }
        state.withLock { $0.stop(.allRefused(rows: rows.refused, $0.lastRejection)) }
    }
}

/// A response after which its row is sent again.
package struct Pushback: Sendable {
    package let response: StopCause.Refusal
    /// Time of the response, monotonic nanoseconds.
    package let nanoseconds: UInt64
    /// Whether a row was accepted after it.
    package internal(set) var isOver = false
}

extension RunCoordinator.State {
    /// Sets the cause of the stop, unless one is set. A failed or missing ledger replaces an
    /// earlier cause, because the verdicts are then incomplete. A newer attempt that has taken over
    /// the ledger replaces any other cause.
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
