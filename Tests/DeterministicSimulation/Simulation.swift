import Broadside
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// A simulation in which one seed decides everything: time, network, disk, names, servers, deaths.
///
///     reactors --submissions--> network, disk, list --events--> queue --completions--> reactors
///                                  |      ^
///                                  v      |
///               servers (nghttp2), legacy gateways --> journal <-- checked against --> ledger
///
/// Nothing here uses a real clock or anything outside the simulation. A seed that fails once always
/// fails.
public final class Simulation {
    let plan: SimulationPlan
    var random: SimulationRandom
    var events = TimerQueue()
    /// Virtual nanoseconds since the machine was started.
    var clock: UInt64 = 1000 * second
    var trace: Trace
    var links: [Link] = []
    var servers: [SimulatedServer?] = []
    var gateways: [SimulatedGateway?] = []
    var taps: [FrameTap] = []
    var segments: [[SimulatedSegment]] = []
    var manifestLengths: [UInt32: [SegmentLength]] = [:]
    var journal: Journal
    /// Row of each token, for notifications, which only have the token.
    let rowOfToken: [[UInt8]: Int]
    /// The current process.
    var process: SimulatedProcess!
    /// Older processes whose ledger it claimed, and that still run.
    var older: [SimulatedProcess] = []
    /// Number of attempts that began while an older one ran, and of starts from old copies.
    var overlaps = 0
    var staleStarts = 0
    var claims = SimulatedClaims()
    var story: WaveStory
    /// Time by which the processes that run now must have ended.
    private(set) var lifeEnd: UInt64 = 0
    /// States of the rows when a process last ended in an orderly way.
    var finalStates: [RowState]?
    /// For each row: whether a process found it in doubt. It may never have been sent.
    var wasInDoubt: [Bool]
    /// The requests for each row, as the clients' bytes show them.
    var requestsOfRow: [[SentRequest]] = []
    var tickets = 0
    /// Whether a reactor runs an iteration within another reactor's iteration.
    var isInterleaving = false
    /// Time at which the data that a reactor receives now arrived, if the process was frozen since.
    var arrival: UInt64?
    /// All processes so far.
    var lives: [ProcessLife] = []
    /// Whether the manifest has the canary as passed, and whether the operator has switched it off.
    var hasCanaryPassed = false
    var isCanaryGivenUp = false
    /// Whether a canary passed, recorded or not.
    var hasCanaryEverPassed = false
    /// Whether the operator has switched `--max-invalid` off.
    var isInvalidGivenUp = false
    /// Number of iterations that found a reactor with more connections than at its start.
    var grownTurns = 0
    var coverage = Coverage()
    var steps = 0
    /// The first invariant that was violated.
    private(set) var failure: String?

    /// Wall time at the clock's zero, milliseconds; set before the first process begins.
    var wallStart: UInt64 = 0
    /// Number of steps without a settled row after which a run counts as endless. If APNs accepts
    /// no new provider token, all rows are tried again every second for 20 minutes.
    private var stepLimit: Int { process.faults.refusesTokensFrom > 0 ? 12_000_000 : 3_000_000 }
    /// Nanoseconds within which a process must end. If each connection is closed after a few
    /// requests, or after one, and loses them, its address is left alone for up to 75 s each time.
    /// A row may take as long if only one is in flight at a time and it is reset repeatedly.
    var lifeLimit: UInt64 {
        let faults = process.faults
        let isSlow = faults.requestsPerConnection > 0 || faults.resetStream > 0.5
        let rows = isSlow ? plan.list.tokens.count : 0
        return max(4 * 3600, UInt64(rows) * 75) * second + windowTime
    }

    init(plan: SimulationPlan, telling: Telling) {
        self.plan = plan
        random = plan.random
        story = WaveStory(seed: plan.seed)
        rowOfToken = plan.gateway == nil ? [:] : plan.list.rowOfToken
        trace = Trace(telling)
        wasInDoubt = Array(repeating: false, count: plan.list.tokens.count)
        journal = Journal(rowCount: plan.list.tokens.count)
        setClock(tokenAge: plan.tokenAge)
    }

    var now: Now {
        Now(nanoseconds: clock, wallMilliseconds: wallStart + clock / millisecond)
    }

