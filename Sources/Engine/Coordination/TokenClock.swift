import BroadsideAPNs
import BroadsideSupport

/// A clock that dates a run's provider tokens. A value type: both clocks are parameters.
///
/// The clock follows the wall clock, like the clocks of other machines with the same key. A token
/// is valid for an hour, so APNs would refuse tokens if the wall clock jumped too far after the
/// start. After such a jump, this clock ignores the wall clock. Its time is then the start time
/// plus the monotonic time since the start. APNs has accepted the start time.
///
/// After a jump, either time may be right. The wall clock of a virtual machine that was frozen is
/// right, but a wall clock that a person set may be wrong. APNs decides: once APNs reports a token
/// as expired, this clock follows the wall clock again.
///
///     wall clock -- jumps --> start time + monotonic time -- ExpiredProviderToken --> wall clock
struct TokenClock {
    /// The wall clock is used if it deviates from the monotonic time by less than this many
    /// seconds.
    static let toleratedSeconds = ProviderTokenAge.usableSeconds

    /// Instant at which both clocks were last trusted; nil before the first call.
    private var base: Now?

    /// Current time of this clock, seconds since 1970.
    mutating func seconds(_ now: Now) -> UInt64 {
        let steady = steadySeconds(now)
        return isJump(now, steady) ? steady : now.wallMilliseconds / 1000
    }

    /// Follows the wall clock again if it is far ahead. Called after APNs reported that a token
    /// with this clock's time has expired.
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
