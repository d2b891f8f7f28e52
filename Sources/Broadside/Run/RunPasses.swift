package import BroadsideEngine
package import BroadsideLists
import BroadsideObservability
package import BroadsidePolicy
package import BroadsideSupport

/// The passes of a process over its list. Usually, one pass sends all rows. If rows are sent at
/// their local time, each wave is a separate pass. The ledger treats a pass like a run with
/// `--resume`.
///
/// - A pass waits for its time. Then it sends the rows that are due and leaves all others unsent.
/// - A pass ends when all due rows are settled, or when quiet hours begin in a zone. It also ends
///   when the next wave is due and the list was read to its end. Rows that wait to be sent again
///   then belong to the next pass, so that they do not delay the wave.
/// - The next pass follows if more rows become due later. Otherwise, the run ends.
/// - A stop ends the run, whether a pass waits or sends.
package final class RunPasses {
    /// Why a pass ends although rows of it remain.
    package enum EarlyEnd {
        /// Quiet hours have begun in a zone.
        case quietHours
        /// The next wave is due, and the rows that are left wait to be sent again.
        case nextWave
    }

    /// The waves; nil: all rows are sent in one pass.
    package private(set) var waves: WavePlan?
    /// The waves that have begun, also in earlier runs, and the waves that have not.
    private var begunWaves: [Wave]
    private var comingWaves: [Wave]
    /// Indexes of the waves that began with this pass.
    private var newWaves = 0..<0
    /// Time from which the waves are planned again; nil: the plan is valid.
    private var replansAt: UInt64?
    /// Whether the pass also sends rows that the previous pass left.
    private var hasRest = false
    /// The hook of the run; nil: none.
    let hook: EventHook?
    /// Time from which the process makes no new requests; nil: none.
    let deadline: RunDeadline?
    /// The pass sends the rows that are due at this time, milliseconds since 1970. While the run
    /// waits, this time is in the future.
    package private(set) var dueAt: UInt64
    /// Number of passes that have ended.
    private(set) var endedCount = 0
    /// Whether the start was reported to the hook.
    var isStartReported = false
    /// Whether the run continues a ledger after its deadline, so that it sends nothing.
    private(set) var beginsTooLate = false
    /// Whether the run has written its summary, or has failed to.
    var isSummaryWritten = false
    /// Why the pass ends although rows of it remain; nil: it does not.
    package private(set) var earlyEnd: EarlyEnd?
    /// The requests of the operator, in this pass and in earlier ones.
    package let requests = OperatorRequests()

    /// Start of the first pass; nil before it.
    private var startedAt: Now?
    /// Statistics of the passes that have ended.
    private(set) var statistics = RunStatistics()
    private(set) var latency = LatencyCounts()
    /// Total sending time of the passes that have ended. Time spent waiting for waves is not
    /// included.
    private(set) var sendingSeconds = 0.0
    /// Number of responses in the passes that have ended.
    var responses: UInt64 { latency.count + statistics.untimedResponses }

    /// - Parameters:
    ///   - isDueLeft: Whether rows that are due now may be left from earlier runs. If not, the run
    ///     waits for the next wave.
    package convenience init(_ waves: WavePlan?, isDueLeft: Bool, now: UInt64) {
        self.init(waves, hook: nil, isDueLeft: isDueLeft, now: now)
    }

    /// Creates the passes of a run with a hook.
    ///
    /// - Parameter isRowLeft: Whether rows of any wave may be left. If not, the run waits for
    ///   nothing, and ends.
    init(
        _ waves: WavePlan?, hook: EventHook?, deadline: RunDeadline? = nil, isDueLeft: Bool,
        isRowLeft: Bool = true, now: UInt64
    ) {
        var present = waves
        present?.plan(at: now)
        self.waves = present
        begunWaves = present?.earlier ?? []
        comingWaves = present?.coming ?? []
        self.hook = hook
        self.deadline = deadline
        dueAt = now
        guard let waves, isRowLeft, !isDueLeft || waves.dueRows(at: now) == 0,
            let next = waves.next(after: now)
        else { return }
        dueAt = next
    }

    /// Returns the work of the passes that have ended. The caller starts a pass now.
    func earlierWork(_ now: Now) -> RunSnapshot.EarlierPasses {
        let start = startedAt ?? now
        startedAt = start
        return RunSnapshot.EarlierPasses(
            statistics, latency, seconds: Double(now.nanoseconds - start.nanoseconds) / 1e9,
            sendingSeconds: sendingSeconds)
    }

    /// Rows of the pass; nil: all.
    package var due: DueRows? { waves?.due(at: dueAt) }

    /// Number of rows that become due for the first time after this pass.
    var laterRows: UInt64 { waves?.laterRows(at: dueAt) ?? 0 }

    /// Progress through the waves; nil if there are no waves.
    func progress(_ now: Now, isWaiting: Bool) -> WaveProgress? {
        waves.map { waves in
            WaveProgress(
                waves: begunWaves + comingWaves,
                current: begunWaves.isEmpty ? nil : begunWaves.count - 1,
                next: comingWaves.isEmpty ? nil : begunWaves.count, isWaiting: isWaiting,
                quietAtMilliseconds: waves.quietStart(isWaiting ? now.wallMilliseconds : dueAt))
        }
    }

    /// Begins the waves that are due in the pass.
    func beginWaves() {
        let new = comingWaves.prefix { $0.atMilliseconds <= dueAt }
        newWaves = begunWaves.count..<begunWaves.count + new.count
        begunWaves += new
        comingWaves.removeFirst(new.count)
    }

    /// Progress through the waves at the beginning of each wave that began with this pass.
    var beginnings: [WaveProgress] {
        newWaves.map { wave in
            WaveProgress(
                waves: begunWaves + comingWaves, current: wave, next: nil, isWaiting: false)
        }
    }

    /// Indexes of the campaign's first waves whose rows are in the waves that began with this pass.
    var sentWaves: [Int] {
        let new = begunWaves[newWaves]
        return (waves?.waves ?? []).indices.filter { index in
            new.contains { waves?.waves[index].sharesZone(with: $0) ?? false }
        }
    }

    /// Zones of the rows, if passes that have ended left rows which are not in the coming waves.
    var unplannedZones: RowZones? { replansAt == nil ? nil : waves?.zones }

    /// Plans the coming waves again.
    ///
    /// - Parameter left: Number of rows of each zone that are left to be sent.
    func plan(left: [UInt64]) {
        guard let replansAt else { return }
        self.replansAt = nil
        waves?.resume(at: replansAt, left: left)
        comingWaves = waves?.coming ?? []
    }

    /// Time at which the pass has to end, because quiet hours begin; nil: none.
    package var quietAt: UInt64? { waves?.nextQuiet(after: dueAt) }

    /// Time at which more rows become due; nil: never.
    package var nextWaveAt: UInt64? { waves?.next(after: dueAt) }

    /// Ends the pass although rows of it remain.
    package func endEarly(for cause: EarlyEnd) {
        assert(waves != nil, "only passes of zones end early")
        earlyEnd = cause
    }

    /// Whether the pass ends early and the run continues. The operator may then still make requests.
    var endsEarly: Bool { earlyEnd != nil && requests.stop == nil }

    /// Whether another pass may follow a pass that has ended.
    ///
    /// - Parameter stop: Cause that stopped the pass; nil if nothing stopped it.
    package func goesOn(after stop: StopCause?) -> Bool {
        waves != nil && requests.stop == nil && (stop == nil || earlyEnd != nil && stop == .control)
    }

    /// Whether no other pass may follow, because APNs refused the credential, or because a server
    /// that is not APNs responded. If any row of the process was accepted, these responses concern
    /// single rows, and the next pass sends those rows again. If a later pass gets only such
    /// responses, `--abort-after` ends the run.
    ///
    /// - Parameters:
    ///   - refused: Rows of the pass that remain because of these responses. Rows whose topic was
    ///     refused are not included.
    ///   - accepted: Rows that were accepted in this pass and in earlier passes.
    static func endsRun(refused: UInt64, accepted: UInt64) -> Bool { refused > 0 && accepted == 0 }

    /// Cause of the run's end; nil if nothing stopped it. The pass that has ended was the last one.
    ///
    /// - Parameter stop: Cause that stopped the pass; nil if nothing stopped it.
    func finalStop(after stop: StopCause?) -> StopCause? {
        earlyEnd != nil && stop == .control ? requests.stop : stop
    }

    /// Cause of the pass's end, for notices; nil if nothing stopped it. A request of the operator
    /// takes the place of quiet hours and of the next wave.
    ///
    /// - Parameter stop: Cause that stopped the pass; nil if nothing stopped it.
    func passStop(_ stop: StopCause?) -> StopCause? { endsEarly ? stop : finalStop(after: stop) }

    /// Text about why the pass makes no new requests.
    ///
    /// - Parameter stop: Cause of the pass's end; nil if nothing stopped it.
    func stoppingText(_ stop: StopCause?) -> String {
        switch endsEarly && stop == .control ? earlyEnd : nil {
        case .quietHours: "quiet hours have begun"
        case .nextWave: "the next wave is due"
        case nil: stop?.message ?? "stopped"
        }
    }

    /// Whether more rows become due after the pass.
    package func hasNext(_ now: Now) -> Bool { nextTime(now) != nil }

    private func nextTime(_ now: Now) -> UInt64? {
        guard let waves else { return nil }
        guard earlyEnd != nil else { return waves.next(after: dueAt) }
        // The other zones of the pass continue at once.
        let time = endTime(now)
        return waves.dueRows(at: time) > 0 ? time : waves.next(after: time)
    }

    /// Time of the end of a pass that ends early. It is after the pass's own time, also if the
    /// clock was set back.
    private func endTime(_ now: Now) -> UInt64 { max(dueAt + 1, now.wallMilliseconds) }

    /// Ends the pass and begins the next one.
    package func end(
        _ statistics: RunStatistics, _ latency: LatencyCounts, seconds: Double, _ now: Now
    ) {
        guard let next = nextTime(now) else { preconditionFailure("more rows are due later") }
        assert(next > dueAt, "passes go forward in time")
        add(statistics, latency, seconds: seconds)
        requests.end()
        endedCount += 1
        switch earlyEnd {
        case .quietHours: replansAt = endTime(now)
        // The next wave begins now. What is left of this one is counted after it.
        case .nextWave: replansAt = nil
        case nil: replansAt = hasRest ? dueAt + 1 : nil
        }
        hasRest = earlyEnd == .nextWave
        dueAt = next
        newWaves = 0..<0
        earlyEnd = nil
    }

    /// Adds a pass's statistics to the statistics of the process.
    func add(_ statistics: RunStatistics, _ latency: LatencyCounts, seconds: Double) {
        assert(seconds >= 0, "a pass does not end before it begins")
        self.statistics.add(statistics)
        self.latency.add(latency)
        sendingSeconds += seconds
    }

    /// Stops the run, because its deadline has passed before a pass begins.
    ///
    /// - Parameter isResumed: Whether the run continues a ledger.
    func stopTooLate(isResumed: Bool) {
        requests.stop(.deadline)
        beginsTooLate = isResumed && endedCount == 0
    }

    /// Reports to the hook that the run sends, and which waves begin.
    func callHook() {
        guard let hook, !beginsTooLate else { return }
        if !isStartReported { hook.put(.started) }
        isStartReported = true
        for progress in beginnings {
            hook.put(.wave, wave: progress.current(of: progress.waves))
        }
    }
}

extension WaveProgress {
    /// Description of the current wave, for the hook.
    fileprivate func current(of waves: [Wave]) -> JSONLine? {
        guard let current else { return nil }
        var line = JSONLine()
        line.add("number", current + 1)
        line.add("count", waves.count)
        line.append(waves[current].json)
        return line
    }
}
