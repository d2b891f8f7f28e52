internal import BroadsidePolicy
package import BroadsideSupport
internal import Synchronization

/// Renewal of the provider token by the thread that supervises the reactors, so that no reactor
/// waits for a signature.
extension RunCoordinator {
    /// Makes a `bearer ...` value for an issue time in seconds since 1970; nil on failure.
    package typealias Signer = @Sendable (_ issuedAtSeconds: UInt64) -> [UInt8]?

    /// Current value of `authorization`, and its version.
    package func authorization() -> (value: [UInt8]?, version: UInt32) {
        state.withLock { state in (state.token.current?.value, state.token.version) }
    }

    /// Number that changes with each new provider token.
    package var authorizationVersion: UInt32 { state.withLock { $0.token.version } }

    /// The version of the provider token, and the earliest time at which it is replaced, seconds
    /// since 1970, if it is a previous token that came into use again because APNs refused its
    /// successor.
    package var tokenInUse: (version: UInt32, returnedUntil: UInt64?) {
        state.withLock { ($0.token.version, $0.token.returnedUntil) }
    }

    /// Whether a new token is requested.
    package var wantsToken: Bool { state.withLock { $0.token.isWanted } }

    /// Whether APNs reported the provider token as expired, and no other token is set aside. If so,
    /// nothing is sent until there is another token.
    package var isTokenMissing: Bool {
        state.withLock { $0.token.isStale && $0.token.deferredUntil == nil }
    }

    /// Sets whether another process can make a new token. If so, an expired token does not end the
    /// run.
    package func awaitTokensFromElsewhere(_ canBeMade: Bool) {
        state.withLock { $0.awaitsTokens = canBeMade }
    }

    /// Time until which nothing can be sent, seconds since 1970; nil if sending is possible.
    /// Sending is impossible while the token is expired or too old and APNs refuses a newer one.
    package func tokenBlockedUntil(_ now: Now) -> UInt64? {
        state.withLock { $0.tokenBlockedUntil(now) }
    }

    /// A provider token to make.
    package struct TokenRequest: Sendable {
        /// Issue time of the token, seconds since 1970.
        package let issuedAt: UInt64
        private let sign: Signer?

        fileprivate init(issuedAt: UInt64, sign: Signer?) {
            self.issuedAt = issuedAt
            self.sign = sign
        }

        /// Makes the token, `bearer ...`; nil on failure. May block.
        package func make() -> [UInt8]? { sign?(issuedAt) }
    }

    /// Starts to use a token that was set aside, if its time has come.
    ///
    /// - Returns: The token that has to be made now; nil if none has to.
    package func tokenRequest(_ now: Now) -> TokenRequest? {
        state.withLock { state in
            let seconds = state.tokenClock.seconds(now)
            state.token.takeDeferred(seconds)
            return state.token.renewal(seconds).map {
                TokenRequest(issuedAt: $0, sign: state.sign)
            }
        }
    }

    /// Switches to a token that was made. If it could not be made, the current token stays in use
    /// until another attempt, a minute later. If the current token can't be sent any more, the run
    /// stops.
    ///
    /// - Parameters:
    ///   - value: `bearer ...`; nil if it could not be made.
    ///   - request: The request for it.
    /// - Returns: Whether there is a new token.
    @discardableResult
    package func take(_ value: [UInt8]?, for request: TokenRequest, _ now: Now) -> Bool {
        if let value {
            take(authorization: value, issuedAt: request.issuedAt, now)
            return true
        }
        let isUsable = state.withLock { state in
            state.token.recordFailure(state.tokenClock.seconds(now))
        }
        if !isUsable { stop(.signingFailed) }
        return false
    }

    /// Makes the requested token, if any, or starts to use a token that was set aside. Called by one
    /// thread, which may block.
    ///
    /// - Returns: Issue time of the token that was made, seconds since 1970; nil if none was made.
    package func renewToken(_ now: Now) -> UInt64? {
        guard let request = tokenRequest(now) else { return nil }
        return take(request.make(), for: request, now) ? request.issuedAt : nil
    }

    /// Switches at once to a token that this process made.
    package func take(authorization: [UInt8], issuedAt: UInt64, _ now: Now) {
        state.withLock { state in
            state.token.take(
                .init(value: authorization, issuedAt: issuedAt), state.tokenClock.seconds(now))
        }
    }

    /// Switches to a token that was made by another process. After TooManyProviderTokenUpdates, the
    /// switch waits until APNs accepts another token.
    ///
    /// - Returns: Time of the switch, seconds since 1970; nil: now.
    package func offer(
        authorization: [UInt8], issuedAt: UInt64, keyID: String, _ now: Now
    ) -> UInt64? {
        state.withLock { state in
            state.token.offer(
                .init(value: authorization, issuedAt: issuedAt, keyID: keyID),
                state.tokenClock.seconds(now))
        }
    }

    /// Replaces the function that signs provider tokens. Its key may be the same or a different
    /// one. Pass nil if another process provides the tokens.
    ///
    /// - Returns: Whether the new signer produces the current token, which is then kept.
    @discardableResult
    package func replaceSigner(_ sign: Signer?) -> Bool {
        let current = state.withLock { state in
            state.sign = sign
            return state.token.current
        }
        guard let sign, let current else { return false }
        return sign(current.issuedAt) == current.value
    }
}
