import Broadside
import Support

/// A fault that waits for its victim, in some processes: what seldom meets a row or a connection in some
/// condition comes at the first instant at which it can.
struct Ambush {
    let fault: Fault
    /// One of both is nil: any will do.
    let row: RowCondition?
    let connection: ConnectionCondition?
    /// Not before so long after the process' start.
    let delay: UInt64

    /// Below this chance, which tells judges what there may be, nothing happens but by an ambush.
    static let chance = 1e-14

    private typealias Choices = (
        faults: [Fault], rows: [RowCondition], connections: [ConnectionCondition]
    )

    /// What without an ambush happens less than a thousand times in a million seeds.
    private static let rare: [Choices] = [
        ([.secondSignal, .writeFails], [.again, .resumed], [.leaving, .blocked, .outage]),
        ([.claimed, .newRate], [.again, .resumed], [.blocked, .outage]),
        (
            [.syncFails], [.none, .first, .again, .again, .resumed, .inParts],
            [.proven, .leaving, .blocked, .blocked, .outage]
        ),
        ([.silentName], [.again, .resumed], [.leaving, .blocked, .blocked, .outage]),
        ([.secondResponse], [.again, .resumed], [.leaving, .leaving, .blocked]),
        ([.violation, .silence, .silent, .silent], [], [.leaving]),
        ([.expired, .tooManyTokens], [.resumed], [.outage]),
        ([.listChanged, .listChanged], [.again, .resumed], [.leaving, .blocked, .outage]),
    ]
    private static let ofGateways: [Choices] = [
        (
            [.gatewayJunk, .gatewayHalf, .gatewayWordless], [.resumed],
            [.proven, .blocked, .blocked]
        )
    ]
    /// How much more often one of them is drawn that waits for a row of an earlier process: most processes have
    /// none.
    private static let resumedWeight = 4

    /// What a seed draws for one of its processes, of a generator of its own, so that its other draws
    /// stay what they are; nil for most.
    init?(seed: UInt64, process: Int, isGateways: Bool) {
        var random = SimulationRandom(
            seed: seed ^ 0x616d_6275_7368_0001 &+ UInt64(process) << 32)
        guard random.chance(0.5) else { return nil }
        var choices: [(Fault, RowCondition?, ConnectionCondition?)] = []
        for (faults, rows, connections) in isGateways ? Self.ofGateways : Self.rare {
            for fault in faults {
                // A first process has no rows of an earlier one, and its list is what it is.
                if process == 0, fault == .listChanged { continue }
                for row in rows where row != .resumed || process > 0 {
                    let weight = row == .resumed ? Self.resumedWeight : 1
                    choices += Array(repeating: (fault, row, nil), count: weight)
                }
                choices += connections.map { (fault, nil, $0) }
            }
        }
        (fault, row, connection) = random.pick(choices)
        // Rows of an earlier process come first.
        delay = row == .resumed ? 0 : random.skewedDelay(second / 4)
    }
}

extension FaultPlan {
    /// - Parameter ambush: What happens beside all else; the judges look at what there may be.
    mutating func add(_ ambush: Ambush, isGateways: Bool) {
        self.ambush = ambush
        // Nothing ends the process before.
        death = 0
        deathStep = 0
        signal = 0
        // What it waits for comes to many.
        switch ambush.connection {
        case .leaving:
            goAway = 0.9
            answerDelay = max(answerDelay, second / 2)
        case .blocked where isGateways: slowReading = 0.5
        case .blocked: sendBufferCount = min(sendBufferCount, 1000)
        case .outage: trouble = max(trouble, 0.1)
        case .new, .proven, .none?, nil: break
        }
        if ambush.row == .again { refused = max(refused, 0.1) }
        let next = Ambush.chance / 10
        // A gateway decides when a notification comes in, which never meets a connection that waits: there
        // the word has to be frequent.
        let word = ambush.connection == .blocked ? 0.03 : next
        switch ambush.fault {
        case .silentName: silentNames = max(silentNames, next)
        case .secondResponse: duplicate = max(duplicate, next)
        case .violation: violation = max(violation, next)
        case .silence: silence = max(silence, next)
        case .silent: silentStream = max(silentStream, next)
        case .writeFails, .syncFails: diskFailure = max(diskFailure, next)
        case .listChanged:
            listChange = 1
            listDelay = 2 * second
        case .gatewayJunk: gateway.junk = max(gateway.junk, word)
        case .gatewayHalf: gateway.half = max(gateway.half, word)
        case .gatewayWordless: gateway.wordless = max(gateway.wordless, word)
        default: break
        }
    }
}

