import BroadsideAPNs
import BroadsideLists
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

/// Waves at their limits: at the very moment of a wave, of the start and of the deadline, and with a single row.
@Suite struct WavePlanTests {
    private static let hour: UInt64 = 3_600_000
    /// 2026-06-01 09:00 UTC.
    private static let start: UInt64 = 1_780_304_400_000

    private static func rules(west hours: Int) throws -> TimeZoneRules {
        let file = FileManager.default.contents(atPath: "/usr/share/zoneinfo/Etc/GMT+\(hours)")
        return try #require(file.flatMap { TimeZoneRules(file: [UInt8]($0)) })
    }

    /// A plan for 09:00 in zones so many hours west of UTC, with so many rows of each.
    private func plan(
        _ zones: [(west: Int, rows: Int)], late: DeliverySchedule.LateRule = .send,
        quiet: String? = nil, startedAt: UInt64 = start
    ) throws -> WavePlan {
        let numbers = zones.enumerated().flatMap { index, zone in
            Array(repeating: RowZones.firstZone + UInt16(index), count: zone.rows)
        }
        return WavePlan(
            try RowZones(numbers: numbers, zoneCount: zones.count),
            rules: try zones.map { try Self.rules(west: $0.west) },
            DeliverySchedule(
                deliverAt: TimeOfDay("09:00"), date: CalendarDate("2026-06-01"), zone: .utc,
                late: late, quiet: quiet.flatMap { DayPeriod($0) }, startedAt: startedAt))
    }

    @Test func `A wave whose time is that of the start is sent at once, and one later is not`()
        throws
    {
        let waves = try plan([(0, 2), (1, 3)]).waves
        #expect(waves.map(\.isAtOnce) == [true, false])
        #expect(waves.map(\.atMilliseconds) == [Self.start, Self.start + Self.hour])
    }

    @Test func `A zone with one row is a wave, and a zone without rows is none`() throws {
        let plan = try plan([(0, 1), (1, 0), (2, 1)])
        #expect(plan.waves.map(\.rows) == [1, 1])
        #expect(plan.next(after: Self.start) == Self.start + 2 * Self.hour)
        #expect(plan.next(after: Self.start + 2 * Self.hour) == nil)
        #expect(plan.dueRows(at: Self.start) == 1)
        #expect(plan.laterRows(at: Self.start) == 1)
        #expect(plan.laterRows(at: Self.start + 2 * Self.hour) == 0)
    }

    @Test func `Quiet hours may delay rows from their start, and at once if waves follow`() throws {
        let plan = try plan([(0, 1), (1, 1)], quiet: "11:00-08:00")
        #expect(plan.quietStart(Self.start + Self.hour) == Self.start + 2 * Self.hour)
        #expect(plan.quietStart(Self.start) == Self.start)
        #expect(try self.plan([(0, 1)]).quietStart(Self.start) == nil)
    }

