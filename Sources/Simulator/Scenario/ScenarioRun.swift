internal import BroadsideSupport
internal import Synchronization

/// A scenario that is being played, as all threads count it.
final class ScenarioRun: Sendable {
    let scenario: Scenario
    /// When it began, monotonic nanoseconds.
    let startNanoseconds: UInt64
    private let requests = Atomic<UInt64>(0)
    /// How often each fault struck, and what was left to chance.
    private let state: Mutex<State>

    private struct State {
        var strikes: [UInt64]
        /// Marks of provider tokens that were made to expire.
        var expired: [UInt64] = []
    }

    /// How many expired provider tokens are told apart; later ones push the oldest out.
    private static let expiredTokens = 64

    init(_ scenario: Scenario, now: UInt64) {
        self.scenario = scenario
        startNanoseconds = now
        state = Mutex(State(strikes: Array(repeating: 0, count: scenario.faults.count)))
    }

    /// The number of a request among all, from 1.
    func nextRequest() -> UInt64 { requests.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Counts a strike; false where the fault has struck as often as it may.
    func strike(_ fault: Int) -> Bool {
        state.withLock { state in
            if let limit = scenario.faults[fault].trigger.limit, state.strikes[fault] >= limit {
                return false
            }
            state.strikes[fault] += 1
            return true
        }
    }

    /// How often each fault struck.
    var strikes: [UInt64] { state.withLock { $0.strikes } }

    /// Lets a provider token expire.
    func expire(_ fingerprint: UInt64) {
        state.withLock { state in
            guard !state.expired.contains(fingerprint) else { return }
            if state.expired.count == Self.expiredTokens { state.expired.removeFirst() }
            state.expired.append(fingerprint)
        }
    }

    /// Whether it was made to expire.
    func isExpired(_ fingerprint: UInt64) -> Bool {
        state.withLock { $0.expired.contains(fingerprint) }
    }

    /// Whether connections are reset at this time.
    func isOutage(at now: UInt64) -> Bool {
        scenario.faults.contains { fault in
            fault.action == .outage && fault.trigger.holds(at: elapsed(now))
        }
    }

    /// When an outage begins or ends next, nanoseconds; nil: never.
    func nextOutageChange(after now: UInt64) -> UInt64? {
        let changes = scenario.faults.compactMap { fault in
            fault.action == .outage ? fault.trigger.nextChange(after: elapsed(now)) : nil
        }
        return changes.min().map { startNanoseconds + $0 }
    }

    /// Nanoseconds since it began.
    func elapsed(_ now: UInt64) -> UInt64 { now > startNanoseconds ? now - startNanoseconds : 0 }
}

/// What one connection counts of a scenario.
struct ScenarioCounters {
    /// The run that this counts for: another one starts anew.
    private(set) var run: ScenarioRun?
    private var requests: UInt64 = 0
    private var random: UInt64

    init(run: ScenarioRun?, connection: UInt64) {
        self.run = run
        random = splitmix64((run?.scenario.seed ?? 0) ^ connection)
    }

    /// The fault that strikes the next request; nil where none does.
    mutating func next(run: ScenarioRun, connection: UInt64, now: UInt64) -> Fault.Action? {
        if self.run !== run { self = ScenarioCounters(run: run, connection: connection) }
        requests += 1
        let global = run.nextRequest()
        let elapsed = run.elapsed(now)
        for (index, fault) in run.scenario.faults.enumerated() where fault.action != .outage {
            let trigger = fault.trigger
            guard trigger.holds(at: elapsed) else { continue }
            let number = trigger.scope == .global ? global : requests
            if trigger.share != nil { random = splitmix64(random) }
            let chance = Double(random >> 11) * 0x1p-53
            guard trigger.holds(number: number, chance: chance), run.strike(index) else { continue }
            return fault.action
        }
        return nil
    }
}
