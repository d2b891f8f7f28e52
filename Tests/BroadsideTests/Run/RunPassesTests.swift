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
}
