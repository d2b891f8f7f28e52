internal import BroadsideAPNs
internal import BroadsideLists
internal import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// A reactor's request for permits. Until a row is accepted, each request in flight needs one.
struct PermitRequest: Sendable {
    /// Number of permits that the reactor has.
    var held: Int
    /// Number of permits for requests in flight; the reactor keeps these.
    var needed: Int
    /// Number of permits that the reactor could use, including those for requests in flight.
    var wanted: Int
}

extension RunCoordinator {
    /// Applies a reactor's effects and returns its directives.
    func exchange(
        _ effects: borrowing ReactorEffects, reactor: Int, permits: PermitRequest, _ now: Now
    ) -> RunDirectives {
        let share = connectionTarget?.share(of: reactor)
        return state.withLock { state in
            let expired = state.take(effects, now)
            if let progress = effects.canary, let canary { state.report(progress, to: canary) }
            let granted = state.grant(permits)
            if state.settings.ramp != nil {
                state.advanceRamp(lastSent: effects.lastSent, now.nanoseconds)
            }
            var directives = state.directives(canary, share)
            directives.rateRisesAt =
                state.settings.ramp?.nextRise(after: now.nanoseconds) ?? .max
            directives.isTokenStale = state.isTokenStale(now)
            directives.isTokenBlocked = state.tokenBlockedUntil(now) != nil
            directives.permits = granted
            if let topics = state.topics { directives.stoppedTopics = topics.stopped }
            directives.expiredTokens = expired
            return directives
        }
    }

    /// Directives of a reactor before its first exchange.
    func directives(for reactor: Int) -> RunDirectives {
        let share = connectionTarget?.share(of: reactor)
        return state.withLock { $0.directives(canary, share) }
    }
}

extension RunCoordinator.State {
    fileprivate func directives(_ canary: CanaryGate?, _ share: Int?) -> RunDirectives {
        RunDirectives(
            isStopping: stop != nil, isStoppingAtOnce: isStoppingAtOnce,
            isPaused: settings.isPaused, milliRate: settings.milliRate,
            isRampCounting: settings.ramp.map { !$0.isOver } ?? false,
            rateParticipants: rateParticipants, anyAccepted: anyAccepted,
            anyReady: anyReady, wasReached: wasReached,
            lastResponse: lastResponse, isListOver: isListOver,
            authorization: (token.current?.value, token.version), keyVersion: token.keyVersion,
            isTokenStale: token.isStale,
            sessionVersion: sessionVersion, isCanaryPending: canary?.isPending ?? false,
            isCanaryHolding: canary?.isHolding ?? false, connectionShare: share)
    }

    /// Whether any connection of the run has been ready to send.
    var wasReached: Bool { anyReady || wasReachedEarlier }

    /// Advances the rate ramp by the time during which requests were sent.
    fileprivate mutating func advanceRamp(lastSent: UInt64, _ now: UInt64) {
        guard settings.ramp?.isOver == false else { return }
        if lastSent > 0 { settings.ramp?.recordSent(at: lastSent) }
        if settings.isPaused {
            settings.ramp?.hold(at: now)
        } else {
            settings.ramp?.advance(to: now)
        }
        settings.milliRate = settings.ramp?.milliRate
    }

    /// Whether the token is too old to be used. Only applies to tokens that this process makes: a
    /// token from another process is used as long as APNs accepts it.
    mutating func isTokenTooOld(_ now: Now) -> Bool {
        guard sign != nil else { return false }
        return token.isTooOld(tokenClock.seconds(now))
    }

    /// Whether nothing may be sent with the current token.
    mutating func isTokenStale(_ now: Now) -> Bool { token.isStale || isTokenTooOld(now) }

    /// Time until which the run can't send, seconds since 1970: the current token is stale, and
    /// APNs refuses a newer token until that time. nil if sending is possible.
    mutating func tokenBlockedUntil(_ now: Now) -> UInt64? {
        guard isTokenStale(now) else { return nil }
        if let until = token.deferredUntil { return until }
        guard sign != nil, token.isFrozen(tokenClock.seconds(now)) else { return nil }
        return token.frozenUntil
    }

