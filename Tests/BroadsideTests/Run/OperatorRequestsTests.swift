import BroadsideEngine
import BroadsideLists
import BroadsideSupport
import Testing

@testable import BroadsideCampaigns
@testable import BroadsidePolicy

/// What the operator asks for, before, in, between and after the passes of a run. A pass has a coordinator of its
/// own, with the settings of the options: 5 requests per second, rising if `--rate` says so.
@Suite struct OperatorRequestsTests {
    private static let hour: UInt64 = 3_600_000
    /// 2026-06-01 08:00 UTC.
    private static let start: UInt64 = 1_780_300_800_000
    private let passes: RunPasses

    /// Rows in UTC, which are due at once until 22:00, and after 08:00 on the next day.
    init() throws {
        let zones = try RowZones(
            numbers: Array(repeating: RowZones.firstZone, count: 10), zoneCount: 1)
        let waves = WavePlan(
            zones, rules: [.utc],
            DeliverySchedule(
                deliverAt: nil, date: nil, zone: .utc, late: .send,
                quiet: DayPeriod("22:00-08:00"), startedAt: Self.start))
        passes = RunPasses(waves, isDueLeft: true, now: Self.start)
    }

    private static let ramp = RateRamp(first: 1_000, last: 9_000, riseNanoseconds: 60 * second)

    private func coordinator(ramp: RateRamp? = nil) -> RunCoordinator {
        RunCoordinator(
            authorization: nil, issuedAt: 0, milliRate: 5_000, ramp: ramp.map { RampClock($0) },
            abortAfter: 50, maxBadTokensPercent: 50, sign: nil)
    }

    /// Begins a pass.
    private func begin(ramp: RateRamp? = nil) -> RunCoordinator {
        let coordinator = coordinator(ramp: ramp)
        passes.requests.begin(coordinator, Now(nanoseconds: 0, wallMilliseconds: Self.start))
        return coordinator
    }

    /// Quiet hours begin in the pass.
    private func beginQuiet(_ coordinator: RunCoordinator) {
        passes.endEarly(for: .quietHours)
        coordinator.stop(.control)
    }

    private func end() {
        let now = Now(nanoseconds: 0, wallMilliseconds: Self.start + 14 * Self.hour)
        passes.end(RunStatistics(), LatencyCounts(), seconds: 0, now)
    }

    // MARK: Stop

    @Test func `A stop before the first pass keeps it from sending`() {
        passes.requests.stop(.signal)
        #expect(begin().stopCause == .signal)
        #expect(!passes.goesOn(after: .signal))
    }

    @Test func `A stop in a pass ends it, and the run with it`() {
        let first = begin()
        #expect(!first.isStopping)
        passes.requests.stop(.control)
        #expect(first.stopCause == .control && !passes.goesOn(after: first.stopCause))
        #expect(passes.finalStop(after: first.stopCause) == .control)
    }

    @Test(arguments: [StopCause.signal, .control, .deadline])
    func `A stop in a pass that quiet hours end is the run's end, and its cause`(cause: StopCause) {
        let first = begin()
        beginQuiet(first)
        #expect(passes.endsEarly && passes.goesOn(after: first.stopCause))
        passes.requests.stop(cause)
        #expect(!passes.endsEarly && !passes.goesOn(after: first.stopCause))
        #expect(passes.finalStop(after: first.stopCause) == cause)
    }

