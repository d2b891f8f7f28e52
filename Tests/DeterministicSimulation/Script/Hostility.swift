import Broadside
import BroadsideSupport
import CBroadsideNghttp2

/// Servers that do one thing wrong all the time, each in a way that must neither storm them nor use the
/// list up.
struct Hostility {
    enum Kind: CaseIterable {
        /// Each stream is refused.
        case refusal
        /// Each connection ends with a GOAWAY above whose last stream all requests are.
        case goAway
        /// Each connection ends by a protocol error, sooner or later.
        case violation
        /// An address answers 503 to everything.
        case outage
        /// Connections call any provider token expired.
        case wrongClock
    }

    let kind: Kind
    /// Chance of a connection to be such a one; an outage is all of an address.
    let chance: Double
    /// When it begins after the process does, and how long it takes.
    let begin: UInt64
    let duration: UInt64
    /// The request of a connection with which it begins.
    let requests: Int
    /// Seconds that an outage's responses ask for.
    let retryAfter: Int?
    /// An outage's addresses, by their number's lowest bit; 0 and 1: one or the other, 2: all.
    let parity: Int
    /// Within so long a connection breaks HTTP/2.
    let patience: UInt64

    /// What a seed draws for one of its processes, of a generator of its own, so that its other draws
    /// stay what they are; nil where its servers are not hostile in this way.
    init?(seed: UInt64, process: Int, usesProviderToken: Bool) {
        let mixed = seed ^ 0x686f_7374_696c_0001 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        guard random.chance(0.3) else { return nil }
        let drawn = random.pick(Kind.allCases)
        kind = drawn == .wrongClock && !usesProviderToken ? .outage : drawn
        chance = random.pick([0.3, 1, 1])
        begin = random.chance(0.5) ? 0 : random.skewedDelay(8 * second)
        let drawnDuration = random.pick([2, 20, 10_000]) * second
        // Each connection sends all that fits and settles a row or two: an hour of it takes minutes here.
        duration = kind == .goAway ? min(drawnDuration, 100 * second) : drawnDuration
        // What a first response says of a token is not said by a later one.
        let first = random.between(1...random.pick([1, 4, 60]))
        requests = kind == .wrongClock ? 1 : first
        retryAfter = random.chance(0.4) ? random.between(1...9) : nil
        parity = random.below(3)
        patience = random.pick([1, 300, 4000]) * millisecond
    }
}

extension FaultPlan {
    /// - Parameter isAlone: Nothing else goes wrong: then there is no other reason to give up.
    mutating func add(_ hostility: Hostility, isAlone: Bool) {
        if isAlone { self = .calm }
        self.hostility = hostility
    }
}

extension SimulatedServer {
    /// What the server's hostility has in store now; nil where it has none, or not yet, or not any more.
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

    /// What becomes of a request whose server is hostile; nil where it is not.
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

    /// Plans what the connection's server will do unasked.
    func planHostility() {
        guard let hostility = faults.hostility, hostility.kind == .violation, isHostile else {
            return
        }
        let age = simulation.clock - simulation.process.startedAt
        guard age >= hostility.begin, age - hostility.begin < hostility.duration else { return }
        simulation.schedule(.violate, link: link, after: random.skewedDelay(hostility.patience))
    }

    /// Says GOAWAY, as if none of what is open had been looked at.
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
