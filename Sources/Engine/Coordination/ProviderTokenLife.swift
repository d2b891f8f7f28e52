import BroadsideAPNs
import BroadsideTLS

/// Rules for the age of a process's provider token: when it is renewed, and when no new one may be
/// made. A value type: the time is a parameter, and the caller signs the tokens. `ProviderTokenAge`
/// defines the time windows.
///
/// - Five minutes into the next time window, a new token is requested. The current token is used
///   until the new token is there.
/// - If APNs reports a token of an earlier time window as expired, the token is stale. A new token
///   is requested, and nothing is sent until it is there.
/// - If a token is 55 minutes old, nothing is sent until a new token is there.
/// - If a token can't be made, the current one stays in use, and a minute later another attempt is
///   made.
/// - After TooManyProviderTokenUpdates, the previous token is used again, and no new token is made
///   for 20 minutes. A new token from another process is set aside until then.
package struct ProviderTokenLife: Sendable {
    /// A provider token and its issue time.
    package struct Token: Sendable {
        /// `bearer ...`.
        package var value: [UInt8]
        /// The issue time (`iat`), seconds since 1970.
        package var issuedAt: UInt64
        /// ID of the key that signed the token; nil if it can't change during the run.
        package var keyID: String?

        package init(value: [UInt8], issuedAt: UInt64, keyID: String? = nil) {
            self.value = value
            self.issuedAt = issuedAt
            self.keyID = keyID
        }
    }

    /// The token in use; nil with a client certificate.
    package private(set) var current: Token? {
        didSet { if current?.keyID != oldValue?.keyID { keyVersion += 1 } }
    }
    /// Increases when a token of another key comes into use. APNs refuses that token on connections
    /// that have carried a token of the previous key.
    private(set) var keyVersion: UInt32 = 1
    /// The token before `current`; nil if there was none.
    private var previous: Token?
    /// Token from another process that is used from `offersFrom` on; nil if there is none.
    private var deferred: Token?
    /// Earliest time at which a token from another process is taken, seconds since 1970. Unlike
    /// `frozenUntil`, it is not extended while APNs refuses the token in use: the other token may
    /// help.
    private var offersFrom: UInt64 = 0
    /// Increases with each change of `current`.
    package private(set) var version: UInt32 = 1
    /// Version of the previous token that came into use again because APNs refused its successor;
    /// nil if that never happened.
    private var returnedVersion: UInt32?
    /// Earliest time at which a new token may be made, seconds since 1970.
    private(set) var frozenUntil: UInt64 = 0
    /// Earliest time at which a new token is requested, seconds since 1970. A token that is too old
    /// to be sent is replaced earlier.
    private var keptUntil: UInt64 = 0
    /// Earliest time of the next attempt to make a token after one that failed, seconds since 1970.
    private var nextAttempt: UInt64 = 0
    /// Whether a new token is requested.
    private(set) var isWanted = false
    /// Whether APNs reported the token as expired. If so, nothing is sent until there is a new
    /// token.
    private(set) var isStale = false

    package init(_ token: Token?) {
        current = token
    }

    /// Requests a new token if the next time window has begun and its token is due.
    package mutating func requestIfDue(_ now: UInt64) {
        guard let current, ProviderTokenAge.issueTime(at: now) > current.issuedAt,
            now >= keptUntil || isTooOld(now)
        else { return }
        isWanted = true
    }

    /// Whether the token is too old to be sent.
    func isTooOld(_ now: UInt64) -> Bool {
        current.map { now >= $0.issuedAt + ProviderTokenAge.usableSeconds } ?? false
    }

    /// Whether no other token may be made now.
    func isFrozen(_ now: UInt64) -> Bool { now < frozenUntil }

    /// Whether the current token, which another process made, has expired by this machine's clock.
    func isExpired(_ now: UInt64) -> Bool {
        current.map { now >= $0.issuedAt + ProviderTokenAge.expirySeconds } ?? false
    }

    /// Whether the current token, which another process made, is too young to be replaced.
    func isYoung(_ now: UInt64) -> Bool {
        current.map { now < $0.issuedAt + ProviderTokenAge.renewableSeconds } ?? true
    }

    /// Handles ExpiredProviderToken in a response to a request with the token of `usedVersion`.
    ///
    /// - Returns: False if the token is already the one of the current time window. APNs should
    ///   accept such a token, so a clock must be wrong.
    package mutating func requestAfterExpiry(_ now: UInt64, usedVersion: UInt32) -> Bool {
        guard usedVersion == version, !isStale else { return true }
        guard let current, current.issuedAt < ProviderTokenAge.windowStart(now) else {
            return false
        }
        isWanted = true
        isStale = true
        return true
    }

    /// Handles ExpiredProviderToken for the current token if another process creates the tokens:
    /// nothing is sent until that process supplies a new one.
    mutating func callStale() {
        assert(current != nil, "a request had carried it")
        isStale = true
    }

    /// Handles TooManyProviderTokenUpdates in a response to a request with the token of
    /// `usedVersion`.
    ///
    /// - Parameter isSupplied: Whether another process makes the tokens. If so, the refused token is
    ///   used later.
    package mutating func freeze(
        _ now: UInt64, usedVersion: UInt32, isSupplied: Bool = false
    ) {
        guard usedVersion == version else { return }
        frozenUntil = now + ProviderTokenAge.freezeSeconds
        if now >= offersFrom { offersFrom = frozenUntil }
        isWanted = false
        guard let tooEarly = current, let before = previous, before.issuedAt < tooEarly.issuedAt,
            now < before.issuedAt + ProviderTokenAge.usableSeconds
        else { return }
        if isSupplied, deferred == nil { deferred = tooEarly }
        current = before
        previous = nil
        version += 1
        returnedVersion = version
    }

    /// Earliest time at which the token in use is replaced, seconds since 1970, if it is a previous
    /// token that came into use again because APNs refused its successor; otherwise nil.
    package var returnedUntil: UInt64? {
        returnedVersion == version ? deferredUntil ?? frozenUntil : nil
    }

    /// Time between attempts to make a token, seconds.
    static let retrySeconds: UInt64 = 60

    /// Whether the current token may be sent.
    private func isUsable(_ now: UInt64) -> Bool { !isStale && !isTooOld(now) }

    /// Records that a token could not be made.
    ///
    /// - Returns: False if nothing can be sent any more. Otherwise, the current token stays in use.
    mutating func recordFailure(_ now: UInt64) -> Bool {
        nextAttempt = now + Self.retrySeconds
        return isUsable(now)
    }

    /// Time from which a token is used that was set aside, seconds since 1970; nil if there is none.
    var deferredUntil: UInt64? { deferred.map { _ in offersFrom } }

    /// Takes a token that another process made. In the 20 minutes after TooManyProviderTokenUpdates,
    /// the token is set aside, in place of one that was set aside before.
    ///
    /// - Returns: Time from which the token is used, seconds since 1970; nil: it is in use now.
    mutating func offer(_ token: Token, _ now: UInt64) -> UInt64? {
        guard now < offersFrom else {
            take(token, now)
            return nil
        }
        deferred = token
        return offersFrom
    }

    /// Starts to use the token that was set aside, if there is one and the 20 minutes are over.
    mutating func takeDeferred(_ now: UInt64) {
        guard let deferred, now >= offersFrom else { return }
        take(deferred, now)
    }

    /// Issue time of the token to make now; nil if none is due.
    package func renewal(_ now: UInt64) -> UInt64? {
        guard isWanted, let current, now >= frozenUntil, now >= nextAttempt || !isUsable(now) else {
            return nil
        }
        let issuedAt =
            isStale ? ProviderTokenAge.windowStart(now) : ProviderTokenAge.issueTime(at: now)
        return issuedAt > current.issuedAt ? issuedAt : nil
    }

    /// Replaces the token in use.
    package mutating func take(_ token: Token, _ now: UInt64) {
        previous?.value.cleanse()
        previous = current
        current = token
        deferred = nil
        version += 1
        isWanted = false
        isStale = false
        nextAttempt = 0
        assert(version > 1, "requests with the token before have another version")
        // A token that comes late, after 20 minutes without renewal, is not replaced at once.
        keptUntil = now + ProviderTokenAge.renewableSeconds
    }
}
