import Broadside
import CBroadsideNghttp2

/// Servers that live and answer PING, and one day leave no room for a request any more, for good.
struct Starvation {
    enum Cause {
        /// The stream limit falls to zero.
        case streams
        /// Nothing of the connection's window is given back, and what it cuts off is refused: no
        /// request is in flight whose answer would move the server to make room.
        case window
    }

    let cause: Cause
    /// Chance of a connection to be such a one.
    let chance: Double
    /// It begins with so many requests.
    let requests: Int

    /// What a seed draws for one of its processes, of a generator of its own, so that its other draws
    /// stay what they are; nil where no server starves anybody.
    ///
    /// - Parameters:
    ///   - rows: Rows of the list: a connection carries enough of them for the campaign to end.
    ///   - payloadCount: What a request takes of the connection's window, at least.
    init?(seed: UInt64, process: Int, rows: Int, payloadCount: Int) {
        let mixed = seed ^ 0x7374_6172_7665_0001 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        guard random.chance(0.15), rows > 0 else { return nil }
        chance = random.pick([0.4, 1])
        requests = max(5, rows / random.between(2...20))
        cause = rows * payloadCount > 100_000 && random.chance(0.6) ? .window : .streams
    }
}

extension FaultPlan {
    /// - Parameter isAlone: Nothing else goes wrong: then there is no other reason to give up.
    mutating func add(_ starvation: Starvation, isAlone: Bool) {
        if isAlone { self = .calm }
        self.starvation = starvation
    }

    mutating func add(_ limits: AnnouncedLimits) {
        self.limits = limits
        initialWindow = limits.initialWindow
        // Not where few requests of a connection are answered anyway: that would take days.
        if limits.variesTables, resetStream < 0.5, stall == 0 { requestsPerConnection = 12 }
    }
}

extension SimulatedServer {
    /// Looks whether it is time to leave no more room: after each request's headers.
    func starveIfDue() {
        guard let starvation, requests == starvation.requests else { return }
        isStarving = true
        simulation.note { "link \(self.link): the server leaves no more room" }
        guard case .streams = starvation.cause else { return }
        announce(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0)
    }

    /// What the used-up window of the connection cuts off is refused.
    func refuseWhatIsCut() {
        guard isStarving, connectionWindow <= 0 else { return }
        for stream in order where !(streams[stream]?.isWhole ?? true) {
            simulation.schedule(.refuse(stream: stream), link: link, after: faults.answerDelay)
        }
    }

    /// True where the client knows, or will soon, that not one request has room.
    var hasNoRoom: Bool {
        order.isEmpty && !isMute && !hasSaidGoAway && isStarving
            && (connectionWindow <= 0 || streamLimit == 0)
    }
}
