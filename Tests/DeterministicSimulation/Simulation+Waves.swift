import Broadside
import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideObservability
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

// Rows that are sent at their local time. A process waits for a wave, sends its rows, and waits for
// the next wave. Each wave is a run in the ledger, and one of the simulation's processes. A waiting
// process may be killed, and start again before the wave's time or long after it. The machine may
// also sleep when the wave is due.

/// Counts about waves.
public struct WaveCounts: Sendable, Equatable {
    /// Number of passes over the list.
    public internal(set) var passes = 0
    /// Number of waits for a wave.
    public internal(set) var waits = 0
    /// Number of waits during which the process was killed.
    public internal(set) var endedWaits = 0
    /// Number of those waits whose wave was due before the next process started.
    public internal(set) var missedWaits = 0
    /// Number of waits during which the machine slept beyond the wave's time.
    public internal(set) var sleptWaits = 0
    /// Number of passes that ended because of quiet hours.
    public internal(set) var quietEnds = 0
    /// Number of passes that ended for this reason before their first request.
    public internal(set) var quietStarts = 0
    /// Number of rows whose time had passed at the first start, and that are not sent.
    public internal(set) var lateRows = 0
    /// Number of zones whose clock changes.
    public internal(set) var changedZones = 0
    /// Number of all zones.
    public internal(set) var zones = 0

    /// Creates counts of zero.
    public init() {}

    /// Adds the counts of another simulation.
    public mutating func add(_ other: WaveCounts) {
        passes += other.passes
        waits += other.waits
        endedWaits += other.endedWaits
        missedWaits += other.missedWaits
        sleptWaits += other.sleptWaits
        quietEnds += other.quietEnds
        quietStarts += other.quietStarts
        lateRows += other.lateRows
        changedZones += other.changedZones
        zones += other.zones
    }

    /// The counts in words.
    public var text: String {
        "\(passes) passes, \(waits) waits: \(endedWaits) ended with the process, \(missedWaits) of them "
            + "over the wave's time, \(sleptWaits) slept through; \(quietEnds) passes ended by quiet hours, "
            + "\(quietStarts) before they began; \(lateRows) rows too late; clocks change in "
            + "\(changedZones) of \(zones) zones"
    }
}

/// State of the waves in a simulation.
struct WaveStory {
    /// Start of the campaign, milliseconds since 1970.
    var startedAt: UInt64 = 0
    var zones: RowZones?
    /// Time of each zone's rows by the rules, without and with quiet hours; nil: the rows are not
    /// sent.
    var bases: [UInt64?] = []
    var firsts: [UInt64?] = []
    /// Passes of a process that continues with its next pass; nil: the next process is a new one.
    var continuing: RunPasses?
    /// Whether the process that begins now is a later pass of another one.
    var isLaterPass = false
    /// Whether a connection may have been ready to send in an earlier pass of the process.
    var wasReached = false
    /// First pass of the process, the states that it reopens, and its start, milliseconds since
    /// 1970.
    var firstPass: UInt32 = 1
    var reopens: ReopenedStates = []
    var reopenedAt: UInt64 = 0
    /// Time of the latest TooManyProviderTokenUpdates in earlier passes of the process.
    var updatesRefusedAt: UInt64?
    /// Number of rows of the list, once a process has read all of it.
    var rowCount: UInt64?
    /// Times during which processes waited since the last read of the ledger, milliseconds since
    /// 1970.
    var waits: [(from: UInt64, to: UInt64)] = []
    /// For each process: whether it must leave the rows of each zone to a later process.
    var waitingZones: [[Bool]] = []
    var counts = WaveCounts()
    /// Generator for the events of processes that wait.
    var random: SimulationRandom

    init(seed: UInt64) { random = SimulationRandom(seed: seed ^ 0x7761_6974_696e_6701) }
}

extension Simulation {
    // MARK: What the engine makes of it

