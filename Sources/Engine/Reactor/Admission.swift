import Campaign
import Support

/// When a reactor may make another request, as far as the run goes: its share of the rate, and the few
/// requests that may be in flight before one was accepted. What a connection allows is asked besides.
struct Admission {
    /// The reactor's share of the run's rate.
    var limiter: Pacer
    /// When the rate lets a request through for which all else is there; `.max`: not waited for.
    var nextPaced = UInt64.max
    /// True while this reactor takes a share of the rate.
    var sharesRate = false
    /// Requests that this reactor may have in flight although none was accepted yet.
    var initialPermits = 0

    init(milliRate: UInt64?, now: Now) {
        limiter = Pacer(milliRate: milliRate, now: now.nanoseconds)
    }

    /// A turn begins: nothing waits for the rate yet.
    mutating func beginTurn() { nextPaced = .max }

    /// Has the reactor woken at that instant, at the latest.
    mutating func wake(at time: UInt64) { nextPaced = min(nextPaced, time) }

    /// Wakes the reactor once both rates, the run's and a connection's, let a request through.
    mutating func waitForRate(of connection: Pacer, now: UInt64) {
        let count = min(limiter.quantum, connection.quantum)
        guard let run = limiter.nextAllowed(count, now: now),
            let own = connection.nextAllowed(count, now: now)
        else { return }
        wake(at: max(run, own))
    }

    /// The reactor's share of the rate: divided again among the reactors that have rows.
    mutating func shareRate(of run: SharedRun, now: UInt64) {
        let share = run.isPaused ? 0 : run.milliRate.map { $0 / UInt64(run.hungryReactors) }
        if share != limiter.milliRate { limiter.setRate(milliRate: share, now: now) }
    }

    /// The reactor has rows: it takes a share of the rate.
    mutating func join(_ run: SharedRun) {
        guard !sharesRate else { return }
        sharesRate = true
        run.enterHungry()
    }

    /// The reactor has no rows any more.
    mutating func leave(_ run: SharedRun) {
        guard sharesRate else { return }
        sharesRate = false
        run.leaveHungry()
    }

    /// Requests that may be made before the first notification was accepted: few, and fewer with each
    /// one that is refused, so that a wrong setting is found out at little cost.
    mutating func initialAllowance(
        of run: SharedRun, inFlight: Int, abortAfter: Int, reactors: Int
    ) -> Int {
        if run.anyAccepted { return .max }
        let wanted = max(1, abortAfter / reactors) - initialPermits
        if wanted > 0 { initialPermits += run.takeEarlyLeaves(wanted, limit: abortAfter) }
        return max(0, initialPermits - inFlight)
    }

    /// Lets other reactors have the permits of what is not in flight here.
    mutating func releasePermits(to run: SharedRun, inFlight: Int) {
        guard initialPermits > inFlight else { return }
        run.giveBackEarlyLeaves(initialPermits - inFlight)
        initialPermits = inFlight
    }

    /// What does not hold although it always has to; nil if all is well.
    func brokenInvariant(abortAfter: Int) -> String? {
        (0...abortAfter).contains(initialPermits)
            ? nil : "\(initialPermits) permits of \(abortAfter)"
    }
}
