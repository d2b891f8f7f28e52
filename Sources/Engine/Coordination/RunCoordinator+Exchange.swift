internal import BroadsideAPNs
internal import BroadsideLists
internal import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// Permits of a reactor: requests in flight before anything was accepted.
struct PermitRequest: Sendable {
    /// Those that it has.
    var held: Int
    /// Those in flight: they are kept.
    var needed: Int
    /// Those that it would make use of, with the ones in flight.
    var wanted: Int
}

extension RunCoordinator {
    /// Takes what a reactor has to tell, and says what holds for it from now on.
    func exchange(
        _ effects: borrowing ReactorEffects, reactor: Int, permits: PermitRequest, _ now: Now
    ) -> RunDirectives {
        let share = connectionTarget?.share(of: reactor)
        return state.withLock { state in
            let expired = state.take(effects, now)
            if let progress = effects.canary, let canary { state.report(progress, to: canary) }
            let granted = state.grant(permits)
            var directives = state.directives(canary, share)
            directives.isTokenStale = state.isTokenStale(now)
            directives.isTokenBlocked = state.tokenBlockedUntil(now) != nil
            directives.permits = granted
            directives.expiredTokens = expired
            return directives
        }
    }

    /// What holds for a reactor that has told nothing yet.
    func directives(for reactor: Int) -> RunDirectives {
        let share = connectionTarget?.share(of: reactor)
        return state.withLock { $0.directives(canary, share) }
    }
}

extension RunCoordinator.State {
    fileprivate func directives(_ canary: CanaryGate?, _ share: Int?) -> RunDirectives {
        RunDirectives(
            isStopping: stop != nil, isStoppingAtOnce: isStoppingAtOnce, isPaused: isPaused,
            milliRate: milliRate, rateParticipants: rateParticipants, anyAccepted: anyAccepted,
            anyReady: anyReady,
            lastResponse: lastResponse, isListOver: isListOver,
            authorization: (token.current?.value, token.version), isTokenStale: token.isStale,
            sessionVersion: sessionVersion, isCanaryPending: canary?.isPending ?? false,
            isCanaryHolding: canary?.isHolding ?? false, connectionShare: share)
    }

    /// True once the token that is made here must not be used any more. What is made elsewhere is used as
    /// long as APNs takes it.
    mutating func isTokenTooOld(_ now: Now) -> Bool {
        guard sign != nil else { return false }
        return token.isTooOld(tokenClock.seconds(now))
    }

    /// True while nothing may be sent with the token that there is.
    mutating func isTokenStale(_ now: Now) -> Bool { token.isStale || isTokenTooOld(now) }

    /// Until when nothing is sent, seconds since 1970: the token is stale, and APNs wants none that is newer
    /// before; nil where that is not so.
    mutating func tokenBlockedUntil(_ now: Now) -> UInt64? {
        guard sign != nil, isTokenStale(now), token.isFrozen(tokenClock.seconds(now)) else {
            return nil
        }
        return token.frozenUntil
    }

    /// Takes effects in their order.
    ///
    /// - Returns: What is to be done about each ExpiredProviderToken.
    fileprivate mutating func take(
        _ effects: borrowing ReactorEffects, _ now: Now
    ) -> [ExpiredTokenAction] {
        var expired: [ExpiredTokenAction] = []
        if effects.isReady { anyReady = true }
        if effects.isListOver { isListOver = true }
        rateParticipants += effects.rateChange
        lastResponse = max(lastResponse, effects.lastResponse)
        for signal in effects.signals {
            switch signal {
            case .accepted(let count): record(accepted: count)
            case .response(let signal, let status, let reason):
                record(signal, status: status, reason: reason)
            case .updatesRefused(let version, let giveUpAfter):
                freezeRenewal(now, usedVersion: version, giveUpAfter: giveUpAfter)
            case .expired(let version, let connection):
                expired.append(
                    handleExpiredToken(now, usedVersion: version, connection: connection))
            case .broken(let trouble):
                if broken.noteBroken(now.nanoseconds) { stop(.brokenServer(trouble)) }
            case .trouble(let trouble): lastTrouble = trouble
            case .stop(let cause): stop(cause)
            case .noResponse(let seconds): stop(.noResponse(seconds: seconds, last: lastTrouble))
            case .unreachable:
                let unknown = ConnectionTrouble(.connect, "no address could be reached")
                stop(.gaveUp(lastTrouble ?? unknown))
            }
        }
        if effects.checksTokenAge, sign != nil { token.requestIfDue(tokenClock.seconds(now)) }
        return expired
    }

    /// Tells the canary what became of its rows, and stops the run where too many were refused.
    fileprivate mutating func report(
        _ progress: ReactorEffects.CanaryProgress, to canary: CanaryGate
    ) {
        let verdict = canary.note(
            done: progress.done, answered: progress.answered, refused: progress.refused,
            lost: progress.lost)
        switch verdict {
        case .pending, .passed: break
        case .refused(let count, let answered):
            stop(.canaryRefused(count: count, answered: answered))
        case .unanswered: stop(.canaryWithoutResponses)
        }
    }