    /// Waits for the next wave, in the same way as the command.
    ///
    /// - Returns: Passes of the process that begins now; nil if there are no waves.
    func awaitWave(epoch: Int, reopens: ReopenedStates) throws -> RunPasses? {
        guard let waves = plan.waves else { return nil }
        if epoch == 1 { try beginWaves(waves) }
        var endings = epoch <= plan.faultPlans.count ? 3 : 0
        while true {
            let passes = try story.continuing ?? makePasses(waves, reopens: reopens)
            story.continuing = nil
            // Another attempt begins while an older process runs. It reads the ledger at once.
            guard older.isEmpty else { return passes }
            if passes.dueAt > now.wallMilliseconds {
                story.counts.waits += 1
                if endings > 0, story.random.chance(0.3) {
                    endings -= 1
                    endWait(until: passes.dueAt)
                    continue
                }
                sleep(until: passes.dueAt)
            }
            guard let quiet = passes.quietAt, quiet <= now.wallMilliseconds else { return passes }
            note { "the process wakes in quiet hours" }
            story.counts.quietStarts += 1
            passes.endEarly(for: .quietHours)
            guard goOn(passes) else {
                fail("the process does not wait for the end of quiet hours")
                return passes
            }
        }
    }

    private func beginWaves(_ waves: ScriptedWaves) throws {
        story.startedAt = now.wallMilliseconds
        story.zones = try waves.rowZones(of: plan)
        story.bases = waves.zones.indices.map { waves.base($0, startedAt: story.startedAt) }
        story.firsts = waves.zones.indices.map { zone in
            story.bases[zone].map { waves.endOfQuiet(zone, from: $0) }
        }
        story.counts.zones = waves.zones.count
        story.counts.changedZones = waves.zones.count { !$0.changes.isEmpty }
        note {
            "waves: at \(waves.deliverAt as Any), on \(waves.date as Any), late \(waves.late), quiet "
                + "\(waves.quiet as Any), zones \(waves.zones), start \(story.startedAt)"
        }
    }

    /// The passes of a new process.
    private func makePasses(
        _ waves: ScriptedWaves, reopens: ReopenedStates
    ) throws -> RunPasses {
        guard let zones = story.zones else { preconditionFailure("the zones are known") }
        story.updatesRefusedAt = nil
        let wavePlan = WavePlan(
            zones, rules: waves.rules, waves.schedule(startedAt: story.startedAt))
        checkWaves(wavePlan, waves)
        let index = try LedgerIndex(
            segments: segments.flatMap { $0 }.map(\.ledgerSegment), campaign: plan.segmentNumber,
            recordedLengths: manifestLengths)
        let summary = try LedgerSummary(index)
        let isDueLeft =
            summary.count(.inDoubt) > 0
            || wavePlan.mayHaveLeft(
                at: now.wallMilliseconds, rows: story.rowCount,
                settled: summary.kept(reopening: reopens).settled)
        return RunPasses(wavePlan, isDueLeft: isDueLeft, now: now.wallMilliseconds)
    }

    /// The waiting process is killed, and another one starts some time later.
    private func endWait(until dueAt: UInt64) {
        let start = now.wallMilliseconds
        let end = start + story.random.skewedDelay(dueAt - start)
        story.waits.append((start, end))
        let pauses: [UInt64] = [60_000, dueAt - start, 3 * 3_600_000, 20 * 3_600_000]
        setWallClock(end + story.random.delay(story.random.pick(pauses)))
        story.counts.endedWaits += 1
        if now.wallMilliseconds >= dueAt { story.counts.missedWaits += 1 }
        note { "the process is ended while it waits, and starts again at \(now.wallMilliseconds)" }
    }

    /// The process waits until the wave is due. The machine may sleep until after that.
    private func sleep(until dueAt: UInt64) {
        story.waits.append((now.wallMilliseconds, dueAt))
        var end = dueAt
        if story.random.chance(0.15) {
            end += story.random.skewedDelay(9 * 3_600_000)
            story.counts.sleptWaits += 1
        }
        setWallClock(end)
        note { "the process has waited until \(now.wallMilliseconds), for \(dueAt)" }
    }

    private func setWallClock(_ time: UInt64) {
        clock = max(clock, (time - wallStart) * millisecond)
    }

    /// Ends a pass, and continues with the next pass; returns false if there is none.
    private func goOn(_ passes: RunPasses) -> Bool {
        guard passes.hasNext(now) else { return false }
        passes.end(RunStatistics(), LatencyCounts(), seconds: 0, now)
        story.continuing = passes
        return true
    }

