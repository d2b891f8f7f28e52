import Broadside
import BroadsideSupport

/// A fault that waits for a condition, in some processes. Faults that rarely affect a row or a
/// connection in some condition occur at the first instant at which they can.
struct Ambush {
    let fault: Fault
    /// Condition of the row and of the connection. One of them is nil: any condition will do.
    let row: RowCondition?
    let connection: ConnectionCondition?
    /// Time since the process's start before which the fault does not occur.
    let delay: UInt64

    /// A chance above 0 shows the checks that a fault may occur. Below this value, it only occurs
    /// by an ambush.
    static let chance = 1e-14

    /// Weight of the faults in a random choice, and the conditions of which each fault gets one.
    private typealias Choices = (
        weight: Int, faults: [Fault], rows: [RowCondition], connections: [ConnectionCondition]
    )

    /// Combinations that occur without an ambush less than a thousand times in a million seeds.
    private static let rare: [Choices] = [
        (
            1, [.secondSignal, .writeFails, .kill, .powerCut], [.again],
            [.leaving, .blocked, .outage]
        ),
        (2, [.kill, .powerCut], [.resumed], []),
        (2, [.secondSignal, .claimed], [.resumed], []),
        (3, [.writeFails], [.resumed], []),
        (1, [.secondSignal, .writeFails, .syncFails], [], [.none]),
        (1, [.claimed], [.again], [.blocked, .outage]),
        (1, [.newRate], [.again, .resumed], [.blocked, .outage]),
        (1, [.freeze], [.again], [.outage]),
        (1, [.syncFails], [.none, .first, .again, .inParts], [.proven, .leaving]),
        (2, [.syncFails], [.again, .resumed, .resumed, .resumed], [.leaving, .blocked, .outage]),
        (1, [.silentName], [.again], [.leaving, .blocked, .outage]),
        (8, [.silentName], [.resumed], []),
        (1, [.silentName], [], [.blocked]),
        (1, [.secondResponse], [.again], [.leaving, .blocked, .outage]),
        (4, [.secondResponse], [.resumed], [.leaving]),
        (2, [.silence, .goAwayRaised], [.resumed], []),
        (1, [.silent, .goAwayAlways], [], [.blocked]),
        (1, [.violation, .silence, .stall], [], [.leaving]),
        (2, [.silent, .early], [], [.leaving]),
        (3, [.goAwayRaised], [.none], []),
        (1, [.expired, .tooManyTokens], [.resumed], [.leaving, .blocked, .outage]),
        (3, [.tooManyTokens], [.resumed], [.blocked]),
        (2, [.expired], [], [.blocked]),
        (6, [.listChanged], [.first, .resumed, .inParts], [.leaving]),
        (20, [.listChanged], [.again], []),
        (15, [.listChanged], [], [.blocked, .outage]),
    ]
    private static let ofGateways: [Choices] = [
        (3, [.gatewayJunk], [.resumed], [.blocked]),
        (1, [.gatewayHalf], [.resumed], [.proven, .blocked]),
    ]
    /// Additional weight of ambushes that wait for a row of an earlier process, because most
    /// processes have no such rows.
    private static let resumedWeight = 4

    /// Draws an ambush of a process from its own generator, so that the seed's other draws stay the
    /// same; nil for a quarter of them.
    ///
    /// - Parameter number: Number of the ambush among several of the process.
    private init?(seed: UInt64, process: Int, number: UInt64, isGateways: Bool) {
        var random = SimulationRandom(
            seed: seed ^ (0x616d_6275_7368_0001 + number) &+ UInt64(process) << 32)
        guard random.chance(0.75) else { return nil }
        var choices: [(Fault, RowCondition?, ConnectionCondition?)] = []
        for (weight, faults, rows, connections) in isGateways ? Self.ofGateways : Self.rare {
            for fault in faults {
                // A first process has no rows of an earlier process, and its list can't have
                // changed.
                if process == 0, fault == .listChanged { continue }
                for row in rows where row != .resumed || process > 0 {
                    let ofRow = row == .resumed ? Self.resumedWeight : 1
                    choices += Array(repeating: (fault, row, nil), count: weight * ofRow)
                }
                for connection in connections {
                    choices += Array(repeating: (fault, nil, connection), count: weight)
                }
            }
        }
        (fault, row, connection) = random.pick(choices)
        // Rows of an earlier process are sent first.
        delay =
            row == .resumed || connection == ConnectionCondition.none
            ? 0 : random.skewedDelay(second / 4)
    }
}

extension Ambush {
    private init(
        fault: Fault, row: RowCondition?, connection: ConnectionCondition?, delay: UInt64
    ) {
        self.fault = fault
        self.row = row
        self.connection = connection
        self.delay = delay
    }

