import Broadside
import CBroadsideNghttp2

/// Servers that are alive and respond to PING, but at some time have no more room for requests.
struct Starvation {
    enum Cause {
        /// The stream limit falls to zero.
        case streams
        /// The connection's window gets no more credit, and requests that it cuts off are refused.
        /// So no request is in flight whose response would make the server return credit.
        case window
    }

    let cause: Cause
    /// Chance that a connection has this fault.
    let chance: Double
    /// Number of requests after which it begins.
    let requests: Int

    /// Draws the fault of a process from its own generator, so that the seed's other draws stay the
    /// same; nil if no server has it.
    ///
    /// - Parameters:
    ///   - rows: Number of rows of the list. A connection carries enough requests for the campaign
    ///     to end.
    ///   - payloadCount: Minimum number of bytes that a request takes from the connection's window.
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
    /// - Parameter isAlone: Whether there are no other faults. Then there is no other reason to
    ///   give up.
    mutating func add(_ starvation: Starvation, isAlone: Bool) {
        if isAlone { self = .calm }
        self.starvation = starvation
    }

    mutating func add(_ limits: AnnouncedLimits) {
        self.limits = limits
        initialWindow = limits.initialWindow
        // Not if only few requests of a connection get a response: the simulation would take days.
        if limits.variesTables, resetStream < 0.5, stall == 0 { requestsPerConnection = 12 }
    }
}

extension SimulatedServer {
    /// After each request's headers: begins the fault if it is due.
    func starveIfDue() {
        guard let starvation, requests == starvation.requests else { return }
        isStarving = true
        simulation.note { "link \(self.link): the server leaves no more room" }
        guard case .streams = starvation.cause else { return }
        announce(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0)
    }

    /// Refuses requests that the used-up window of the connection cuts off.
    func refuseWhatIsCut() {
        guard isStarving, connectionWindow <= 0 else { return }
        for stream in order where !(streams[stream]?.isWhole ?? true) {
            simulation.schedule(.refuse(stream: stream), link: link, after: faults.answerDelay)
        }
    }

    /// Whether the client knows, or soon will, that no request has room.
    var hasNoRoom: Bool {
        order.isEmpty && !isMute && !hasSaidGoAway && isStarving
            && (connectionWindow <= 0 || streamLimit == 0)
    }
}
