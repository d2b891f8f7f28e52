import BroadsidePolicy
import BroadsideSupport

/// Decides when the reactor's share of the run's rate allows another request. Connections have
/// limits of their own.
struct Admission {
    /// The reactor's share of the run's rate.
    var limiter: RateLimiter
    /// Earliest time at which the rate allows a waiting request; `.max` if none waits for the rate.
    var nextPaced = UInt64.max
    /// Time of the next rise of the run's rate; `.max`: it does not rise.
    private var risesAt = UInt64.max
    /// Whether this reactor takes a share of the rate.
    var sharesRate = false

    init(milliRate: UInt64?, now: Now) {
        limiter = RateLimiter(milliRate: milliRate, now: now.nanoseconds)
    }

    /// Starts an iteration, in which no request waits for the rate yet.
    mutating func beginIteration() { nextPaced = .max }

    /// Makes the reactor's next wait end at this time at the latest.
    mutating func wake(at time: UInt64) { nextPaced = min(nextPaced, time) }

    /// Schedules a wake-up for the time at which both the run's rate and the connection's rate
    /// allow a request.
    mutating func waitForRate(of connection: RateLimiter, now: UInt64) {
        let count = min(limiter.quantum, connection.quantum)
        if risesAt != .max { wake(at: risesAt) }
        guard let run = limiter.nextAllowed(count, now: now),
            let own = connection.nextAllowed(count, now: now)
        else { return }
        wake(at: max(run, own))
    }

    /// Recomputes the reactor's share of the rate, which is divided among the reactors with rows.
    mutating func shareRate(of run: RunDirectives, now: UInt64) {
        // A reactor that has no share yet counts itself, because it gets a share when it sends.
        let count = UInt64(max(1, run.rateParticipants + (sharesRate ? 0 : 1)))
        risesAt = run.isPaused ? .max : run.rateRisesAt
        let share = run.isPaused ? 0 : run.milliRate.map { $0 / count }
        assert(
            run.milliRate == nil || share != nil, "a run with a rate has no reactor without one")
        // Setting a rate discards the time that the reactor is behind: at a faster rate, catching
        // up on that time would send too many requests.
        if share != limiter.milliRate || run.isRampCounting {
            limiter.setRate(milliRate: share, now: now)
        }
    }

    /// Takes a share of the rate, because the reactor has rows.
    ///
    /// - Returns: False if it already had a share.
    mutating func join() -> Bool {
        defer { sharesRate = true }
        return !sharesRate
    }

    /// Gives up the share of the rate, because the reactor has no rows.
    ///
    /// - Returns: False if it had no share.
    mutating func leave() -> Bool {
        defer { sharesRate = false }
        return sharesRate
    }
}
