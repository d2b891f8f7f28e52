import BroadsidePolicy
import BroadsideSupport

/// A reactor's side of its run: directives come in, effects go out, both at the beginning and at the end
/// of a turn, and in between only when the effects are full (`isFull`).
///
///     completions --> effects --.                      .--> effects --.
///                               v   exchange           |              v   exchange
///     ------------------------ run ------> directives --> turn ----- run -->
///
/// What only one reactor can have (leave to connect, to try an address; a row to take over; a lease of
/// rows to read) is asked for when it is needed: `SharedResources`.
struct RunChannel {
    private let coordinator: RunCoordinator
    /// What reactors take from each other.
    let resources: SharedResources
    /// The reactor's number in the run.
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

    /// Hands over what came in and takes what holds for the turn.
    ///
    /// - Parameters:
    ///   - permits: Requests before the first acceptance that the reactor needs leave for: those in
    ///     flight, and those that it would make.
    ///   - inFlight: How many of them are in flight.
    mutating func exchange(permits: Int, inFlight: Int, _ now: Now) {
        directives = coordinator.exchange(
            effects, reactor: reactor,
            permits: .init(held: directives.permits, needed: inFlight, wanted: permits), now)
        effects.removeAll()
    }

    /// Hands over what the turn decided; permits that were not used go to others.
    mutating func finishIteration(inFlight: Int, _ now: Now) {
        guard !effects.isEmpty || directives.permits > inFlight else { return }
        exchange(permits: 0, inFlight: inFlight, now)
    }

    /// What is to be done about each ExpiredProviderToken that was handed over last, once.
    mutating func takeExpiredTokens() -> [ExpiredTokenAction] {
        defer { directives.expiredTokens = [] }
        return directives.expiredTokens
    }

    // MARK: What a reactor says

    /// So much is to be told that it is handed over before anything else comes in.
    var isFull: Bool { effects.isFull }

    mutating func append(_ signal: ReactorEffects.Signal) { effects.append(signal) }

    /// Asks for the run's end. No request follows in this turn either.
    mutating func stop(_ cause: StopCause) {
        effects.append(.stop(cause))
        directives.isStopping = true
    }

    /// As `stop`, with what went wrong last as its cause.
    mutating func giveUp(_ signal: ReactorEffects.Signal) {
        effects.append(signal)
        directives.isStopping = true
    }

    mutating func record(_ trouble: ConnectionTrouble) { effects.append(.trouble(trouble)) }

    mutating func markReady() {
        effects.isReady = true
        directives.anyReady = true
    }

    mutating func recordResponse(_ now: Now) { effects.lastResponse = now.nanoseconds }

    mutating func markListEnd() { effects.isListOver = true }

    mutating func checkTokenAge() { effects.checksTokenAge = true }

    mutating func report(_ progress: ReactorEffects.CanaryProgress) { effects.canary = progress }

    /// The reactor takes a share of the rate, or none any more.
    mutating func shareRate(_ isSharing: Bool) { effects.rateChange += isSharing ? 1 : -1 }
}