    @Test func `A resume plans the rows that are left, at the times at which it sends them`() throws
    {
        // Three zones, whose quiet hours begin at 11:00, 12:00 and 13:00 UTC.
        var plan = try plan([(0, 4), (1, 6), (2, 8)], quiet: "11:00-08:00")
        let first = plan.waves
        plan.resume(at: Self.start + 150 * 60_000, left: [3, 0, 8])
        // At 11:30 UTC, the third zone was due at 11:00, and its clock shows 09:30.
        #expect(
            plan.planLines(deadline: nil) == [
                "waves        at once: 8 rows in 2: 09:00 has passed there",
                "             2026-06-02 08:00 UTC: 3 rows in 0",
            ])
        #expect(plan.waves == first, "these are the campaign's")
        #expect(plan.earlier.map(\.rows) == [1, 6])
        #expect(plan.earlier.map(\.atMilliseconds) == [Self.start, Self.start + Self.hour])
        // Half past one in the afternoon: the third zone's quiet hours have begun, too.
        plan.plan(at: Self.start + 270 * 60_000)
        #expect(
            plan.coming.map(\.timeText) == ["2026-06-02 08:00 UTC", "2026-06-02 10:00 UTC"])
        #expect(plan.coming.map(\.rows) == [3, 8])
    }

    @Test func `A first start whose quiet hours have begun meanwhile plans their end`() throws {
        var plan = try plan([(0, 4), (1, 6)], quiet: "11:00-08:00")
        plan.plan(at: Self.start + 1)
        #expect(plan.coming == plan.waves, "rows that are due at once stay so")
        plan.plan(at: Self.start + 2 * Self.hour)
        #expect(plan.coming.map(\.isAtOnce) == [false, false])
        #expect(plan.coming.map(\.rows) == [6, 4])
    }

    @Test func `Late rows are named as such in the plan of a first start and of its resume`() throws
    {
        var plan = try plan([(1, 4), (3, 6)], startedAt: Self.start + 2 * Self.hour)
        let late = "at once: 4 rows in 0: 09:00 has passed there (--late)"
        #expect(plan.planLines(deadline: nil).first?.hasSuffix(late) == true)
        plan.resume(at: Self.start + 2 * Self.hour + 1)
        #expect(plan.planLines(deadline: nil).first?.hasSuffix(late) == true)
        plan.resume(at: Self.start + 4 * Self.hour)
        let later = "at once: 10 rows in 0 and 1 other: 09:00 has passed there"
        #expect(plan.planLines(deadline: nil).first?.hasSuffix(later) == true)
    }

    @Test func `Rows that quiet hours delay beyond the deadline or the expiration are counted`()
        throws
    {
        var plan = try plan([(0, 4), (1, 6)], quiet: "11:00-08:00")
        let (deadline, expiration) = (10 * 3_600 * second, Expiration.after(36_000))
        #expect(plan.planLines(deadline: deadline, expiration: expiration).count == 2)
        plan.resume(at: Self.start + 150 * 60_000, left: [3, 6])
        let lines = plan.planLines(deadline: deadline)
        #expect(lines.last?.hasSuffix(" 3 rows are due after --deadline, and remain") == true)
        let warning = plan.expirationWarning(expiration, deadline: nil)
        #expect(warning?.contains("--expiration +36000s ends before 3 rows are due") == true)
        #expect(warning?.hasSuffix("but with --deadline it leaves such rows unsent") == true)
        #expect(plan.expirationWarning(expiration, deadline: deadline) == nil, "none is sent")
        var options = SendOptions()
        options.expiration = expiration
        #expect(plan.resumeWarning(options) == warning)
        options.expiration = .after(60)
        #expect(plan.resumeWarning(options) == nil, "another warning says that it has passed")
    }

    @Test func `A wave at the deadline is not sent, and one before it is`() throws {
        let plan = try plan([(0, 1), (1, 4), (2, 8)])
        func left(_ hours: Double) -> String? {
            plan.planLines(deadline: UInt64(hours * 3_600) * second).first {
                $0.contains("--deadline")
            }
        }
        #expect(left(1)?.contains(" 12 rows are due after --deadline") == true)
        #expect(left(1.01)?.contains(" 8 rows are due after --deadline") == true)
        #expect(left(2.01) == nil)
    }

    @Test func `A deadline before all waves causes a warning, and a later deadline none`() throws {
        var plan = try plan([(1, 4), (2, 8)])
        let warning = plan.deadlineWarning(3_600 * second)
        #expect(warning?.contains("the first wave is due at 2026-06-01 10:00 UTC: ") == true)
        #expect(plan.deadlineWarning(3_601 * second) == nil && plan.deadlineWarning(nil) == nil)
        #expect(try self.plan([(0, 1), (1, 4)]).deadlineWarning(second) == nil)
        plan.resume(at: Self.start + 90 * 60_000, left: [0, 8])
        let resumed = plan.deadlineWarning(7_200 * second)
        #expect(resumed?.contains("the next wave is due at 2026-06-01 11:00 UTC: ") == true)
        #expect(plan.deadlineWarning(3_600 * second) == nil, "another message says so")
    }

    @Test func `A wave at the expiration has expired, and one before it has not`() throws {
        let plan = try plan([(0, 1), (1, 4), (2, 8)])
        func expired(_ expiration: Expiration?) -> String? {
            let lines = plan.planLines(deadline: nil, expiration: expiration)
            let warning = plan.expirationWarning(expiration, deadline: nil)
            #expect((warning == nil) == !lines.contains { $0.contains("--expiration") })
            return warning
        }
        #expect(expired(.after(3_600))?.contains("--expiration +3600s ends before 12 rows") == true)
        #expect(expired(.after(3_601))?.contains("ends before 8 rows are due") == true)
        #expect(expired(.at(Self.start / 1_000 + 1))?.contains("ends before 12 rows") == true)
        #expect(expired(.after(7_201)) == nil)
        #expect(expired(.at(.max)) == nil && expired(nil) == nil)
        #expect(expired(.at(0)) == nil, "0 asks for no storage")
    }

    @Test func `A night that ends with its last wave is long enough`() throws {
        let plan = try plan([(0, 1), (2, 1)])
        var options = SendOptions()
        #expect(plan.nightWarning(options) == nil, "no night")
        options.nightLength = 2 * 3_600 * second
        #expect(plan.nightWarning(options) == nil)
        options.nightLength = 2 * 3_600 * second - millisecond
        #expect(
            plan.nightWarning(options)?.hasSuffix(
                ". A later start would begin the next night instead of continuing this one: raise "
                    + "--night-length, or make one campaign per region with --where and --name")
                == true)
    }

    @Test
    func
        `A cap that reaches back to the day before's last wave is a warning with one that does not`()
        throws
    {
        func warning(_ west: Int, _ count: Int, hours: UInt64) throws -> String? {
            try plan([(0, 1), (west, 1)]).capWarning(
                FrequencyCap(count: count, milliseconds: hours * Self.hour))
        }
        // The last wave is 10 hours after the start, 14 hours before the next one.
        #expect(try warning(10, 1, hours: 13) == nil)
        let daily = try warning(10, 1, hours: 14)
        #expect(daily?.hasSuffix("write --cap 1/13h") == true, "\(daily ?? "")")
        #expect(
            daily?.contains("10 h 00 m after the start, but --cap counts the last 14 h 00 m")
                == true)
        #expect(try warning(10, 1, hours: 24)?.hasSuffix("write --cap 1/13h") == true)
        #expect(try warning(10, 2, hours: 37) == nil)
        #expect(try warning(10, 2, hours: 40)?.hasSuffix("write --cap 2/37h") == true)
        // Such a cap is meant to skip days.
        #expect(try warning(10, 1, hours: 48) == nil)
        #expect(try warning(10, 3, hours: 168) == nil)
        #expect(try warning(10, 7, hours: 168)?.hasSuffix("write --cap 7/157h") == true)
        #expect(try plan([(0, 1), (10, 1)]).capWarning(nil) == nil)
        // No period is short enough: the last wave is an hour before the next start.
        let day = try plan([(0, 3)], late: .nextDay, startedAt: Self.start + Self.hour)
        let none = day.capWarning(FrequencyCap(count: 1, milliseconds: 20 * Self.hour))
        #expect(none?.contains("make one campaign per region") == true, "\(none ?? "")")
    }

    @Test func `Late rows of the next day are due at its time, at the start at the earliest`()
        throws
    {
        // A day later at the very time: that is the next day's.
        let day = Self.start + 24 * Self.hour
        let plan = try plan([(0, 3)], late: .nextDay, startedAt: day)
        #expect(plan.waves.map(\.atMilliseconds) == [day] && plan.missedRows == 0)
        let later = try self.plan([(0, 3)], late: .nextDay, startedAt: day + 1)
        #expect(later.waves.map(\.atMilliseconds) == [day + 24 * Self.hour])
        #expect(try self.plan([(0, 3)], late: .skip, startedAt: Self.start).missedRows == 0)
        var missed = try self.plan([(0, 3)], late: .skip, startedAt: Self.start + 1)
        #expect(missed.missedRows == 3)
        missed.resume(at: Self.start + 2, left: [1])
        #expect(missed.missedRows == 1, "the others are settled")
    }
}
