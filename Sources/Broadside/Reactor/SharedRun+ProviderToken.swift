import APNs
internal import Synchronization

/// The provider token that all requests carry, and what may be done about it.
struct ProviderTokenState: Sendable {
    /// `bearer ...`; nil with a client certificate.
    var value: [UInt8]?
    /// Seconds since 1970 at which it was made.
    var issuedAt: UInt64 = 0
    /// The one before, where APNs may still take it.
    var previous: (value: [UInt8], issuedAt: UInt64)?
    /// When this process last renewed it, seconds since 1970; nil: never.
    var renewedAt: UInt64?
    /// No renewal before: APNs has said that there were too many.
    var frozenUntil: UInt64 = 0

    /// Puts another in its place.
    mutating func replace(with new: [UInt8], issuedAt: UInt64) {
        previous = value.map { ($0, self.issuedAt) }
        value = new
        self.issuedAt = issuedAt
    }
}

extension SharedRun {
    /// The value of `authorization` now, and its version.
    func authorization() -> (value: [UInt8]?, version: UInt32) {
        withToken { ($0.value, authorizationVersion) }
    }

    /// Renews the provider token where it is due by age (design: at 45 minutes).
    func renewIfDue(_ now: Now) {
        let seconds = now.wallMilliseconds / 1000
        withToken { token in
            guard token.value != nil,
                seconds >= token.issuedAt + ProviderTokenAge.renewalSeconds
            else { return }
            _ = renew(&token, seconds: seconds)
        }
    }

    /// What to do about ExpiredProviderToken: one renewal for the whole process, none after it for
    /// 20 minutes.
    ///
    /// - Parameter usedVersion: The version of the token that APNs calls expired.
    /// - Returns: False where the token was renewed already, or can't be.
    func renewExpired(_ now: Now, usedVersion: UInt32) -> Bool {
        let seconds = now.wallMilliseconds / 1000
        return withToken { token in
            guard usedVersion == authorizationVersion else { return true }
            if let last = token.renewedAt, seconds < last + ProviderTokenAge.renewableSeconds {
                return false
            }
            return renew(&token, seconds: seconds)
        }
    }

    /// What to do about TooManyProviderTokenUpdates: the token before this one, and no renewal for
    /// 20 minutes.
    ///
    /// - Returns: False where there is no token before this one.
    func returnToPreviousToken(_ now: Now, usedVersion: UInt32) -> Bool {
        withToken { token in
            guard usedVersion == authorizationVersion else { return true }
            token.frozenUntil = now.wallMilliseconds / 1000 + ProviderTokenAge.freezeSeconds
            guard let previous = token.previous else { return false }
            token.value = previous.value
            token.issuedAt = previous.issuedAt
            token.previous = nil
            tokenVersion.add(1, ordering: .relaxed)
            return true
        }
    }

    /// Uses a token from elsewhere from now on.
    package func take(authorization: [UInt8], issuedAt: UInt64) {
        withToken { token in
            token.replace(with: authorization, issuedAt: issuedAt)
            tokenVersion.add(1, ordering: .relaxed)
        }
    }

    /// Why there is no renewal where APNs calls the token expired.
    func expiredMessage(_ now: Now) -> String {
        if sign == nil {
            return "the provider token of --auth-token-file has expired: put a new one there"
        }
        let isFrozen = withToken { now.wallMilliseconds / 1000 < $0.frozenUntil }
        return isFrozen
            ? "the provider token has expired, and APNs takes no new one for 20 minutes: --resume "
                + "then"
            : "APNs calls a fresh provider token expired: check the clock of this machine"
    }

    private func renew(_ token: inout ProviderTokenState, seconds: UInt64) -> Bool {
        guard let sign, seconds >= token.frozenUntil, let value = sign(seconds) else {
            return false
        }
        token.replace(with: value, issuedAt: seconds)
        token.renewedAt = seconds
        tokenVersion.add(1, ordering: .relaxed)
        return true
    }
}
