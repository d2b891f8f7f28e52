internal import BroadsideRing
internal import BroadsideSupport
internal import Synchronization

/// A running scenario and the counts shared by all threads.
final class ScenarioRun: Sendable {
    let scenario: Scenario
    /// The start time, monotonic nanoseconds.
    let startNanoseconds: UInt64
    private let requests = Atomic<UInt64>(0)
    /// The number of times that each fault was injected, and the state of the random numbers.
    private let state: Mutex<State>

    private struct State {
        var strikes: [UInt64]
        /// The hashes of provider tokens that the scenario expired.
        var expired: [UInt64] = []
        var updates = TokenUpdateTable()
    }

    /// Maximum number of expired provider tokens that are recorded. Later tokens replace the oldest
    /// ones.
    private static let expiredTokens = 64

    init(_ scenario: Scenario, now: UInt64) {
        self.scenario = scenario
        startNanoseconds = now
        state = Mutex(State(strikes: Array(repeating: 0, count: scenario.faults.count)))
    }

    /// Returns the number of the next request over all connections, from 1.
    func nextRequest() -> UInt64 { requests.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Counts an injection of a fault. Returns false, and counts nothing, if the fault has reached
    /// its limit.
    func strike(_ fault: Int) -> Bool {
        state.withLock { state in
            if let limit = scenario.faults[fault].trigger.limit, state.strikes[fault] >= limit {
                return false
            }
            state.strikes[fault] += 1
            assert(scenario.faults[fault].trigger.limit.map { state.strikes[fault] <= $0 } ?? true)
            return true
        }
    }

    /// The number of times that each fault was injected.
    var strikes: [UInt64] { state.withLock { $0.strikes } }

    /// Expires a provider token.
    func expire(_ fingerprint: UInt64) {
        state.withLock { state in
            guard !state.expired.contains(fingerprint) else { return }
            if state.expired.count == Self.expiredTokens { state.expired.removeFirst() }
            state.expired.append(fingerprint)
            assert(state.expired.count <= Self.expiredTokens)
        }
    }

    /// Returns whether the scenario expired a token.
    func isExpired(_ fingerprint: UInt64) -> Bool {
        state.withLock { $0.expired.contains(fingerprint) }
    }

    /// Counts the use of a provider token by an address. Returns false if the address changes its
    /// token too soon.
    func allowsToken(
        _ fingerprint: UInt64, from address: SocketAddress, _ rule: TokenUpdateRule, now: UInt64
    ) -> Bool {
        state.withLock { $0.updates.allows(fingerprint, from: address, rule, now: now) }
    }

    /// Returns whether connections are reset at this time.
    func isOutage(at now: UInt64) -> Bool {
        scenario.faults.contains { fault in
            fault.action == .outage && fault.trigger.holds(at: elapsed(now))
        }
    }

    /// Returns the time at which the next outage begins or ends, nanoseconds; nil if there is none.
    func nextOutageChange(after now: UInt64) -> UInt64? {
        let changes = scenario.faults.compactMap { fault in
            fault.action == .outage ? fault.trigger.nextChange(after: elapsed(now)) : nil
        }
        let next = changes.min().map { startNanoseconds + $0 }
        assert(next.map { $0 > now } ?? true, "a change is ahead")
        return next
    }

    /// Returns the nanoseconds since the start.
    func elapsed(_ now: UInt64) -> UInt64 { now > startNanoseconds ? now - startNanoseconds : 0 }
}

/// The counts of a scenario for one connection.
struct ScenarioCounters {
    /// The scenario run to which the counts belong. With a new run, the counts start again at 0.
    private(set) var run: ScenarioRun?
    private var requests: UInt64 = 0
    private var random: UInt64

    init(run: ScenarioRun?, connection: UInt64) {
        self.run = run
        random = splitmix64((run?.scenario.seed ?? 0) ^ connection)
    }

    /// Returns a uniform value in 0..<1.
    mutating func chance() -> Double {
        random = splitmix64(random)
        let chance = Double(random >> 11) * 0x1p-53
        assert((0..<1).contains(chance))
        return chance
    }

    /// Returns the fault that applies to the next request, or nil for none.
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
