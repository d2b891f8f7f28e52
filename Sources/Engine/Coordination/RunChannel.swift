import BroadsidePolicy
import BroadsideSupport

/// A reactor's connection to its run. In an exchange, the run takes the reactor's effects and
/// returns directives. An exchange takes place at the start and at the end of each iteration. If
/// the effects are full (`isFull`), the run also takes them in between.
///
///     completions --> effects --.                      .--> effects --.
///                               v   exchange           |              v   exchange
///     ------------------------ run ------> directives --> iteration ----- run -->
///
/// Exclusive resources (a connection attempt, a trial of an address, a row to take over, a lease of
/// rows to read) are acquired on demand from `SharedResources`.
struct RunChannel {
    private let coordinator: RunCoordinator
    /// Resources that only one reactor can have.
    let resources: SharedResources
    /// Number of the reactor in the run.
    let reactor: Int
    private(set) var directives: RunDirectives
    private var effects = ReactorEffects()

    init(_ coordinator: RunCoordinator, reactor: Int) {
        self.coordinator = coordinator
        self.reactor = reactor
        resources = coordinator.resources
        directives = coordinator.directives(for: reactor)
    }

    // MARK: Handing over

    /// Hands over effects and takes the directives of the iteration.
    ///
    /// - Parameters:
    ///   - permits: Number of permits that the reactor needs before the first acceptance: one for
    ///     each request in flight, and one for each request that it could send.
    ///   - inFlight: Number of requests in flight.
    mutating func exchange(permits: Int, inFlight: Int, _ now: Now) {
        assert(permits >= 0 && inFlight >= 0)
        let kept = min(directives.permits, inFlight)
        directives = coordinator.exchange(
            effects, reactor: reactor,
            permits: .init(held: directives.permits, needed: inFlight, wanted: permits), now)
        effects.removeAll()
        assert(directives.permits >= kept, "a request in flight lost its permit")
    }

    /// Hands over the effects of the iteration and gives back unused permits.
    mutating func finishIteration(inFlight: Int, _ now: Now) {
        guard !effects.isEmpty || directives.permits > inFlight else { return }
        exchange(permits: 0, inFlight: inFlight, now)
    }

    /// Returns the actions for the ExpiredProviderToken responses that were handed over last, and
    /// clears them.
    mutating func takeExpiredTokens() -> [ExpiredTokenAction] {
        defer { directives.expiredTokens = [] }
        return directives.expiredTokens
    }

    // MARK: Effects

    /// Whether the effects must be handed over before the reactor processes more input.
    var isFull: Bool { effects.isFull }

    mutating func append(_ signal: ReactorEffects.Signal) { effects.append(signal) }

    /// Requests the run's end. The reactor sends no further requests in this iteration.
    mutating func stop(_ cause: StopCause) {
        effects.append(.stop(cause))
        directives.isStopping = true
    }

    /// Requests the run's end like `stop`, with the last connection trouble as the cause.
    mutating func giveUp(_ signal: ReactorEffects.Signal) {
        effects.append(signal)
        directives.isStopping = true
    }

    mutating func record(_ trouble: ConnectionTrouble) { effects.append(.trouble(trouble)) }

    mutating func markReady() {
        effects.isReady = true
        directives.anyReady = true
        directives.wasReached = true
    }

    mutating func recordResponse(_ now: Now) { effects.lastResponse = now.nanoseconds }

    /// Records the time of requests. A rate ramp advances up to this time.
    mutating func recordSent(at time: UInt64) {
        if directives.isRampCounting { effects.lastSent = time }
    }

    mutating func markListEnd() { effects.isListOver = true }

    mutating func checkTokenAge() { effects.checksTokenAge = true }

    mutating func report(_ progress: ReactorEffects.CanaryProgress) { effects.canary = progress }

    /// Records whether the reactor takes a share of the run's rate from now on.
    mutating func shareRate(_ isSharing: Bool) { effects.rateChange += isSharing ? 1 : -1 }
}
