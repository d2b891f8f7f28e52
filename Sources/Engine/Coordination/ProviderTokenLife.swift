import APNs
import TLS

/// The provider token of a process through its ages: when another one is wanted, and when none may
/// be made. A value: the time comes in as a parameter, and somebody else signs and keeps.
///
///     young -- 45 minutes --> wanted ------------------------------.
///       |                                                          v
///       '-- ExpiredProviderToken, 20 minutes old or more --> stale: nothing is sent --> taken
///
///     TooManyProviderTokenUpdates: back to the token before, and none is made for 20 minutes
package struct ProviderTokenLife {
    /// A token, and when it was made.
    package struct Token {
        /// `bearer ...`.
        package var value: [UInt8]
        /// Seconds since 1970.
        package var issuedAt: UInt64

        package init(value: [UInt8], issuedAt: UInt64) {
            self.value = value
            self.issuedAt = issuedAt
        }
    }

    /// In use; nil with a client certificate.
    private(set) var current: Token?
    /// The one in use before, or the one that came too early.
    private var other: Token?
    /// Grows with every change of `current`.
    private(set) var version: UInt32 = 1
    private var frozenUntil: UInt64 = 0
    /// Another token is wanted.
    private(set) var isWanted = false
    /// APNs calls the token expired: until there is another, nothing is sent.
    private(set) var isStale = false

    init(_ token: Token?) {
        current = token
    }

    /// Wants another token once this one is old enough.
    mutating func wantIfDue(_ now: UInt64) {
        guard let current, now >= current.issuedAt + ProviderTokenAge.renewalSeconds else { return }
        isWanted = true
    }

    /// True while the token is too young to have expired.
    func isYoung(_ now: UInt64) -> Bool {
        current.map { now < $0.issuedAt + ProviderTokenAge.renewableSeconds } ?? true
    }

    /// APNs says ExpiredProviderToken to a request that carried the token of a version.
    ///
    /// - Returns: False where the token is too young for that: a clock is wrong.
    mutating func wantExpired(_ now: UInt64, usedVersion: UInt32) -> Bool {
        guard usedVersion == version, !isStale else { return true }
        guard current != nil, !isYoung(now) else { return false }
        isWanted = true
        isStale = true
        return true
    }

    /// APNs says TooManyProviderTokenUpdates to a request that carried the token of a version.
    mutating func freeze(_ now: UInt64, usedVersion: UInt32) {
        guard usedVersion == version else { return }
        frozenUntil = now + ProviderTokenAge.freezeSeconds
        isWanted = false
        guard let tooEarly = current, let before = other, before.issuedAt < tooEarly.issuedAt,
            now < before.issuedAt + ProviderTokenAge.expirySeconds
        else { return }
        current = before
        other = tooEarly
        version += 1
    }

    /// What to do where another token is wanted.
    enum Renewal {
        /// Nothing, or nothing yet.
        case none
        /// Take the token that came too early: it is not too early any more.
        case use(Token)
        /// Sign one, dated now.
        case make
    }

    /// What has to be done now.
    func renewal(_ now: UInt64) -> Renewal {
        guard isWanted, let current, now >= frozenUntil else { return .none }
        if let other, other.issuedAt > current.issuedAt,
            now < other.issuedAt + ProviderTokenAge.reusableSeconds
        {
            return .use(other)
        }
        return .make
    }

    /// Uses another token from now on.
    mutating func take(_ token: Token) {
        other?.value.cleanse()
        other = current
        current = token
        version += 1
        isWanted = false
        isStale = false
    }
}
