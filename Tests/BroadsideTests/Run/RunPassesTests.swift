import BroadsideEngine
import BroadsideLists
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideCampaigns
@testable import BroadsidePolicy

/// Passes of a run over zones whose rows are due at different times: UTC and Tokyo, with quiet hours.
@Suite struct RunPassesTests {
    private static let hour: UInt64 = 3_600_000
    /// 2026-06-01 15:00 UTC, midnight in Tokyo.
    private static let start: UInt64 = 1_780_326_000_000
    private let waves: WavePlan

    /// 100 rows in UTC are sent at once, 50 rows in Tokyo wait for 08:00 there, 23:00 UTC.
    init() throws {
        let numbers =
            Array(repeating: RowZones.firstZone, count: 100)
            + Array(repeating: RowZones.firstZone + 1, count: 50)
        let file = FileManager.default.contents(atPath: "/usr/share/zoneinfo/Asia/Tokyo")
        let tokyo = try #require(file.flatMap { TimeZoneRules(file: [UInt8]($0)) })
        waves = WavePlan(
            try RowZones(numbers: numbers, zoneCount: 2), rules: [.utc, tokyo],
            DeliverySchedule(
                deliverAt: nil, date: nil, zone: .utc, late: .send,
                quiet: DayPeriod("22:00-08:00"), startedAt: Self.start))
    }

    private func time(_ hours: UInt64) -> UInt64 { Self.start + hours * Self.hour }

    private func passes(at time: UInt64) -> RunPasses {
        RunPasses(waves, isDueLeft: true, now: time)
    }

    private func end(_ passes: RunPasses, at time: UInt64) {
        passes.end(
            RunStatistics(), LatencyCounts(), seconds: 0,
            Now(nanoseconds: 0, wallMilliseconds: time))
    }

    @Test func `Waves are those of the zones, and a plan without rows to send has none`() {
        #expect(waves.waves.map(\.atMilliseconds) == [time(0), time(8)])
        #expect(waves.waves.map(\.rows) == [100, 50] && waves.missedRows == 0)
        #expect(waves.laterRows(at: time(0)) == 50)
        #expect(waves.laterRows(at: time(8)) == 0, "rows in UTC were due, although it is 23:00")
    }

    @Test func `Rows are left although a zone that is settled has its quiet hours`() {
        // At 23:00 UTC the 100 rows of UTC are settled, and those of Tokyo are due.
        #expect(waves.mayHaveLeft(at: time(8), rows: 150, settled: 100))
        #expect(!waves.mayHaveLeft(at: time(8), rows: 150, settled: 150))
        #expect(!waves.mayHaveLeft(at: time(7), rows: 150, settled: 100), "Tokyo is not due yet")
        #expect(waves.mayHaveLeft(at: time(7), rows: 150, settled: 99))
        #expect(waves.mayHaveLeft(at: time(7), rows: nil, settled: 150), "more may follow")
    }

    @Test func `A process without rows that are due waits for the next wave`() {
        #expect(passes(at: time(1)).dueAt == time(1))
        #expect(RunPasses(waves, isDueLeft: false, now: time(1)).dueAt == time(8))
        // Both zones have quiet hours at 22:00 UTC.
        #expect(passes(at: time(7)).dueAt == time(8))
        #expect(RunPasses(nil, isDueLeft: false, now: time(1)).dueAt == time(1))
        let settled = RunPasses(
            waves, hook: nil, isDueLeft: false, isRowLeft: false, now: time(7))
        #expect(settled.dueAt == time(7), "a run without rows has nothing to wait for")
    }

    @Test func `A pass ends at the first quiet hour of its zones, and the next begins after it`() {
        let passes = passes(at: time(0))
        #expect(passes.quietAt == time(7) && passes.earlyEnd == nil)
        passes.endEarly(for: .quietHours)
        #expect(passes.earlyEnd == .quietHours)
        end(passes, at: time(7))
        #expect(passes.dueAt == time(8) && passes.earlyEnd == nil && passes.endedCount == 1)
        #expect(passes.quietAt == time(22), "22:00 in Tokyo")
        end(passes, at: time(9))
        #expect(passes.dueAt == time(17), "08:00 in UTC, for rows that the first pass left")
    }

    @Test func `A machine that slept into quiet hours goes on with the zones that have none`() {
        let passes = passes(at: time(0))
        // It wakes at 23:30 UTC.
        let now = time(8) + Self.hour / 2
        #expect(passes.quietAt.map { $0 <= now } == true)
        passes.endEarly(for: .quietHours)
        #expect(passes.hasNext(Now(nanoseconds: 0, wallMilliseconds: now)))
        end(passes, at: now)
        #expect(passes.dueAt == now && waves.dueRows(at: now) == 50)
    }

