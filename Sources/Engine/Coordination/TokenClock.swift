import BroadsideAPNs
import BroadsideSupport

/// The time by which a run's provider tokens are dated. A value: both clocks come in as a parameter.
///
/// It is the wall clock, as it is on all machines that hold a key, unless that has jumped so far since the
/// beginning that a token of its time would lie outside APNs' hour: then it is the time since the beginning,
/// by which APNs has accepted tokens. Whether the clock was right before the jump or is now is not known
/// here: a machine that slept, or was frozen, wakes with a right one, and somebody may have set a wrong one.
/// APNs knows: it calls the token expired, and the wall clock is followed from then on.
///
///     wall clock --- jumps ---> time since the beginning --- ExpiredProviderToken ---> wall clock
struct TokenClock {
    /// The wall clock is followed as long as it differs by less from the time since the beginning.
    static let toleratedSeconds = ProviderTokenAge.usableSeconds

    /// When both clocks were believed last; nil before the first look.
    private var base: Now?

    /// Seconds since 1970.
    mutating func seconds(_ now: Now) -> UInt64 {
        let steady = steadySeconds(now)
        return isJump(now, steady) ? steady : now.wallMilliseconds / 1000
    }

    /// APNs says that a token of this clock's time has expired: where the wall clock is far ahead, that is
    /// right, and is followed from now on.
    ///
    /// - Returns: Whether the time is another one now.
    mutating func adoptWallClock(_ now: Now) -> Bool {
        let steady = steadySeconds(now)
        guard isJump(now, steady), now.wallMilliseconds / 1000 > steady else { return false }
        base = now
        return true
    }

    /// The wall clock's seconds, as they would be if it had gone on evenly.
    private mutating func steadySeconds(_ now: Now) -> UInt64 {
        let base = base ?? now
        self.base = base
        let passed = now.nanoseconds - min(now.nanoseconds, base.nanoseconds)
        return base.wallMilliseconds / 1000 + passed / second
    }

    private func isJump(_ now: Now, _ steady: UInt64) -> Bool {
        let wall = now.wallMilliseconds / 1000
        return max(wall, steady) - min(wall, steady) >= Self.toleratedSeconds
    }
}