    /// The ambushes of a process. Most processes have at least one.
    static func all(seed: UInt64, process: Int, isGateways: Bool) -> [Ambush] {
        let drawn = (0..<2).compactMap {
            Ambush(seed: seed, process: process, number: $0, isGateways: isGateways)
        }
        // It uses no random numbers, so that the other seeds stay the same.
        let isDisowned = seed / 23 % 32 == 9 && !isGateways
        return isDisowned
            ? drawn + [Ambush(fault: .goAwayAlways, row: nil, connection: .outage, delay: 0)]
            : drawn
    }
}

extension FaultPlan {
    /// Adds ambushes to the other faults, and raises chances so that the checks expect them.
    mutating func addAmbushes(seed: UInt64, process: Int, isGateways: Bool) {
        ambushes = Ambush.all(seed: seed, process: process, isGateways: isGateways)
        for ambush in ambushes { prepare(ambush, isGateways: isGateways) }
    }

    private mutating func prepare(_ ambush: Ambush, isGateways: Bool) {
        // Nothing must end the process before the ambush.
        death = 0
        deathStep = 0
        if ambush.fault != .secondSignal { signal = 0 }
        // Many connections get into the condition that the ambush waits for.
        switch ambush.connection {
        case .leaving:
            goAway = 0.9
            answerDelay = max(answerDelay, second / 2)
        case .blocked where isGateways: slowReading = 0.5
        case .blocked:
            sendBufferCount = min(sendBufferCount, 1000)
            if ambush.fault == .listChanged { slowReading = max(slowReading, 0.3) }
        case .outage: trouble = max(trouble, ambush.fault == .listChanged ? 0.4 : 0.1)
        case .new, .proven, .none?, nil: break
        }
        if ambush.row == .again { refused = max(refused, 0.2) }
        let next = Ambush.chance / 10
        // A gateway decides about a notification when it arrives, and a blocked connection gets
        // none. The fault must therefore be frequent there.
        let word = ambush.connection == .blocked ? 0.03 : next
        switch ambush.fault {
        case .silentName: silentNames = max(silentNames, next)
        case .secondResponse: duplicate = max(duplicate, next)
        case .violation: violation = max(violation, next)
        case .silence: silence = max(silence, next)
        case .silent: silentStream = max(silentStream, next)
        case .early: earlyAnswer = max(earlyAnswer, next)
        case .stall: stall = max(stall, next)
        case .goAwayAlways: goAway = max(goAway, next)
        case .goAwayRaised: goAway = 0.9
        // No token is so old. But the checks then expect such a response.
        case .expired: expiresTokensBefore = 1
        case .tooManyTokens: refusesTokensFrom = .max
        case .writeFails: diskFailure = max(diskFailure, next)
        case .syncFails:
            diskFailure = max(diskFailure, next)
            // A sync comes before the requests that it permits. Other requests must still be in
            // flight then.
            syncDelay = max(syncDelay, second / 5)
            answerDelay = max(answerDelay, second)
        case .listChanged:
            listChange = 1
            listDelay = max(listDelay, second)
        case .gatewayJunk: gateway.junk = max(gateway.junk, word)
        case .gatewayHalf: gateway.half = max(gateway.half, word)
        case .gatewayWordless: gateway.wordless = max(gateway.wordless, word)
        default: break
        }
    }
}

extension Simulation {
    /// Whether the fault has a pending ambush in the process.
    func awaits(_ fault: Fault) -> Bool { process.ambushes.contains { $0.fault == fault } }

    /// Whether the fault has a pending ambush whose condition is met on a link, or without a link.
    /// If so, the ambush is removed.
    ///
    /// - Parameter row: The row to check; nil: any row in flight on the link.
    func springs(_ fault: Fault, link id: Int?, row: Int? = nil) -> Bool {
        guard !process.ambushes.isEmpty, process.calmSince == nil else { return false }
        let index = process.ambushes.firstIndex {
            $0.fault == fault && clock - process.startedAt >= $0.delay
                && isMet($0, link: id, row: row)
        }
        guard let index else { return false }
        process.ambushes.remove(at: index)
        note {
            "what has been waiting for it happens: \(fault), \(id.map { "link \($0)" } ?? "no link")"
        }
        return true
    }

    /// Whether an ambush of a process occurred.
    func hasSprung(_ process: SimulatedProcess) -> Bool {
        process.ambushes.count < process.faults.ambushes.count
    }

    private func isMet(_ ambush: Ambush, link id: Int?, row: Int?) -> Bool {
        guard let id else { return ambush.connection == ConnectionCondition.none }
        guard links[id].isOpenAtClient else { return false }
        if let connection = ambush.connection, condition(of: id) != connection { return false }
        guard let wanted = ambush.row else { return true }
        if let row { return condition(ofRow: row, isWhole: true) == wanted }
        return rowConditions(of: id).contains(wanted)
    }

    /// The same for any link of the process.
    func springs(_ fault: Fault) -> Bool {
        var hasLink = false
        for reactor in process.reactors {
            for id in reactor.linkOfSlot.values.sorted() where links[id].isOpenAtClient {
                if springs(fault, link: id) { return true }
                hasLink = true
            }
        }
        return !hasLink && springs(fault, link: nil)
    }

