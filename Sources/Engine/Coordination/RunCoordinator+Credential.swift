import Campaign
package import Support
internal import Synchronization

/// The provider token's life, as whoever watches over the reactors leads it: no reactor waits for a disk
/// or for a signature.
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
        state.withLock { $0.token.take(.init(value: authorization, issuedAt: issuedAt)) }
    }

    /// Signs with another key from now on.
    package func replaceSigner(_ sign: Signer?) {
        state.withLock { $0.sign = sign }
    }
}
