import Broadside
import BroadsideSupport
import CBroadsideNghttp2

/// Servers with one permanent fault. The client must not flood them with requests or connections,
/// and must not use up the list.
struct Hostility {
    enum Kind: CaseIterable {
        /// Each stream is refused.
        case refusal
        /// Each connection ends with a GOAWAY whose last stream is below all open requests.
        case goAway
        /// Each connection ends with a protocol error, sooner or later.
        case violation
        /// An address responds with 503 to every request.
        case outage
        /// Connections report any provider token as expired.
        case wrongClock
    }

    let kind: Kind
    /// Chance that a connection has the fault. An outage applies to all connections of an address.
    let chance: Double
    /// Time from the start of the process to the beginning of the fault, and duration of the fault.
    let begin: UInt64
    let duration: UInt64
    /// Number of the request on a connection with which the fault begins.
    let requests: Int
    /// Retry-After of an outage's responses, in seconds.
    let retryAfter: Int?
    /// Addresses of an outage, by the lowest bit of their number: 0, 1, or 2 for all addresses.
    let parity: Int
    /// Maximum time until a connection breaks HTTP/2.
    let patience: UInt64

    /// Draws the fault of a process from its own generator, so that the seed's other draws stay the
    /// same; nil if its servers do not have such a fault.
    init?(seed: UInt64, process: Int, usesProviderToken: Bool) {
        let mixed = seed ^ 0x686f_7374_696c_0001 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        guard random.chance(0.3) else { return nil }
        let drawn = random.pick(Kind.allCases)
        kind = drawn == .wrongClock && !usesProviderToken ? .outage : drawn
        chance = random.pick([0.3, 1, 1])
        begin = random.chance(0.5) ? 0 : random.skewedDelay(8 * second)
        let drawnDuration = random.pick([2, 20, 10_000]) * second
        // Each connection sends as many requests as it can, and settles only one or two rows. An
        // hour of this takes minutes of computing time.
        duration = kind == .goAway ? min(drawnDuration, 100 * second) : drawnDuration
        // A server that reports tokens as expired does so from the first response on.
        let first = random.between(1...random.pick([1, 4, 60]))
        requests = kind == .wrongClock ? 1 : first
        retryAfter = random.chance(0.4) ? random.between(1...9) : nil
        parity = random.below(3)
        patience = random.pick([1, 300, 4000]) * millisecond
    }
}

extension FaultPlan {
    /// - Parameter isAlone: Whether there are no other faults. Then there is no other reason to
    ///   give up.
    mutating func add(_ hostility: Hostility, isAlone: Bool) {
        if isAlone { self = .calm }
        self.hostility = hostility
    }
}

extension SimulatedServer {
    /// The fault of the server that is active now; nil if there is none.
    var hostility: Hostility? {
        guard let hostility = faults.hostility, requests >= hostility.requests else { return nil }
        let age = simulation.clock - simulation.process.startedAt
        guard age >= hostility.begin, age - hostility.begin < hostility.duration else { return nil }
        let parity = simulation.links[link].address & 1
        let isMeant =
            hostility.kind == .outage
            ? hostility.parity == 2 || hostility.parity == parity : isHostile
        return isMeant ? hostility : nil
    }

    /// What a server with such a fault does with a request; nil if no fault is active.
    func hostileFate() -> Fate? {
        guard let hostility else { return nil }
        switch hostility.kind {
        case .refusal:
            return .refuse
        case .goAway:
            simulation.schedule(.disown, link: link, after: random.skewedDelay(20 * millisecond))
            return .silence
        case .violation:
            return nil
        case .outage:
            return .answer(
                ServerAnswer(
                    status: 503, reason: "ServiceUnavailable", retryAfter: hostility.retryAfter))
        case .wrongClock:
            return .answer(FaultPlan.expiredToken)
        }
    }

    /// Schedules the acts of the connection's server.
    func planHostility() {
        guard let hostility = faults.hostility, hostility.kind == .violation, isHostile else {
            return
        }
        let age = simulation.clock - simulation.process.startedAt
        guard age >= hostility.begin, age - hostility.begin < hostility.duration else { return }
        simulation.schedule(.violate, link: link, after: random.skewedDelay(hostility.patience))
    }

    /// Sends a GOAWAY that excludes all open requests.
    func disown() {
        guard !hasSaidGoAway else { return }
        hasSaidGoAway = true
        nghttp2_submit_goaway(
            session, 0, highestProcessed, NGHTTP2_NO_ERROR.rawValue, nil, 0)
        if random.chance(0.7) {
            simulation.schedule(.close, link: link, after: random.skewedDelay(30 * millisecond))
        }
    }
}