    /// After an event: triggers all ambushes whose condition is met.
    func springAmbushes() {
        for ambush in process.ambushes where !process.isOver { spring(ambush) }
    }

    private func spring(_ ambush: Ambush) {
        switch ambush.fault {
        case .secondSignal:
            guard springs(.secondSignal) else { return }
            let isSecond = process.coordinator.isStopping
            handle(.signal(epoch: process.epoch, isSecond: isSecond), at: clock)
            if !isSecond { process.ambushes.append(ambush) }
        case .newRate:
            guard springs(.newRate) else { return }
            handle(.rate(epoch: process.epoch, [20, 500, nil][Int(ambush.delay % 3)]), at: clock)
        case .freeze:
            guard springs(.freeze) else { return }
            handle(.freeze(epoch: process.epoch, (1 + ambush.delay % 40) * second), at: clock)
        case .claimed:
            guard !plan.hasSenders, springs(.claimed) else { return }
            handle(.claim(epoch: process.epoch), at: clock)
        case .writeFails:
            guard let reactor = process.reactors.first(where: { $0.pendingWrite != nil }),
                springs(.writeFails)
            else { return }
            writeDone(reactor, fails: true)
        case .syncFails:
            guard let reactor = process.reactors.first(where: { $0.pendingSync != nil }),
                springs(.syncFails)
            else { return }
            syncDone(reactor, fails: true)
        case .kill, .powerCut:
            guard springs(ambush.fault) else { return }
            die(isPowerCut: ambush.fault == .powerCut)
        case .listChanged:
            guard !process.untoldChanges.isEmpty, springs(.listChanged) else { return }
            tellChanges()
        case .secondResponse: spring(.answerTwice, by: ambush, where: \.canMisbehave)
        case .violation: spring(.violate, by: ambush, where: \.canMisbehave)
        case .silence: spring(.fallSilent, by: ambush, where: \.canMisbehave)
        case .stall: spring(.stall(ambush.delay * 100), by: ambush, where: \.canMisbehave)
        case .goAwayAlways: spring(.disown, by: ambush) { !$0.isMute && !$0.hasSaidGoAway }
        case .goAwayRaised: spring(.raiseGoAway, by: ambush) { !$0.isMute && $0.namedLast > 0 }
        case .early:
            guard let (id, stream) = springsEarly(ambush) else { return }
            handle(.server(link: id, .answer(stream: stream)), at: clock)
        default: break
        }
    }

    private func spring(
        _ act: ServerAct, by ambush: Ambush, where canAct: (SimulatedServer) -> Bool
    ) {
        for reactor in process.reactors {
            for id in reactor.linkOfSlot.values.sorted() {
                guard let server = servers[id], canAct(server), springs(ambush.fault, link: id)
                else { continue }
                handle(.server(link: id, act), at: clock)
                return
            }
        }
    }

    /// Finds an incomplete request that gets a response now.
    private func springsEarly(_ ambush: Ambush) -> (link: Int, stream: Int32)? {
        for reactor in process.reactors {
            for id in reactor.linkOfSlot.values.sorted() {
                guard let server = servers[id], let stream = server.unfinishedStream,
                    springs(.early, link: id)
                else { continue }
                server.answersEarly(stream)
                return (id, stream)
            }
        }
        return nil
    }
}

extension SimulatedServer {
    /// Whether the server can still send bytes, and can send a second response.
    fileprivate var canMisbehave: Bool { !isMute && lastAnswered != nil }

    /// A request that has arrived in part, and that would get an ordinary response.
    fileprivate var unfinishedStream: Int32? {
        guard !isMute else { return nil }
        return order.first { stream in
            guard let state = streams[stream], !state.isWhole, !state.isAnswered,
                case .answer = state.fate
            else { return false }
            return true
        }
    }

    fileprivate func answersEarly(_ stream: Int32) {
        let answer = FaultPlan.earlyAnswer
        streams[stream]?.fate = .earlyAnswer(answer)
        streams[stream]?.answer = answer
    }

    /// Replaces or omits a response that is due, if an ambush waits for that.
    func ambush(_ stream: Int32) {
        guard let state = streams[stream], !state.isAnswered, case .answer = state.fate,
            let copy = state.copy.map({ simulation.journal.copies[$0] })
        else { return }
        if simulation.springs(.silent, link: link, row: copy.row) {
            streams[stream]?.fate = .silence
            streams[stream]?.answer = nil
            cover(.silent, stream)
        } else if copy.tokenIssued != nil {
            if simulation.springs(.expired, link: link, row: copy.row) {
                streams[stream]?.answer = FaultPlan.expiredToken
            } else if simulation.springs(.tooManyTokens, link: link, row: copy.row) {
                streams[stream]?.answer = FaultPlan.tooManyTokens
            }
        }
    }
}