    /// Applies effects in order.
    ///
    /// - Returns: The action for each ExpiredProviderToken.
    fileprivate mutating func take(
        _ effects: borrowing ReactorEffects, _ now: Now
    ) -> [ExpiredTokenAction] {
        var expired: [ExpiredTokenAction] = []
        if effects.isReady { anyReady = true }
        if effects.isListOver { isListOver = true }
        rateParticipants += effects.rateChange
        assert(rateParticipants >= 0, "a reactor gave up the rate twice")
        lastResponse = max(lastResponse, effects.lastResponse)
        for signal in effects.signals {
            switch signal {
            case .accepted(let count): record(accepted: count)
            case .response(let signal, let status, let reason, let unknown):
                record(signal, refusal(signal, status, reason, unknown), now)
            case .topicAccepted(let count, let topic): topics?.note(accepted: count, of: topic)
            case .topicResponse(let signal, let status, let reason, let unknown, let topic):
                record(signal, refusal(signal, status, reason, unknown), topic: topic, now)
            case .lateRefusal(let signal, let status, let reason, let isFirst):
                recordLate(signal, status: status, reason: reason, isFirst: isFirst)
            case .updatesRefused(let version, let giveUpAfter):
                freezeRenewal(now, usedVersion: version, giveUpAfter: giveUpAfter)
            case .expired(let version, let connection):
                expired.append(
                    handleExpiredToken(now, usedVersion: version, connection: connection))
            case .broken(let trouble):
                if broken.noteBroken(now.nanoseconds) { stop(.brokenServer(trouble)) }
            case .trouble(let trouble):
                if lastTrouble?.peer != trouble.peer { otherTrouble = lastTrouble }
                lastTrouble = trouble
            case .stop(let cause): stop(cause)
            case .noResponse(let seconds):
                // Nothing is sent with an expired token, so connections are not the cause.
                stop(
                    .noResponse(
                        seconds: seconds, last: token.isStale ? Self.expiredToken : troubles))
            case .unreachable:
                let unknown = ConnectionTrouble(.connect, "no address could be reached")
                stop(.gaveUp(troubles ?? unknown))
            }
        }
        if effects.checksTokenAge, sign != nil { token.requestIfDue(tokenClock.seconds(now)) }
        return expired
    }

    /// Trouble of a run that waits for another provider token.
    private static var expiredToken: ConnectionTrouble {
        ConnectionTrouble(
            .refused, "APNs reports the provider token as expired, and there is no other one yet")
    }

    /// The last trouble. If no address was ever reached, it also names a different problem of
    /// another address.
    private var troubles: ConnectionTrouble? {
        guard var trouble = lastTrouble else { return nil }
        if !wasReached, let otherTrouble, otherTrouble.problem != trouble.problem {
            trouble.problem += "; \(otherTrouble.message)"
        }
        return trouble
    }

    /// Passes the results of the canary's rows to the canary's gate, and stops the run if too many
    /// rows were refused.
    fileprivate mutating func report(
        _ progress: ReactorEffects.CanaryProgress, to canary: CanaryGate
    ) {
        let verdict = canary.note(
            done: progress.done, answered: progress.answered, refused: progress.refused,
            lost: progress.lost, postponed: progress.postponed)
        switch verdict {
        case .pending, .passed: break
        case .refused(let count, let answered):
            stop(.canaryRefused(count: count, answered: answered))
        case .unanswered: stop(.canaryWithoutResponses)
        }
    }

    /// Grants permits for requests before the first acceptance. Permits and refusals together never
    /// exceed `--abort-after`, so that a wrong setting costs at most that many requests.
    ///
    /// - Returns: Number of permits that the reactor has now.
    fileprivate mutating func grant(_ request: PermitRequest) -> Int {
        let kept = min(request.held, request.needed)
        permits -= request.held - kept
        assert(kept >= 0 && permits >= kept, "\(permits) permits are out, and \(kept) are held")
        guard request.wanted > kept, !anyAccepted else { return kept }
        let free = max(0, guards.abortAfter - permits - guards.refusalCount)
        let granted = min(request.wanted - kept, free)
        permits += granted
        assert(kept + granted <= request.wanted)
        assert(granted == 0 || permits + guards.refusalCount <= guards.abortAfter)
        return kept + granted
    }

    // MARK: Guards

    /// Counts accepted rows for the guards.
    private mutating func record(accepted count: Int) {
        anyAccepted = true
        updatesRefusedSince = nil
        lastPushback?.isOver = true
        broken.noteAccepted()
        expiredOn.removeAll(keepingCapacity: true)
        var cause: RefusalGuard.Cause?
        for _ in 0..<count { cause = guards.note(.accepted) }
        // An acceptance may complete the guards' window.
        if let cause {
            stop(cause, StopCause.Refusal(status: 200, reason: nil, isCredential: false))
        }
    }

    private func refusal(
        _ signal: ResponseClass.CampaignSignal, _ status: UInt16, _ reason: Reason?,
        _ unknown: UInt8
    ) -> StopCause.Refusal {
        var refusal = StopCause.Refusal(
            status: status, reason: reason, isCredential: signal == .refusesCredential)
        refusal.unknownReason = unknownReasons.text(unknown)
        return refusal
    }