    /// Gives leave for requests before anything was accepted. With the refusals that count so far there
    /// are never more than `--abort-after`: so many requests, and no more, find out that a setting is
    /// wrong.
    ///
    /// - Returns: How many the reactor has now.
    fileprivate mutating func grant(_ request: PermitRequest) -> Int {
        let kept = min(request.held, request.needed)
        permits -= request.held - kept
        guard request.wanted > kept, !anyAccepted else { return kept }
        let free = max(0, guards.abortAfter - permits - guards.refusalCount)
        let granted = min(request.wanted - kept, free)
        permits += granted
        return kept + granted
    }

    // MARK: Guards

    /// Counts accepted rows for the guards.
    private mutating func record(accepted count: Int) {
        anyAccepted = true
        updatesRefusedSince = nil
        broken.noteAccepted()
        expiredOn.removeAll(keepingCapacity: true)
        var cause: RefusalGuard.Cause?
        for _ in 0..<count { cause = guards.note(.accepted) }
        // The answer that makes the window full may be a good one.
        if let cause {
            stop(cause, StopCause.Refusal(status: 200, reason: nil, isCredential: false))
        }
    }

    /// Counts an answer that was not 200; stops the run where a guard says so.
    private mutating func record(
        _ signal: ResponseClass.CampaignSignal, status: UInt16, reason: Reason?
    ) {
        let refusal = StopCause.Refusal(
            status: status, reason: reason, isCredential: signal == .refusesCredential)
        if reason != .tooManyProviderTokenUpdates { updatesRefusedSince = nil }
        if reason != .expiredProviderToken { expiredOn.removeAll(keepingCapacity: true) }
        if signal == .refusesCredential { lastRefusal = refusal }
        switch signal {
        case .refusesRequest, .refusesPayload, .badDeviceToken, .wrongTopicToken:
            lastRejection = refusal
        default: break
        }
        if let cause = guards.note(signal) { stop(cause, refusal) }
    }

    private mutating func stop(_ cause: RefusalGuard.Cause, _ refusal: StopCause.Refusal) {
        switch cause {
        case .refusedInARow: stop(.refused(refusal))
        case .onlyBadTokens: stop(.onlyBadTokens(refusal))
        case .tooManyBadTokens: stop(.tooManyBadTokens)
        }
    }

    // MARK: Provider token

    /// So many different connections in a row have to say of a token that can't have expired that it has:
    /// until then it may be the clock of one server.
    private static var expiredConnectionsLimit: Int { 3 }

    /// What to do about ExpiredProviderToken: the token of this window for the whole process, where an
    /// earlier one is in use. The one of this window may have met a server whose clock is wrong.
    ///
    /// - Parameter connection: Which of the run's connections says it.
    private mutating func handleExpiredToken(
        _ now: Now, usedVersion: UInt32, connection: UInt64
    ) -> ExpiredTokenAction {
        if sign != nil || usedVersion != token.version {
            if token.requestAfterExpiry(tokenClock.seconds(now), usedVersion: usedVersion) {
                return .renewed
            }
            // A clock that has jumped was right to.
            if sign != nil, tokenClock.adoptWallClock(now),
                token.requestAfterExpiry(tokenClock.seconds(now), usedVersion: usedVersion)
            {
                return .renewed
            }
        } else if !token.isYoung(now.wallMilliseconds / 1000) {
            stop(.expiredToken(isSupplied: sign == nil))
            return .fatal
        }
        if !expiredOn.contains(connection) { expiredOn.append(connection) }
        guard expiredOn.count >= Self.expiredConnectionsLimit else { return .otherConnection }
        stop(.expiredToken(isSupplied: sign == nil))
        return .fatal
    }

    /// What to do about TooManyProviderTokenUpdates: the token before it, and no renewal for 20
    /// minutes. Apple takes a new token by then, so a run that hears nothing else for longer ends:
    /// no attempt counts, and rows would go round for ever.
    ///
    /// - Parameter giveUpAfter: Nanoseconds for which that is waited for besides.
    private mutating func freezeRenewal(_ now: Now, usedVersion: UInt32, giveUpAfter: UInt64) {
        token.freeze(tokenClock.seconds(now), usedVersion: usedVersion)
        let since = updatesRefusedSince ?? now.nanoseconds
        updatesRefusedSince = since
        let waited = now.nanoseconds - min(now.nanoseconds, since)
        guard waited > ProviderTokenAge.freezeSeconds * second + giveUpAfter else { return }
        stop(
            .gaveUp(
                ConnectionTrouble(
                    .tokenUpdates,
                    "every response for \(waited / (60 * second)) minutes was "
                        + "TooManyProviderTokenUpdates, as if other senders make tokens of the "
                        + "same key")))
    }
}