    /// Records a violated invariant. Only the first one counts.
    func fail(_ message: String) {
        guard failure == nil else { return }
        failure = "at \(seconds(clock)): \(message)"
        note { "FAILED: \(message)" }
    }

    /// Adds a line to the trace, if the trace is written.
    func note(_ text: () -> String) {
        if trace.isTelling { trace.tell("\(seconds(clock)) \(text())") }
    }

    private func seconds(_ time: UInt64) -> String {
        let micros = (time - 1000 * second) / 1000
        let fraction = String(micros % 1_000_000)
        return "\(micros / 1_000_000)." + String(repeating: "0", count: 6 - fraction.count)
            + fraction
    }

    func schedule(_ act: ServerAct, link: Int, after delay: UInt64) {
        events.insert(.server(link: link, act), at: clock + delay)
    }

    // MARK: Lives

    /// Runs all processes until the campaign is complete.
    func run() {
        var epoch = 0
        while failure == nil {
            epoch += 1
            guard begin(epoch: epoch) else { return }
            live()
            guard failure == nil else { return }
            end()
            guard failure == nil else { return }
            if isComplete { return }
            epoch = process.epoch
            if epoch > plan.faultPlans.count + plan.claimsMost + 4 + plan.passesMost {
                fail("the campaign does not end although all is calm: \(leftOver)")
            }
        }
    }

    func begin(epoch: Int) -> Bool {
        claimAttempt(epoch: epoch)
        let faults = plan.faults(epoch: epoch)
        let isCalm = epoch > plan.faultPlans.count
        // A process reopens the same states in all its passes.
        story.isLaterPass = story.continuing != nil
        story.wasReached = story.isLaterPass && hasReached
        if !story.isLaterPass {
            story.reopens = isCalm && plan.onLost == .resend ? [.failed, .unknown] : []
            story.firstPass = UInt32(epoch)
        }
        let reopens = story.reopens
        let passes: RunPasses?
        do {
            passes = try awaitWave(epoch: epoch, reopens: reopens)
        } catch {
            fail("the waves can't be planned: \(error)")
            return false
        }
        var faultsNow = faults
        if plan.gateway != nil {
            // A gateway does not use provider tokens.
        } else if faults.hostility?.kind == .wrongClock {
            // Other seeds cover tokens that are too old or too new.
        } else if !isCalm, random.chance(0.25) {
            let seconds = now.wallMilliseconds / 1000
            faultsNow.expiresTokensBefore = seconds - seconds % 1800
        } else if !isCalm, random.chance(0.3), plan.list.tokens.count <= 300, plan.waves == nil {
            // All rows are tried for 20 minutes, so there must be few rows, and a token that is
            // soon made.
            if epoch == 1 { setClock(tokenAge: 2099) }
            faultsNow.refusesTokensFrom = now.wallMilliseconds / 1000 - 300 + 1
        }
        if !story.isLaterPass { story.reopenedAt = now.wallMilliseconds }
        noteWaiting(passes, epoch: epoch)
        guard
            let process = makeProcess(
                epoch: epoch, faults: faultsNow, reopens: reopens, due: dueRows(passes),
                random: &random)
        else { return false }
        self.process = process
        beginPass(passes, of: process)
        process.rates = [(0, plan.rate)]
        lives.append(
            ProcessLife(epoch: epoch, start: now.wallMilliseconds, end: .max))
        scheduleGrowth(epoch: epoch)
        note { "process \(epoch) begins, \(isCalm ? "calm" : "stormy"): \(faultsNow)" }
        for reactor in process.reactors { wake(reactor, at: clock + random.delay(millisecond)) }
        lifeEnd = max(lifeEnd, clock + lifeLimit)
        if plan.hasSenders { scheduleClaim(epoch: epoch) }
        guard !isCalm else {
            process.calmSince = clock
            return true
        }
        scheduleCalm(epoch: epoch)
        schedulePauses(epoch: epoch)
        if random.chance(faults.signal) {
            let at = clock + random.delay(faults.life)
            events.insert(.signal(epoch: epoch, isSecond: false), at: at)
            if random.chance(faults.secondSignal) {
                events.insert(
                    .signal(epoch: epoch, isSecond: true), at: at + random.skewedDelay(4 * second))
            }
        }
        if random.chance(faults.rateChange) {
            let rate: UInt64? = random.pick([20, 500, 10_000, nil])
            events.insert(
                .rate(epoch: epoch, rate), at: clock + random.skewedDelay(faults.life))
        }
        for _ in 0..<faults.reloads {
            events.insert(
                .reload(epoch: epoch), at: clock + random.skewedDelay(2 * faults.life))
        }
        for _ in 0..<faults.freezes {
            let duration = random.pick([1500, 5000, 15_000, 45_000, 90_000]) * millisecond
            events.insert(
                .freeze(epoch: epoch, duration), at: clock + random.skewedDelay(2 * faults.life))
        }
        if !plan.hasSenders, let freeze = plan.claimedWithin(epoch: epoch) {
            let at = clock + random.skewedDelay(2 * faults.life)
            if freeze > 0 { events.insert(.freeze(epoch: epoch, freeze), at: at) }
            events.insert(.claim(epoch: epoch), at: at + random.delay(freeze))
        }
        if random.chance(faults.death) {
            events.insert(
                .death(epoch: epoch, isPowerCut: random.chance(faults.powerCut)),
                at: clock + random.skewedDelay(faults.life))
        }
        return true
    }

