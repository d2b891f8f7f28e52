import BroadsideAPNs
import BroadsideTLS

/// The provider token of a process through its ages: when another one is wanted, and when none may
/// be made. A value: the time comes in as a parameter, and somebody else signs.
///
///     of this window -- five minutes into the next --> wanted ------------------------------.
///       |                                                                                   v
///       |-- ExpiredProviderToken, of an earlier window --> stale: nothing is sent --------> taken
///       '-- 55 minutes old: nothing is sent ------------------------------------------------^
///
///     TooManyProviderTokenUpdates: back to the token before, and none is made for 20 minutes
package struct ProviderTokenLife {
    /// A token, and its date.
    package struct Token {
        /// `bearer ...`.
        package var value: [UInt8]
        /// `iat`: seconds since 1970.
        package var issuedAt: UInt64

        package init(value: [UInt8], issuedAt: UInt64) {
            self.value = value
            self.issuedAt = issuedAt
        }
    }

    /// In use; nil with a client certificate.
    private(set) var current: Token?
    /// The one in use before.
    private var previous: Token?
    /// Grows with every change of `current`.
    private(set) var version: UInt32 = 1
    /// No other token may be made before, seconds since 1970.
    private(set) var frozenUntil: UInt64 = 0
    /// Before that no other one is wanted, unless this one must not be used any more.
    private var keptUntil: UInt64 = 0
    /// Another token is wanted.
    private(set) var isWanted = false
    /// APNs calls the token expired: until there is another, nothing is sent.
    private(set) var isStale = false

    init(_ token: Token?) {
        current = token
    }

    /// Wants the token of the next window once it is time for it.
    mutating func requestIfDue(_ now: UInt64) {
        guard let current, ProviderTokenAge.issueTime(at: now) > current.issuedAt,
            now >= keptUntil || isTooOld(now)
        else { return }
        isWanted = true
    }

    /// True once the token is so old that nothing is sent with it.
    func isTooOld(_ now: UInt64) -> Bool {
        current.map { now >= $0.issuedAt + ProviderTokenAge.usableSeconds } ?? false
    }

    /// True while no other token may be made.
    func isFrozen(_ now: UInt64) -> Bool { now < frozenUntil }

    /// True while the token, which was made elsewhere, is too young to have expired.
    func isYoung(_ now: UInt64) -> Bool {
        current.map { now < $0.issuedAt + ProviderTokenAge.renewableSeconds } ?? true
    }

    /// APNs says ExpiredProviderToken to a request that carried the token of a version.
    ///
    /// - Returns: False where it is the token of this window: a clock is wrong.
    mutating func requestAfterExpiry(_ now: UInt64, usedVersion: UInt32) -> Bool {
        guard usedVersion == version, !isStale else { return true }
        guard let current, current.issuedAt < ProviderTokenAge.windowStart(now) else {
            return false
        }
        isWanted = true
        isStale = true
        return true
    }

    /// APNs says TooManyProviderTokenUpdates to a request that carried the token of a version.
    mutating func freeze(_ now: UInt64, usedVersion: UInt32) {
        guard usedVersion == version else { return }
        frozenUntil = now + ProviderTokenAge.freezeSeconds
        isWanted = false
        guard let tooEarly = current, let before = previous, before.issuedAt < tooEarly.issuedAt,
            now < before.issuedAt + ProviderTokenAge.usableSeconds
        else { return }
        current = before
        previous = nil
        version += 1
    }

    /// The date of the token that has to be made now; nil where none has to be, or not yet.
    func renewal(_ now: UInt64) -> UInt64? {
        guard isWanted, let current, now >= frozenUntil else { return nil }
        let issuedAt =
            isStale ? ProviderTokenAge.windowStart(now) : ProviderTokenAge.issueTime(at: now)
        return issuedAt > current.issuedAt ? issuedAt : nil
    }

    /// Uses another token from now on.
    ///
    /// - Parameter now: Seconds since 1970.
    mutating func take(_ token: Token, _ now: UInt64) {
        previous?.value.cleanse()
        previous = current
        current = token
        version += 1
        isWanted = false
        isStale = false
        // One that comes late, after 20 minutes without renewal, is not followed at once.
        keptUntil = now + ProviderTokenAge.renewableSeconds
    }
}