    /// Counts a response other than 200; stops the run if a guard requires it.
    ///
    /// - Parameter topic: The row's topic; nil if all rows have the same topic. The guard of a
    ///   topic stops only that topic, but a refused credential stops the run.
    private mutating func record(
        _ signal: ResponseClass.CampaignSignal, _ refusal: StopCause.Refusal,
        topic: UInt8? = nil, _ now: Now
    ) {
        let reason = refusal.reason
        if reason != .tooManyProviderTokenUpdates { updatesRefusedSince = nil }
        if reason != .expiredProviderToken { expiredOn.removeAll(keepingCapacity: true) }
        if signal == .refusesCredential { lastRefusal = refusal }
        switch signal {
        case .refusesRequest, .refusesPayload, .badDeviceToken, .wrongTopicToken:
            lastRejection = refusal
        case .none, .renewProviderToken, .freezeRenewal, .pauseAddress:
            lastPushback = Pushback(response: refusal, nanoseconds: now.nanoseconds)
        case .accepted, .deadToken, .refusesCredential: break
        }
        if let topic {
            topics?.note(signal, refusal, of: topic)
            guard signal == .refusesCredential, reason != .topicDisallowed else { return }
        }
        if let cause = guards.note(signal) { stop(cause, refusal) }
    }

    /// Counts an error packet of a legacy gateway about a row that was already counted as accepted.
    @inline(never)
    private mutating func recordLate(
        _ signal: ResponseClass.CampaignSignal, status: UInt16, reason: Reason?, isFirst: Bool
    ) {
        assert(topics == nil, "a legacy gateway has no topic per row")
        let refusal = StopCause.Refusal(
            status: status, reason: reason, isCredential: signal == .refusesCredential)
        if refusal.isCredential { lastRefusal = refusal }
        if let cause = guards.noteLate(signal, isFirst: isFirst) { stop(cause, refusal) }
    }

    private mutating func stop(_ cause: RefusalGuard.Cause, _ refusal: StopCause.Refusal) {
        switch cause {
        case .refusedInARow: stop(.refused(refusal))
        case .onlyBadTokens: stop(.onlyBadTokens(refusal))
        case .tooManyBadTokens: stop(.tooManyBadTokens)
        }
    }

    // MARK: Provider token

    /// Number of consecutive connections after which the run stops if each of them reported an
    /// expired token, although the token cannot have expired. Fewer such reports may come from one
    /// server with a wrong clock.
    private static var expiredConnectionsLimit: Int { 3 }

    /// Returns the action after ExpiredProviderToken. If the token is of an earlier time window,
    /// the whole process changes to the token of the current window. If it is already of the
    /// current window, the server's clock may be wrong. The same applies to a token from another
    /// process that is younger than an hour.
    ///
    /// - Parameter connection: Number of the connection in the run.
    private mutating func handleExpiredToken(
        _ now: Now, usedVersion: UInt32, connection: UInt64
    ) -> ExpiredTokenAction {
        if sign != nil || usedVersion != token.version {
            if token.requestAfterExpiry(tokenClock.seconds(now), usedVersion: usedVersion) {
                return .renewed
            }
            // The wall clock has jumped, and APNs confirms its new time.
            if sign != nil, tokenClock.adoptWallClock(now),
                token.requestAfterExpiry(tokenClock.seconds(now), usedVersion: usedVersion)
            {
                return .renewed
            }
        } else if token.isStale {
            return .renewed
        } else if token.isExpired(now.wallMilliseconds / 1000) {
            return awaitOtherToken()
        }
        if usedVersion != expiredVersion { expiredOn.removeAll(keepingCapacity: true) }
        expiredVersion = usedVersion
        if !expiredOn.contains(connection) { expiredOn.append(connection) }
        guard expiredOn.count >= Self.expiredConnectionsLimit else { return .otherConnection }
        if sign == nil, !token.isYoung(now.wallMilliseconds / 1000) { return awaitOtherToken() }
        stop(.expiredToken(isSupplied: sign == nil))
        return .fatal
    }

    /// Handles an expired token from another process: the run waits for another token if there is
    /// or may be one, and otherwise stops.
    private mutating func awaitOtherToken() -> ExpiredTokenAction {
        if awaitsTokens || token.deferredUntil != nil {
            token.callStale()
            return .renewed
        }
        stop(.expiredToken(isSupplied: true))
        return .fatal
    }

    /// Handles TooManyProviderTokenUpdates: returns to the previous token and does not renew it for
    /// 20 minutes. After that time, Apple accepts a new token. If the run still gets only this
    /// response, the run ends. Otherwise, the run would retry its rows forever: a request with this
    /// response does not count as an attempt.
    ///
    /// - Parameter giveUpAfter: Nanoseconds to wait in addition to the 20 minutes.
    private mutating func freezeRenewal(_ now: Now, usedVersion: UInt32, giveUpAfter: UInt64) {
        token.freeze(tokenClock.seconds(now), usedVersion: usedVersion, isSupplied: sign == nil)
        let since = updatesRefusedSince ?? now.nanoseconds
        updatesRefusedSince = since
        let waited = now.nanoseconds - min(now.nanoseconds, since)
        guard waited > ProviderTokenAge.freezeSeconds * second + giveUpAfter else { return }
        stop(
            .gaveUp(
                ConnectionTrouble(
                    .tokenUpdates,
                    "every response for \(waited / (60 * second)) minutes was "
                        + "TooManyProviderTokenUpdates: check whether other senders make "
                        + "provider tokens with the same key")))
    }
}