    // MARK: Waves

    /// The text about each wave that begins with the pass.
    private func begin(_ passes: RunPasses) -> [String] {
        passes.beginWaves()
        return passes.beginnings.compactMap(\.currentText)
    }

    private func next(_ passes: RunPasses, at time: UInt64) -> String? {
        passes.progress(Now(nanoseconds: 0, wallMilliseconds: time), isWaiting: true)?
            .nextText(now: time)
    }

    @Test func `A wave begins with its pass, and has begun then even if the clock is set back`() {
        let passes = passes(at: time(0))
        #expect(begin(passes) == ["wave 1 of 2: at once, 100 rows in 0"])
        #expect(passes.sentWaves == [0])
        end(passes, at: time(1))
        #expect(passes.dueAt == time(8) && passes.unplannedZones == nil)
        #expect(passes.beginnings.isEmpty, "the wave has not begun")
        let text = "wave 2 of 2 at 2026-06-01 23:00 UTC, in 9 h 00 m: 50 rows in 1"
        #expect(next(passes, at: time(0) - Self.hour) == text)
        let waiting = passes.progress(
            Now(nanoseconds: 0, wallMilliseconds: time(2)), isWaiting: true)
        #expect(waiting?.current == 0 && waiting?.next == 1)
        #expect(begin(passes) == ["wave 2 of 2: 2026-06-01 23:00 UTC, 50 rows in 1"])
        #expect(passes.sentWaves == [1])
        let last = passes.progress(
            Now(nanoseconds: 0, wallMilliseconds: time(9)), isWaiting: false)
        #expect(last?.current == 1 && last?.next == nil)
    }

    @Test func `Rows that quiet hours interrupt are a wave at their end, with the rows left`() {
        let passes = passes(at: time(0))
        _ = begin(passes)
        passes.endEarly(for: .quietHours)
        end(passes, at: time(7))
        #expect(passes.unplannedZones != nil)
        passes.plan(left: [30, 50])
        #expect(passes.unplannedZones == nil)
        #expect(
            next(passes, at: time(7))
                == "wave 2 of 3 at 2026-06-01 23:00 UTC, in 1 h 00 m: 50 rows in 1")
        _ = begin(passes)
        end(passes, at: time(9))
        #expect(
            next(passes, at: time(9))
                == "wave 3 of 3 at 2026-06-02 08:00 UTC, in 8 h 00 m: 30 rows in 0")
        #expect(begin(passes) == ["wave 3 of 3: 2026-06-02 08:00 UTC, 30 rows in 0"])
        #expect(passes.sentWaves == [0], "the campaign's first wave had these rows")
    }

    @Test func `Zones without quiet hours that an interruption ends go on with what they have`() {
        let passes = passes(at: time(8))
        // 100 rows in UTC are left although it is 23:00 there: only those in Tokyo are due.
        #expect(begin(passes) == ["wave 1 of 2: 2026-06-01 23:00 UTC, 50 rows in 1"])
        passes.endEarly(for: .quietHours)
        end(passes, at: time(17))
        passes.plan(left: [100, 20])
        #expect(begin(passes) == ["wave 2 of 2: at once, 120 rows in 0 and 1 other"])
        #expect(passes.sentWaves == [0, 1])
    }

    @Test func `A resume names the waves of earlier runs, and what is left of them`() {
        var waves = waves
        waves.resume(at: time(7), left: [40, 50])
        let passes = RunPasses(waves, isDueLeft: true, now: time(7))
        #expect(passes.dueAt == time(8))
        #expect(
            next(passes, at: time(7))
                == "wave 2 of 3 at 2026-06-01 23:00 UTC, in 1 h 00 m: 50 rows in 1")
        #expect(begin(passes).count == 1)
        end(passes, at: time(9))
        #expect(begin(passes) == ["wave 3 of 3: 2026-06-02 08:00 UTC, 40 rows in 0"])
    }

    @Test func `What a wave left when the next began is counted after that one`() {
        let passes = passes(at: time(6))
        _ = begin(passes)
        passes.endEarly(for: .nextWave)
        end(passes, at: time(8))
        #expect(passes.dueAt == time(8) && passes.unplannedZones == nil, "the wave does not wait")
        #expect(begin(passes) == ["wave 2 of 2: 2026-06-01 23:00 UTC, 50 rows in 1"])
        end(passes, at: time(9))
        #expect(passes.unplannedZones != nil)
        passes.plan(left: [5, 0])
        #expect(begin(passes) == ["wave 3 of 3: 2026-06-02 08:00 UTC, 5 rows in 0"])
    }
}
