internal import BroadsidePolicy
package import BroadsideSupport
internal import Synchronization

/// The provider token's life, as the thread that watches the reactors leads it: no reactor waits for a
/// signature.
extension RunCoordinator {
    /// Makes a `bearer ...` value for an issue time in seconds since 1970; nil where it can't.
    package typealias Signer = @Sendable (_ issuedAtSeconds: UInt64) -> [UInt8]?

    /// The value of `authorization` now, and its version.
    package func authorization() -> (value: [UInt8]?, version: UInt32) {
        state.withLock { state in (state.token.current?.value, state.token.version) }
    }

    /// Changes with every new provider token.
    package var authorizationVersion: UInt32 { state.withLock { $0.token.version } }

    /// True once another token is wanted: reactors ask for it.
    package var wantsToken: Bool { state.withLock { $0.token.isWanted } }

    /// Until when nothing is sent, seconds since 1970: the provider token is too old, and APNs wants none that
    /// is newer before; nil where that is not so.
    package func tokenBlockedUntil(_ now: Now) -> UInt64? {
        state.withLock { $0.tokenBlockedUntil(now) }
    }

    /// Makes the token that is wanted, where one is. Called by one thread, which may wait.
    ///
    /// - Returns: The date of the token where there is another one now, seconds since 1970.
    package func renewToken(_ now: Now) -> UInt64? {
        let (renewal, sign) = state.withLock { state in
            (state.token.renewal(state.tokenClock.seconds(now)), state.sign)
        }
        guard let issuedAt = renewal else { return nil }
        guard let sign, let value = sign(issuedAt) else {
            stop(.signingFailed)
            return nil
        }
        take(authorization: value, issuedAt: issuedAt, now)
        return issuedAt
    }

    /// Uses a token from elsewhere from now on.
    package func take(authorization: [UInt8], issuedAt: UInt64, _ now: Now) {
        state.withLock { state in
            state.token.take(
                .init(value: authorization, issuedAt: issuedAt), state.tokenClock.seconds(now))
        }
    }

    /// Signs with another key from now on, or with the same one; nil: tokens come from elsewhere.
    ///
    /// - Returns: True where the token in use is what the key makes: it stays.
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
