import BroadsideAPNs
import BroadsideSupport

/// Clock that dates a run's provider tokens. A value type: both clocks are parameters.
///
/// The clock follows the wall clock, as the clocks of other machines with the same key do. After
/// the start, the wall clock may jump so far that APNs would refuse a token with its time, because
/// a token is valid for an hour. This clock then follows the start time, which APNs has accepted,
/// plus the monotonic time since then.
///
/// Either time may be the right one. The clock of a machine that slept or was frozen is right after
/// the jump, but a clock that a person set may be wrong after it. APNs decides: once APNs reports a
/// token as expired, this clock follows the wall clock again.
///
///     wall clock -- jumps --> start time + monotonic time -- ExpiredProviderToken --> wall clock
struct TokenClock {
    /// The wall clock is used if it deviates from the monotonic time by less than this many
    /// seconds.
    static let toleratedSeconds = ProviderTokenAge.usableSeconds

    /// Instant at which both clocks were last trusted; nil before the first call.
    private var base: Now?

    /// Time for the next token, seconds since 1970.
    mutating func seconds(_ now: Now) -> UInt64 {
        let steady = steadySeconds(now)
        return isJump(now, steady) ? steady : now.wallMilliseconds / 1000
    }

    /// Follows the wall clock again if it is far ahead. Called after APNs reported a token dated by
    /// this clock as expired.
    ///
    /// - Returns: Whether the time changed.
    mutating func adoptWallClock(_ now: Now) -> Bool {
        let steady = steadySeconds(now)
        guard isJump(now, steady), now.wallMilliseconds / 1000 > steady else { return false }
        base = now
        return true
    }

    /// Wall-clock seconds, extrapolated from `base` with the monotonic clock.
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