    /// Time at which a process selects the rows that are due, milliseconds since 1970.
    private func time(of passes: RunPasses) -> UInt64 {
        older.isEmpty ? passes.dueAt : min(passes.dueAt, now.wallMilliseconds)
    }

    /// Rows that a process may send; nil: all rows.
    func dueRows(_ passes: RunPasses?) -> DueRows? {
        guard let passes else { return nil }
        story.counts.passes += 1
        return passes.waves?.due(at: time(of: passes))
    }

    /// Records that a process begins a pass, and schedules the pass's end at the start of quiet
    /// hours.
    func beginPass(_ passes: RunPasses?, of process: SimulatedProcess) {
        guard let passes else { return }
        let time = time(of: passes)
        process.passes = passes
        // In each pass, the script's operator begins with the settings of the options.
        let settings = process.coordinator.settings
        passes.requests.begin(process.coordinator, now)
        process.coordinator.settings = settings
        process.hasAccepted = process.coordinator.anyAccepted
        process.updatesRefusedAt = story.updatesRefusedAt
        process.looksOnly = time < passes.dueAt
        guard let quiet = passes.waves?.nextQuiet(after: time) else { return }
        let instant = max(clock, (quiet - min(quiet, wallStart)) * millisecond)
        events.insert(.quiet(epoch: process.epoch), at: instant)
    }

    /// Quiet hours begin in a zone of the pass.
    func beginQuiet() {
        guard let waves = plan.waves, !process.coordinator.isStopping else { return }
        note { "quiet hours begin" }
        trace.step(time: clock, kind: 15, 0)
        story.counts.quietEnds += 1
        if !waves.zones.indices.contains(where: { waves.isQuiet($0, at: now.wallMilliseconds) }) {
            fail("the pass is ended for quiet hours, and there are none")
        }
        process.passes?.endEarly(for: .quietHours)
        process.hasBecomeQuiet = true
        process.coordinator.stop(.control)
        for reactor in process.reactors { wake(reactor, at: clock + random.delay(50_000)) }
    }

