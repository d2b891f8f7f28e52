import APNs
import Campaign
package import Support
internal import Synchronization

extension SharedRun {
    /// Makes a `bearer ...` value for an issue time in seconds since 1970; nil where it can't.
    package typealias Signer = @Sendable (_ issuedAtSeconds: UInt64) -> [UInt8]?

    // MARK: Provider token

    /// The value of `authorization` now, and its version.
    package func authorization() -> (value: [UInt8]?, version: UInt32) {
        state.withLock { state in (state.token.current?.value, state.token.version) }
    }

    /// Asks for another provider token where that is due by age. Reactors ask; whoever watches over
    /// them signs, keeps and hands it over by `renewToken`, so that no reactor waits for a disk.
    func renewIfDue(_ now: Now) {
        state.withLock { state in
            guard state.sign != nil else { return }
            state.token.wantIfDue(now.wallMilliseconds / 1000)
        }
    }

    /// What becomes of requests after ExpiredProviderToken.
    enum ExpiredTokenAction {
        /// They go on with another token.
        case renewed
        /// They are tried over another connection: the token is too young to have expired.
        case elsewhere
        /// One connection after the other says so, or there can be no other token.
        case hopeless
    }

    /// So many different connections in a row have to say of a young token that it has expired: until
    /// then it may be the clock of one server.
    static let expiredConnectionsLimit = 3

    /// What to do about ExpiredProviderToken: one renewal for the whole process, none after it for
    /// 20 minutes. A token that is younger may be met by a server whose clock is wrong.
    ///
    /// - Parameter connection: Which of the run's connections says it.
    func followExpired(
        _ now: Now, usedVersion: UInt32, connection: UInt64
    ) -> ExpiredTokenAction {
        state.withLock { state in
            let seconds = now.wallMilliseconds / 1000
            if state.sign != nil || usedVersion != state.token.version {
                let isRenewed = state.token.wantExpired(seconds, usedVersion: usedVersion)
                tokenStale.store(state.token.isStale, ordering: .relaxed)
                if isRenewed { return .renewed }
            } else if !state.token.isYoung(seconds) {
                return .hopeless
            }
            if !state.expiredOn.contains(connection) { state.expiredOn.append(connection) }
            return state.expiredOn.count < Self.expiredConnectionsLimit ? .elsewhere : .hopeless
        }
    }

    /// What to do about TooManyProviderTokenUpdates: the token before it, and no renewal for 20
    /// minutes. Apple takes a new token by then, so a run that hears nothing else for longer ends:
    /// no attempt counts, and rows would go round for ever.
    ///
    /// - Parameter giveUpAfter: Nanoseconds for which that is waited for besides.
    func freezeRenewal(_ now: Now, usedVersion: UInt32, giveUpAfter: UInt64) {
        let since = state.withLock { state in
            state.token.freeze(now.wallMilliseconds / 1000, usedVersion: usedVersion)
            publish(state.token)
            let since = state.updatesRefusedSince ?? now.nanoseconds
            state.updatesRefusedSince = since
            return since
        }
        let waited = now.nanoseconds - min(now.nanoseconds, since)
        guard waited > ProviderTokenAge.freezeSeconds * second + giveUpAfter else { return }
        stop(
            .gaveUp(
                ConnectionTrouble(
                    .tokenUpdates,
                    "every answer for \(waited / (60 * second)) minutes was "
                        + "TooManyProviderTokenUpdates, as where other senders make tokens of the "
                        + "same key")))
    }

    /// True once another token is wanted.
    package var wantsToken: Bool { state.withLock { $0.token.isWanted } }

    /// Makes the token that is wanted, where one is. Called by one thread, which may wait.
    ///
    /// - Parameter keep: Puts a new token where a later process finds it, before it is used: a run
    ///   that is killed and resumed must not make another one.
    /// - Returns: True where there is another token now.
    package func renewToken(_ now: Now, keep: ([UInt8], _ issuedAt: UInt64) -> Void) -> Bool {
        let seconds = now.wallMilliseconds / 1000
        let (renewal, sign) = state.withLock { ($0.token.renewal(seconds), $0.sign) }
        switch renewal {
        case .none: return false
        case .use(let token):
            keep(token.value, token.issuedAt)
            take(authorization: token.value, issuedAt: token.issuedAt)
        case .make:
            guard let sign, let value = sign(seconds) else {
                stop(.signingFailed)
                return false
            }
            keep(value, seconds)
            take(authorization: value, issuedAt: seconds)
        }
        return true
    }

    /// Uses a token from elsewhere from now on.
    package func take(authorization: [UInt8], issuedAt: UInt64) {
        state.withLock { state in
            state.token.take(.init(value: authorization, issuedAt: issuedAt))
            publish(state.token)
        }
    }

    /// Signs with another key from now on.
    package func replaceSigner(_ sign: Signer?) {
        state.withLock { $0.sign = sign }
    }

    private func publish(_ token: ProviderTokenLife) {
        tokenVersion.store(token.version, ordering: .relaxed)
        tokenStale.store(token.isStale, ordering: .relaxed)
    }

    /// Why there is no renewal where APNs calls the token expired.
    var expiredCause: StopCause {
        .expiredToken(isSupplied: state.withLock { $0.sign == nil })
    }

    // MARK: Connections

    /// Has every connection that stands replaced, one after the other: what sessions are made from
    /// has changed.
    package func replaceConnections() {
        sessionVersionCounter.add(1, ordering: .releasing)
    }

    /// Grows whenever sessions are made from something else.
    var sessionVersion: UInt32 { sessionVersionCounter.load(ordering: .acquiring) }
}