    private func live() {
        while failure == nil, !process.isOver || !older.isEmpty {
            guard let (time, event) = events.popFirst() else {
                fail("nothing will ever happen again")
                return
            }
            clock = max(clock, time)
            steps += 1
            if steps & 0xffff == 0 { checkProgress() }
            if steps & 0x1f == 0 { checkEnd() }
            if steps & 0xff == 0 {
                noteSettled()
                checkLiveness()
            }
            let newest = process!
            if !older.isEmpty { process = owner(of: event) }
            // While an older process runs, the newest one may already be dead.
            if !process.hasDied || older.isEmpty || !event.isOfLiving { handle(event, at: time) }
            process.steps += 1
            springAmbushes()
            if process.steps == process.current.deathStep, !process.isOver {
                die(isPowerCut: random.chance(process.faults.powerCut))
            }
            if process.steps == process.claimStep, !process.isOver { claim() }
            // A claim may have begun a newer process.
            if process.epoch < newest.epoch { process = newest }
            if process.hasDied, !older.isEmpty {
                for index in ownLinkIndices { abandon(link: index) }
            }
            if !older.isEmpty { endOlder() }
        }
    }

    private func checkProgress() {
        let settled = process.reactors.reduce(UInt64(0)) {
            $0 + $1.machine.snapshot().counts.settled
        }
        if settled != process.progress.settled || process.progress.step == 0 {
            process.progress = (settled, steps)
        }
        if steps - process.progress.step > stepLimit {
            fail("no row is settled within \(stepLimit) steps: \(leftOver)")
        }
    }

    private func end() {
        let process = self.process!
        note { "process \(process.epoch) \(process.hasDied ? "is dead" : "ends"): \(leftOver)" }
        lives[process.epoch - 1].end = now.wallMilliseconds
        for index in links.indices where links[index].epoch == process.epoch {
            abandon(link: index)
        }
        if process.claimedAt != nil { handOver(process) }
        checkPace(process)
        checkConnectionPace(process)
        if !process.hasDied {
            checkRowsAtEnd(of: process)
            checkPartAtEnd(of: process)
        }
        endCanary(of: process)
        if !process.hasDied { checkEnd(of: process) }
        endPass(of: process)
        process.reactors.removeAll()
        clock += random.skewedDelay(60 * second)
    }

    var leftOver: String {
        guard let process else { return "no process" }
        return process.reactors.map { reactor in
            let statistics = reactor.machine.snapshot()
            return "reactor \(reactor.index): \(statistics.counts.settled) settled, "
                + "\(statistics.inFlight) in flight, done \(reactor.isDone), time went to "
                + "\(statistics.limited.map { $0 / second })"
        }.joined(separator: "; ") + "; stop \(String(describing: process.coordinator.stopCause))"
            + "; trouble \(process.coordinator.lastTrouble?.message ?? "none")"
    }
}
