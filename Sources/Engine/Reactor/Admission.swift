import BroadsidePolicy
import BroadsideSupport

/// When a reactor may make another request, as far as the run's rate goes, of which it has a share. What a
/// connection allows is asked besides.
struct Admission {
    /// The reactor's share of the run's rate.
    var limiter: RateLimiter
    /// When the rate lets a request through for which all else is there; `.max`: not waited for.
    var nextPaced = UInt64.max
    /// True while this reactor takes a share of the rate.
    var sharesRate = false

    init(milliRate: UInt64?, now: Now) {
        limiter = RateLimiter(milliRate: milliRate, now: now.nanoseconds)
    }

    /// A turn begins: nothing waits for the rate yet.
    mutating func beginIteration() { nextPaced = .max }

    /// Has the reactor woken at that instant, at the latest.
    mutating func wake(at time: UInt64) { nextPaced = min(nextPaced, time) }

    /// Wakes the reactor once both rates, the run's and a connection's, let a request through.
    mutating func waitForRate(of connection: RateLimiter, now: UInt64) {
        let count = min(limiter.quantum, connection.quantum)
        guard let run = limiter.nextAllowed(count, now: now),
            let own = connection.nextAllowed(count, now: now)
        else { return }
        wake(at: max(run, own))
    }

    /// The reactor's share of the rate: divided again among the reactors that have rows.
    mutating func shareRate(of run: RunDirectives, now: UInt64) {
        // A reactor without a share reckons with the one that it takes when it sends.
        let count = UInt64(max(1, run.rateParticipants + (sharesRate ? 0 : 1)))
        let share = run.isPaused ? 0 : run.milliRate.map { $0 / count }
        if share != limiter.milliRate { limiter.setRate(milliRate: share, now: now) }
    }

    /// The reactor has rows: it takes a share of the rate.
    ///
    /// - Returns: False where it had one.
    mutating func join() -> Bool {
        defer { sharesRate = true }
        return !sharesRate
    }

    /// The reactor has no rows any more.
    ///
    /// - Returns: False where it had no share.
    mutating func leave() -> Bool {
        defer { sharesRate = false }
        return sharesRate
    }
}