    @Test(arguments: [RunPasses.EarlyEnd.quietHours, .nextWave])
    func `The notice about a pass that ends names the operator's stop rather than quiet hours`(
        end: RunPasses.EarlyEnd
    ) {
        let first = begin()
        passes.endEarly(for: end)
        first.stop(.control)
        #expect(
            passes.stoppingText(passes.passStop(first.stopCause))
                == (end == .quietHours ? "quiet hours have begun" : "the next wave is due"))
        passes.requests.stop(.signal)
        #expect(passes.stoppingText(passes.passStop(first.stopCause)) == "stopped by a signal")
    }

    @Test func `A stop between two passes keeps the second from sending`() {
        let first = begin()
        beginQuiet(first)
        end()
        passes.requests.stop(.signal)
        #expect(first.stopCause == .control, "the first has ended")
        let next = begin()
        #expect(next.stopCause == .signal && !passes.goesOn(after: next.stopCause))
        #expect(passes.finalStop(after: next.stopCause) == .signal)
    }

    @Test func `A stop while a wave is awaited ends the wait`() {
        beginQuiet(begin())
        end()
        let next = begin()
        #expect(!next.isStopping && passes.dueAt == Self.start + 24 * Self.hour)
        passes.requests.stop(.deadline)
        #expect(next.stopCause == .deadline && !passes.goesOn(after: next.stopCause))
    }

    @Test(arguments: [false, true])
    func `The first signal does not stop a run at once, even if the run stops already`(
        isStopping: Bool
    ) {
        let first = begin()
        if isStopping { first.stop(.tooManyBadTokens) }
        passes.requests.handleSignal()
        #expect(!first.isStoppingAtOnce && passes.requests.stop == .signal)
        #expect(first.stopCause == (isStopping ? .tooManyBadTokens : .signal))
    }

    @Test func `The first stop counts, and a broken ledger more than any`() {
        passes.requests.stop(.deadline)
        let first = begin()
        passes.requests.stop(.signal)
        #expect(first.stopCause == .deadline && passes.requests.stop == .deadline)
        beginQuiet(first)
        first.stop(.ledgerGone)
        #expect(passes.finalStop(after: first.stopCause) == .ledgerGone)
    }

    @Test func `Quiet hours are no stop for a run, and other causes end it`() {
        let first = begin()
        #expect(passes.goesOn(after: nil) && passes.finalStop(after: nil) == nil)
        #expect(!passes.goesOn(after: .control), "the operator stopped it")
        beginQuiet(first)
        #expect(passes.goesOn(after: .control) && passes.finalStop(after: .control) == nil)
        #expect(!passes.goesOn(after: .brokenServer(.init(.connect, "broken"))))
        #expect(
            !RunPasses(nil, isDueLeft: true, now: Self.start).goesOn(after: nil),
            "one pass has all rows")
    }

    @Test func `Refusals end a run with waves only if no row of the pass was accepted`() {
        #expect(RunPasses.endsRun(refused: 1, accepted: 0))
        #expect(!RunPasses.endsRun(refused: 1, accepted: 1))
        #expect(!RunPasses.endsRun(refused: 0, accepted: 0))
    }

    // MARK: Settings

    @Test func `A pause holds for later passes until the operator ends it`() {
        let first = begin()
        first.pause(true)
        beginQuiet(first)
        end()
        let next = begin()
        #expect(next.isPaused)
        beginQuiet(next)
        next.pause(false)
        end()
        #expect(!begin().isPaused)
    }

    @Test(arguments: [nil, 7_000] as [UInt64?])
    func `A rate holds for later passes, also if it is unlimited`(milliRate: UInt64?) {
        let first = begin(ramp: Self.ramp)
        #expect(first.milliRate == 1_000)
        // While the pass drains, it may still be set.
        beginQuiet(first)
        first.milliRate = milliRate
        end()
        let next = begin(ramp: Self.ramp)
        #expect(next.milliRate == milliRate && next.ramp == nil)
        beginQuiet(next)
        end()
        #expect(begin(ramp: Self.ramp).milliRate == milliRate, "also for the one after the next")
    }

    @Test func `A rising rate of the operator continues where it was`() {
        let first = begin()
        first.ramp = RampClock(Self.ramp, sentNanoseconds: 30 * second)
        beginQuiet(first)
        end()
        let next = begin()
        #expect(next.ramp?.sentNanoseconds == 30 * second && next.milliRate == 5_000)
        #expect(next.ramp?.ramp == Self.ramp)
    }

    @Test func `Credentials that could not be read again in a pass are read in the next one, once`()
    {
        beginQuiet(begin())
        passes.requests.reloadLater()
        end()
        _ = begin()
        #expect(passes.requests.takeReload() && !passes.requests.takeReload())
    }
}
