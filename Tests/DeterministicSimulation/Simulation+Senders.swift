import Broadside
import BroadsideRows
import BroadsideSupport

// Several senders of one campaign. During each process except the last few, a newer attempt claims
// the ledger at a random time and runs in parallel with the older process, which is frozen at that
// time or not. They share only the servers and the ledger. Now and then, an attempt starts from an
// old copy of the ledger; its claim must be refused.

/// Claims on the simulation's ledger and on copies of it, by the rule of
/// docs/decisions/0012-a-ledger-belongs-to-one-attempt.md. An attempt's number is one more than the
/// newest number that its copy of the ledger has. Only one attempt gets each number, over all
/// copies.
struct SimulatedClaims {
    /// Number of the newest claim beside the ledger.
    private(set) var newest = 0
    /// Number that each attempt recorded in the ledger. A copy that is made at that time has the
    /// same number.
    private(set) var records: [Int] = []

    /// Claims the ledger for the next attempt, from a copy of the ledger.
    ///
    /// - Parameter record: Number of the last claim that the copy has.
    /// - Returns: Whether the attempt may continue.
    mutating func claim(record: Int) -> Bool {
        guard record >= newest else { return false }
        newest = record + 1
        records.append(newest)
        return true
    }
}

extension SimulationPlan {
    /// Maximum number of attempts that lose the ledger to a newer attempt while they run.
    var claimsMost: Int {
        guard hasSenders else { return 0 }
        var random = SimulationRandom(seed: seed ^ 0x7365_6e64_6572_0001)
        return max(faultPlans.count, random.between(1...4))
    }
}

extension Simulation {
    /// Claims the ledger for a new attempt. Sometimes, an attempt from an old copy of the ledger
    /// comes before it.
    func claimAttempt(epoch: Int) {
        guard plan.hasSenders else { return }
        var random = SimulationRandom(
            seed: plan.seed ^ 0x7374_616c_6563_0001 &+ UInt64(epoch) << 32)
        if epoch > 2, random.chance(0.5) {
            let record = claims.records[random.below(epoch - 2)]
            staleStarts += 1
            cover(.staleCopy)
            if claims.claim(record: record) {
                fail("a copy of the ledger as of attempt \(record) is continued")
            }
        }
        if !claims.claim(record: claims.newest) { fail("the ledger's own claim is refused") }
    }

    /// Schedules the time at which a newer attempt claims the ledger: a time, or an event of the
    /// process.
    func scheduleClaim(epoch: Int) {
        guard epoch <= plan.claimsMost else { return }
        let freeze = random.pick([0, 0, 1500, 15_000]) * millisecond
        if random.chance(0.85) {
            process.claimStep = random.between(1...random.pick([10, 60, 400]))
            return
        }
        let at = clock + random.skewedDelay(2 * process.faults.life)
        if freeze > 0 { events.insert(.freeze(epoch: epoch, freeze), at: at) }
        events.insert(.claim(epoch: epoch), at: at + random.delay(freeze))
    }

    /// Begins the newer attempt while the older process continues to run, or is frozen.
    func beginNewer() {
        endCanary(of: process)
        let before = process!
        // A process whose ledger is claimed at an event may be frozen from then on.
        if before.claimStep == before.steps, random.chance(0.5) {
            let freeze = random.pick([1500, 15_000]) * millisecond
            before.frozenUntil = max(before.frozenUntil, clock + freeze)
            before.takesFrom = before.frozenUntil + random.delay(300 * millisecond)
        }
        older.append(before)
        overlaps += 1
        cover(.overlap)
        _ = begin(epoch: before.epoch + 1)
    }

    /// The process to which an event belongs; the newest process if that one has ended.
    func owner(of event: SimulationEvent) -> SimulatedProcess {
        func process(_ epoch: Int) -> SimulatedProcess {
            older.first { $0.epoch == epoch } ?? self.process
        }
        switch event {
        case .turn(let index, let ticket):
            return older.first { $0.reactors[index].turnTicket == ticket } ?? self.process
        case .connected(let link, _), .sendDone(let link), .bytesToServer(let link, _, _),
            .endToServer(let link), .bytesToClient(let link, _), .endToClient(let link, _),
            .closed(let link), .server(let link, _), .gatewaySpeaks(let link),
            .gatewayLeaves(let link):
            return process(links[link].epoch)
        case .deliver(_, let epoch, _), .writeDone(_, let epoch), .syncDone(_, let epoch),
            .readChunk(_, let epoch, _), .changesTold(let epoch),
            .signal(let epoch, _), .freeze(let epoch, _), .claim(let epoch), .rate(let epoch, _),
            .growth(let epoch, _, _), .renewal(let epoch), .reload(let epoch), .pause(let epoch, _),
            .calm(let epoch), .quiet(let epoch), .death(let epoch, _):
            return process(epoch)
        }
    }

    /// Checks older processes that have ended. They must not have changed anything that the newer
    /// process relies on.
    func endOlder() {
        let newest = process!
        for ended in older where ended.isOver {
            process = ended
            note { "process \(ended.epoch), which is superseded, ends: \(leftOver)" }
            lives[ended.epoch - 1].end = now.wallMilliseconds
            for index in ownLinkIndices { abandon(link: index) }
            checkSuperseded(ended)
            checkPace(ended)
            checkConnectionPace(ended)
            ended.reactors.removeAll()
        }
        older.removeAll { $0.reactors.isEmpty }
        process = newest
    }
}
