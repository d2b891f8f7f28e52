import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsidePolicy

@Suite struct DeliveryScheduleTests {
    /// Instants of rows by `--deliver-at`, `--late` and `--quiet`, by Python's `zoneinfo` and by
    /// stepping through minutes: which minute is the first one outside of the quiet hours?
    private static let judge = #"""
        import datetime, random, sys, zoneinfo
        utc = datetime.timezone.utc
        choose = random.Random(int(sys.argv[1]))
        def shown(zone, second):
            return datetime.datetime.fromtimestamp(second, utc).astimezone(zone).replace(tzinfo=None)
        def instant(zone, wanted):
            # The first minute whose clock shows `wanted` or later.
            second = int(wanted.replace(tzinfo=utc).timestamp()) - 26 * 3600
            second -= second % 60
            while shown(zone, second) < wanted: second += 60
            return second
        def minutes(text): return int(text[:2]) * 60 + int(text[3:])
        def inside(zone, second, quiet):
            if quiet == "-": return False
            start, end = map(minutes, quiet.split("-"))
            now = shown(zone, second)
            now = now.hour * 60 + now.minute
            return start <= now < end if start < end else now >= start or now < end
        def settle(zone, second, quiet):
            while inside(zone, second, quiet): second += 60
            return second
        names = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Kiritimati",
            "Pacific/Pago_Pago", "America/St_Johns", "Asia/Kathmandu", "Africa/Casablanca", "Europe/Dublin",
            "America/Sao_Paulo", "Pacific/Chatham", "UTC", "Asia/Tehran", "America/Santiago"]
        # Days of clock changes among them: March and October, November and April.
        dates = ["2026-03-28", "2026-03-29", "2026-10-25", "2026-11-01", "2026-03-08", "2026-04-05", "2026-10-04",
            "2026-06-15", "2026-12-31"]
        for _ in range(250):
            name = choose.choice(names)
            zone = zoneinfo.ZoneInfo(name)
            date = choose.choice(dates)
            at = choose.choice(["-", "09:00", "02:30", "01:59", "00:00", "23:45", "02:00", "03:15"])
            late = choose.choice(["send", "skip", "next-day"])
            quiet = choose.choice(["-", "22:00-08:00", "01:30-02:30", "02:15-06:00", "12:00-13:00"])
            if quiet != "-" and at != "-":
                start, end = map(minutes, quiet.split("-"))
                time = minutes(at)
                if (start <= time < end) if start < end else (time >= start or time < end): quiet = "-"
            day = datetime.datetime.fromisoformat(date)
            start = int(day.replace(tzinfo=utc).timestamp()) + 60 * choose.randrange(-2000, 4000)
            if at == "-":
                due = settle(zone, start, quiet)
            else:
                clock = datetime.timedelta(minutes=minutes(at))
                due = instant(zone, day + clock)
                if due >= start: due = settle(zone, due, quiet)
                elif late == "send": due = settle(zone, start, quiet)
                elif late == "skip": due = "missed"
                else:
                    while due < start:
                        day += datetime.timedelta(days=1)
                        due = instant(zone, day + clock)
                    due = settle(zone, due, quiet)
            print(name, date, at, late, quiet, start, due)
        """#

    @Test(arguments: [1, 2, 3])
    func `Instants of rows are those of Python, on days of clock changes too`(seed: Int) throws {
        let directory = try TemporaryDirectory()
        let finished = try Subprocess(
            "timeout", ["300", Tool.path(of: "python3"), "-B", "-c", Self.judge, "\(seed)"],
            in: directory
        ).wait(limit: 320)
        #expect(finished.exitCode == 0, "\(finished.errors.suffix(500))")
        var (moved, missed) = (0, 0)
        for line in finished.output.split(separator: "\n") {
            let parts = line.split(separator: " ").map(String.init)
            let zone = try #require(TimeZoneRulesTests.rules(parts[0]))
            let start = try #require(UInt64(parts[5])) * 1000
            let schedule = DeliverySchedule(
                deliverAt: TimeOfDay(parts[2]), date: CalendarDate(parts[1]), zone: .utc,
                late: try #require(DeliverySchedule.LateRule(rawValue: parts[3])),
                quiet: DayPeriod(parts[4]), startedAt: start)
            let expected = UInt64(parts[6]).map { DeliverySchedule.Instant.at($0 * 1000) }
            #expect(schedule.instant(in: zone) == expected ?? .missed, "\(line)")
            if expected == nil { missed += 1 }
            if expected != .at(start) { moved += 1 }
        }
        #expect(moved > 100 && missed > 10, "\(moved) \(missed)")
    }

    @Test func `The default date is that of the start in the default zone`() throws {
        let zone = try #require(TimeZoneRulesTests.rules("Pacific/Auckland"))
        // 2026-11-27 20:00 UTC is 2026-11-28 09:00 there.
        let start: UInt64 = 1_795_809_600_000
        func date(_ zone: TimeZoneRules) -> String {
            DeliverySchedule(
                deliverAt: TimeOfDay("09:00"), date: nil, zone: zone, late: .send, quiet: nil,
                startedAt: start
            ).date.text
        }
        #expect(date(zone) == "2026-11-28" && date(.utc) == "2026-11-27")
    }

    @Test func `A row that is due waits if quiet hours have begun meanwhile`() throws {
        let zone = try #require(TimeZoneRulesTests.rules("Europe/Berlin"))
        let schedule = DeliverySchedule(
            deliverAt: TimeOfDay("21:00"), date: CalendarDate("2026-11-27"), zone: zone,
            late: .send, quiet: DayPeriod("22:00-08:00"), startedAt: 0)
        guard case .at(let due) = schedule.instant(in: zone) else {
            Issue.record("not missed")
            return
        }
        let hour: UInt64 = 3_600_000
        #expect(due == 1_795_809_600_000)
        #expect(schedule.dueTime(due, in: zone, now: 0) == due)
        #expect(schedule.dueTime(due, in: zone, now: due + hour / 2) == due + hour / 2)
        #expect(schedule.dueTime(due, in: zone, now: due + hour) == due + 11 * hour)
        #expect(schedule.nextQuiet(in: zone, after: due) == due + hour)
        #expect(schedule.nextQuiet(in: zone, after: due + hour) == due + 25 * hour)
    }

    @Test func `A time that is that of the start has not passed`() throws {
        let due: UInt64 = 1_795_809_600_000
        func instant(_ start: UInt64) -> DeliverySchedule.Instant {
            DeliverySchedule(
                deliverAt: TimeOfDay("20:00"), date: CalendarDate("2026-11-27"), zone: .utc,
                late: .skip, quiet: nil, startedAt: start
            ).instant(in: .utc)
        }
        #expect(instant(due - 1) == .at(due) && instant(due) == .at(due))
        #expect(instant(due + 1) == .missed)
    }

    @Test func `A clock that is set back into quiet hours begins them once more`() throws {
        let zone = try #require(TimeZoneRulesTests.rules("America/New_York"))
        let schedule = DeliverySchedule(
            deliverAt: nil, date: nil, zone: zone, late: .send, quiet: DayPeriod("22:00-01:30"),
            startedAt: 0)
        // At 06:00 UTC on 2026-11-01 the clock is set from 02:00 to 01:00.
        let change: UInt64 = 1_793_512_800_000
        let minute: UInt64 = 60_000
        #expect(schedule.nextQuiet(in: zone, after: change - 15 * minute) == change)
        #expect(
            schedule.dueTime(0, in: zone, now: change + 10 * minute) == change + 30 * minute)
        #expect(
            schedule.nextQuiet(in: zone, after: change + 30 * minute) == change + 21 * 60 * minute)
    }

    @Test func `Quiet hours that begin at this moment begin next on the next day`() {
        let schedule = DeliverySchedule(
            deliverAt: nil, date: nil, zone: .utc, late: .send, quiet: DayPeriod("22:00-08:00"),
            startedAt: 0)
        let (night, day): (UInt64, UInt64) = (22 * 3_600_000, 86_400_000)
        #expect(schedule.nextQuiet(in: .utc, after: night - 1_000) == night)
        #expect(schedule.nextQuiet(in: .utc, after: night) == night + day)
        #expect(schedule.dueTime(0, in: .utc, now: night - 1_000) == night - 1_000)
        #expect(schedule.dueTime(0, in: .utc, now: night) == night + 10 * 3_600_000)
        #expect(
            schedule.dueTime(0, in: .utc, now: night + 10 * 3_600_000) == night + 10 * 3_600_000)
    }

    @Test(arguments: [
        "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "26-01-01", "2026-01-32", "",
        "+026-01-01",
        "1969-12-31", "2026-01-01 ", "2100-02-29",
    ])
    func `A date that does not exist is none`(text: String) {
        #expect(CalendarDate(text) == nil)
    }

    @Test func `Dates are written as they are read`() {
        for days in stride(from: Int64(0), to: 2_932_896, by: 997) {
            let date = CalendarDate(days: days)
            #expect(CalendarDate(date.text) == date)
        }
        #expect(CalendarDate("2000-02-29")?.days == 11_016 && CalendarDate("9999-12-31") != nil)
    }

    @Test(arguments: [
        "9:00", "09:0", "24:00", "09:60", "09-00", "0900", "-1:00", "09:00:00", "", "०९:००",
    ])
    func `A text of another form is no time of day`(text: String) {
        #expect(TimeOfDay(text) == nil && DayPeriod("\(text)-10:00") == nil)
        #expect(DayPeriod("10:00-10:00") == nil && DayPeriod("10:00") == nil)
        #expect(TimeOfDay("09:30")?.text == "09:30")
        #expect(DayPeriod("22:00-08:00")?.text == "22:00-08:00")
    }
}