    /// Lets a process that ended in an orderly way continue with its next pass, in the same way as
    /// the command.
    func endPass(of process: SimulatedProcess) {
        guard let passes = process.passes else { return }
        if !process.hasDied, process.hasListEnded {
            story.rowCount = UInt64(plan.list.tokens.count)
        }
        let cause = process.coordinator.stopCause
        let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().refusedByCredential }
        // After refusals of single rows, the command continues. Here, a later process does.
        guard !process.hasDied, !process.looksOnly, heldBack == 0,
            cause == nil || cause == .control && process.hasBecomeQuiet,
            let states = finalStates
        else { return }
        let isLeft = states.indices.contains {
            !states[$0].isSettled
                || process.reopens(row: $0) && states[$0] == process.statesAtStart[$0]
                    && (process.hasBecomeQuiet || waits($0, epoch: process.epoch))
        }
        guard isLeft else {
            // Rows that failed are sent again by a process that starts outside their quiet hours.
            setWallClock(now.wallMilliseconds + story.random.delay(4 * 3_600_000))
            return
        }
        story.updatesRefusedAt = process.updatesRefusedAt
        if !goOn(passes) { fail("the process ends, and rows of later waves are left") }
    }

    // MARK: What it is held against

    /// Whether a process must leave a row to a later process, because the row is not due. A row
    /// that is not sent never waits.
    func waits(_ row: Int, epoch: Int) -> Bool {
        guard let waves = plan.waves, plan.isSent(row) else { return false }
        return story.waitingZones[epoch - 1][waves.zoneOfRow[row]]
    }

    /// Records which rows a process must leave.
    func noteWaiting(_ passes: RunPasses?, epoch: Int) {
        guard let waves = plan.waves, let passes else { return }
        let time = time(of: passes)
        precondition(story.waitingZones.count == epoch - 1, "each process leaves its rows")
        story.waitingZones.append(
            waves.zones.indices.map { permitted($0, from: time, waves).map { $0 > time } ?? false })
    }

    /// Whether a row's time had passed at the first start, so that the row is not sent.
    func isTooLate(_ row: Int) -> Bool {
        guard let waves = plan.waves, plan.isSent(row) else { return false }
        return story.bases[waves.zoneOfRow[row]] == nil
    }

    /// First time, from `time` on, at which the rows of a zone may be sent; nil: they are not sent.
    private func permitted(_ zone: Int, from time: UInt64, _ waves: ScriptedWaves) -> UInt64? {
        story.firsts[zone].map { time <= $0 ? $0 : waves.endOfQuiet(zone, from: time) }
    }

    /// Checks a row that is too late: it was never sent, and was skipped while a process ran.
    func checkLateRow(_ row: LedgerRow, number: Int) {
        if row.reason != "Late" || row.status != 0 || row.attempts != 0 || row.timestamp != nil
            || !requestsOfRow[number].isEmpty
        {
            fail("row \(number) is too late and skipped (\(row.reason)), \(row.attempts) attempts")
        }
        checkLife(row, number: number)
    }

    /// Rows that a process settled in its earlier passes, and does not send again.
    func ownRows(_ rows: [LedgerRow]) -> Set<Int> {
        guard story.isLaterPass else { return [] }
        return Set(rows.indices.filter { rows[$0].settledAt > story.reopenedAt })
    }

    /// No process waits while a row may be sent.
    ///
    /// - Parameter own: Rows that the process settled in its earlier passes.
    func checkWaits(_ states: [RowState], reopens: ReopenedStates, own: Set<Int>) {
        defer { story.waits = [] }
        guard let waves = plan.waves, !story.waits.isEmpty else { return }
        var zones: Set<Int> = []
        for row in states.indices where plan.isSent(row) {
            let state = states[row]
            let isLeft =
                state == .remaining || state == .inDoubt && plan.onLost == .resend
                || state.isSettled && reopens.contains(state) && !own.contains(row)
            if isLeft { zones.insert(waves.zoneOfRow[row]) }
        }
        for (from, to) in story.waits {
            for zone in zones.sorted() {
                guard let time = permitted(zone, from: from, waves), time < to else { continue }
                fail("the process waits from \(from) to \(to), and zone \(zone) is due at \(time)")
            }
        }
    }

    /// The waves that the plan reports are those of the rules.
    private func checkWaves(_ wavePlan: WavePlan, _ waves: ScriptedWaves) {
        var expected: [UInt64: UInt64] = [:]
        var late: UInt64 = 0
        for row in plan.list.tokens.indices where plan.isSent(row) {
            if let time = story.firsts[waves.zoneOfRow[row]] {
                expected[time, default: 0] += 1
            } else {
                late += 1
            }
        }
        let found = wavePlan.waves.map { ($0.atMilliseconds, $0.rows) }
        let isEqual =
            found.count == expected.count && found.allSatisfy { expected[$0.0] == $0.1 }
            && zip(found, found.dropFirst()).allSatisfy { $0.0.0 < $0.1.0 }
        if !isEqual { fail("the waves are \(found), not \(expected)") }
        if wavePlan.missedRows != late { fail("\(wavePlan.missedRows) rows are late, not \(late)") }
        story.counts.lateRows = Int(late)
    }

    /// A row is sent neither before its time nor during quiet hours.
    func checkTime(ofRow row: Int, link id: Int) {
        guard let waves = plan.waves, plan.isSent(row) else { return }
        if waits(row, epoch: links[id].epoch) { fail("row \(row) is sent, and it is not due") }
        let zone = waves.zoneOfRow[row]
        let sentAt = wallStart + links[id].arrivingSentAt / millisecond
        guard let base = story.bases[zone] else {
            return fail("row \(row) is sent, and it is too late for it")
        }
        if sentAt < base { fail("row \(row) is sent at \(sentAt), and its time is \(base)") }
        // A request that was made before may wait in the client for half a minute. A process that
        // was frozen does not know the time.
        let grace: UInt64 = 60_000
        let frozen = wallStart + process.frozenUntil / millisecond
        guard waves.isQuiet(zone, at: sentAt), waves.isQuiet(zone, at: sentAt - grace),
            sentAt > frozen + grace
        else { return }
        fail("row \(row) is sent at \(sentAt), in quiet hours")
    }
}
