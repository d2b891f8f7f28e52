import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsidePolicy

/// Zones of the system, against Python's `zoneinfo`.
@Suite struct TimeZoneRulesTests {
    /// Prints the instants of local times in each zone: for each change of its clock, times around
    /// it; otherwise random ones. A local time that is left out is the first instant after it, one
    /// that occurs twice is the first: found by stepping through instants, not by Python's `fold`.
    private static let judge = #"""
        import datetime, random, sys, zoneinfo
        utc = datetime.timezone.utc
        epoch = datetime.datetime(1970, 1, 1)
        choose = random.Random(int(sys.argv[1]))
        def offset(zone, second):
            moment = datetime.datetime.fromtimestamp(second, utc).astimezone(zone)
            return int(moment.utcoffset().total_seconds())
        def instant(zone, local):
            # The first second whose clock shows `local` or later.
            low = local - 26 * 3600
            changes = []
            second = low
            while second < local + 26 * 3600:
                later = second + 900
                if offset(zone, second) != offset(zone, later):
                    a, b = second, later
                    while b - a > 1:
                        middle = (a + b) // 2
                        if offset(zone, a) == offset(zone, middle): a = middle
                        else: b = middle
                    changes.append(b)
                second = later
            for start, end in zip([low] + changes, changes + [local + 27 * 3600]):
                found = max(start, local - offset(zone, start))
                if found < end: return found
        names = sorted(zoneinfo.available_timezones())
        for name in names:
            zone = zoneinfo.ZoneInfo(name)
            seconds = [choose.randrange(0, 4102444800) for _ in range(3)]
            # Changes of the clock between 2020 and 2040.
            year = choose.randrange(2020, 2041)
            start = int(datetime.datetime(year, 1, 1, tzinfo=utc).timestamp())
            days = [start + day * 86400 for day in range(366)]
            jumps = [day for day in days if offset(zone, day) != offset(zone, day + 86400)]
            for day in jumps[:3]:
                seconds += [day + choose.randrange(0, 86400) for _ in range(2)]
            for second in seconds:
                print(name, second, offset(zone, second))
            for day in jumps[:2]:
                for _ in range(3):
                    local = day + offset(zone, day) + choose.randrange(0, 97) * 900
                    print(name, "local", local, instant(zone, local))
        """#

    @Test(arguments: [1, 2])
    func `Offsets and instants of all zones of the system are those of Python`(seed: Int) throws {
        let directory = try TemporaryDirectory()
        let finished = try Subprocess(
            "timeout", ["300", Tool.path(of: "python3"), "-B", "-c", Self.judge, "\(seed)"],
            in: directory
        ).wait(limit: 320)
        #expect(finished.exitCode == 0, "\(finished.errors.suffix(500))")
        var zones: [String: TimeZoneRules] = [:]
        var (count, localCount) = (0, 0)
        for line in finished.output.split(separator: "\n") {
            let parts = line.split(separator: " ").map(String.init)
            let name = parts[0]
            let zone = try zones[name] ?? #require(Self.rules(name), "\(name)")
            zones[name] = zone
            if parts[1] == "local" {
                let (local, expected) = (try #require(Int64(parts[2])), Int64(parts[3]))
                #expect(zone.time(showing: local) == expected, "\(line)")
                localCount += 1
            } else {
                let (time, expected) = (try #require(Int64(parts[1])), Int64(parts[2]))
                #expect(zone.offset(at: time) == expected, "\(line)")
            }
            count += 1
        }
        #expect(zones.count > 400 && localCount > 500, "\(count) lines of \(zones.count) zones")
    }

    static func rules(_ name: String) -> TimeZoneRules? {
        FileManager.default.contents(atPath: "/usr/share/zoneinfo/\(name)").flatMap {
            TimeZoneRules(file: [UInt8]($0))
        }
    }

    @Test func `A file cut off anywhere is no zone, or one of its own rules, and never a crash`() {
        let data = FileManager.default.contents(atPath: "/usr/share/zoneinfo/Europe/Berlin")
        let bytes = [UInt8](data ?? Data())
        #expect(bytes.count > 500)
        for count in 0..<bytes.count {
            #expect(TimeZoneRules(file: Array(bytes[..<count])) == nil, "\(count)")
        }
        var random = SeededRandom(seed: 7)
        for _ in 0..<2_000 {
            var changed = bytes
            for _ in 0..<3 {
                changed[Int(random.next() % UInt64(changed.count))] = UInt8(random.next() % 256)
            }
            guard let zone = TimeZoneRules(file: changed) else { continue }
            for local in stride(from: Int64(0), to: 4_000_000_000, by: 97_000_003) {
                _ = zone.time(showing: local)
            }
        }
    }

    /// A file of a zone without changes in its table.
    private static func file(footer: String, leapCount: UInt8 = 0) -> [UInt8] {
        func header(_ leapCount: UInt8) -> [UInt8] {
            Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
                + [0, 0, leapCount, 0, 1, 4].flatMap { [0, 0, 0, $0] as [UInt8] }
        }
        let type = [UInt8](repeating: 0, count: 6) + Array("AAA\0".utf8)
        return header(0) + type + header(leapCount) + type
            + [UInt8](repeating: 0, count: 12 * Int(leapCount)) + Array("\n\(footer)\n".utf8)
    }

    /// A file of version 1.
    private static func oldFile(leapCount: UInt8) -> [UInt8] {
        Array("TZif".utf8) + [UInt8](repeating: 0, count: 16)
            + [0, 0, leapCount, 0, 1, 4].flatMap { [0, 0, 0, $0] as [UInt8] }
            + [UInt8](repeating: 0, count: 6) + Array("AAA\0".utf8)
            + [UInt8](repeating: 0, count: 8 * Int(leapCount))
    }

    @Test func `A file that counts leap seconds is no zone`() {
        #expect(TimeZoneRules(file: Self.file(footer: "AAA0")) != nil)
        #expect(TimeZoneRules(file: Self.file(footer: "AAA0", leapCount: 1)) == nil)
        #expect(TimeZoneRules(file: Self.oldFile(leapCount: 0)) != nil)
        #expect(TimeZoneRules(file: Self.oldFile(leapCount: 1)) == nil)
    }

    @Test func `Days of a year are counted with February 29, or without it`() throws {
        // March 1 of 2027 and of 2028, a leap year.
        let (plain, leap): (Int64, Int64) = (1_803_859_200, 1_835_481_600)
        let julian = try #require(TimeZoneRules(file: Self.file(footer: "AAA0BBB,J60/0,J300/0")))
        for day in [plain, leap] {
            #expect(julian.offset(at: day - 1) == 0 && julian.offset(at: day) == 3_600)
        }
        let counted = try #require(TimeZoneRules(file: Self.file(footer: "AAA0BBB,59/0,299/0")))
        for day in [plain, leap - 86_400] {
            #expect(counted.offset(at: day - 1) == 0 && counted.offset(at: day) == 3_600)
        }
    }

    @Test func `A change on the first of January is that of the local year`() throws {
        // 2030-12-31 12:00 UTC is 2031-01-01 02:00 there, two hours after the change.
        let east = try #require(TimeZoneRules(file: Self.file(footer: "AAA-14BBB,J1/0,J200/0")))
        #expect(east.offset(at: 1_924_948_800) == 15 * 3_600)
        #expect(east.offset(at: 1_924_948_800 - 7_201) == 14 * 3_600)
        // 13:30 on 2031-01-01 is half an hour after a change from 12:00 to 13:00.
        let noon = try #require(TimeZoneRules(file: Self.file(footer: "AAA0BBB,J1/12,J200/0")))
        #expect(noon.time(showing: 1_925_040_600) == 1_925_040_600 - 3_600)
    }

    @Test(arguments: [
        ("", false), ("EST5", true), ("EST", false), ("EST5EDT", false), ("E5", false),
        ("EST5EDT,M3.2.0,M11.1.0", true), ("EST5EDT,M3.2.7,M11.1.0", false),
        ("EST5EDT,M13.2.0,M11.1.0", false), ("EST5EDT,M3.2.0", false),
        ("<+0330>-3:30", true), ("<+0330-3:30", false), ("IST-2IDT,M3.4.4/26,M10.5.0", true),
        ("XXX3EDT4,0/0,J365/23", true), ("EST27", false), ("EST5EDT,M3.2.0,M11.1.0x", false),
    ])
    func `A rule for later years has POSIX's form`(text: String, isRule: Bool) {
        #expect((YearlyRule(Array(text.utf8)[...]) != nil) == isRule)
    }
}