extension Simulation {
    /// Whether the process' ambush is one by that fault, and its time has come on a link; it is over then.
    ///
    /// - Parameter row: The row that is in question; nil: any in flight on the link.
    func springs(_ fault: Fault, link id: Int, row: Int? = nil) -> Bool {
        guard let ambush = process.ambush, ambush.fault == fault, process.calmSince == nil,
            clock - process.startedAt >= ambush.delay, isMet(ambush, link: id, row: row)
        else { return false }
        process.ambush = nil
        return true
    }

    /// Whether what waited for its victim in a process found it.
    func hasSprung(_ process: SimulatedProcess) -> Bool {
        process.faults.ambush != nil && process.ambush == nil
    }

    private func isMet(_ ambush: Ambush, link id: Int, row: Int?) -> Bool {
        guard links[id].isOpenAtClient else { return false }
        if let connection = ambush.connection, condition(of: id) != connection { return false }
        guard let wanted = ambush.row else { return true }
        if let row { return condition(ofRow: row, isWhole: true) == wanted }
        return rowConditions(of: id).contains(wanted)
    }

    /// The same of the process' links; the first that meets it.
    func springs(_ fault: Fault) -> Int? {
        for reactor in process.reactors {
            for id in reactor.linkOfSlot.values.sorted() where springs(fault, link: id) {
                return id
            }
        }
        return nil
    }

    /// After an event: lets happen what has been waiting for its victim.
    func springAmbush() {
        guard let ambush = process.ambush, !process.isOver else { return }
        switch ambush.fault {
        case .secondSignal:
            guard springs(.secondSignal) != nil else { return }
            let isSecond = process.coordinator.isStopping
            handle(.signal(epoch: process.epoch, isSecond: isSecond), at: clock)
            if !isSecond { process.ambush = ambush }
        case .newRate:
            guard springs(.newRate) != nil else { return }
            handle(.rate(epoch: process.epoch, [20, 500, nil][Int(ambush.delay % 3)]), at: clock)
        case .claimed:
            guard !plan.hasSenders, springs(.claimed) != nil else { return }
            handle(.claim(epoch: process.epoch), at: clock)
        case .writeFails:
            guard let reactor = process.reactors.first(where: { $0.pendingWrite != nil }),
                springs(.writeFails) != nil
            else { return }
            writeDone(reactor, fails: true)
        case .syncFails:
            guard let reactor = process.reactors.first(where: { $0.pendingSync != nil }),
                springs(.syncFails) != nil
            else { return }
            syncDone(reactor, fails: true)
        case .secondResponse: spring(.answerTwice, by: ambush)
        case .violation: spring(.violate, by: ambush)
        case .silence: spring(.fallSilent, by: ambush)
        default: break
        }
    }

    private func spring(_ act: ServerAct, by ambush: Ambush) {
        guard let id = springs(ambush.fault) else { return }
        guard let server = servers[id], server.canMisbehave else {
            process.ambush = ambush
            return
        }
        handle(.server(link: id, act), at: clock)
    }
}

extension SimulatedServer {
    /// Whether a wrong word from it is one, and a second response possible.
    fileprivate var canMisbehave: Bool { !isMute && lastAnswered != nil }
}
