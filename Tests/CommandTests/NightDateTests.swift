import BroadsideTestSupport
import Foundation
import Testing

/// The date that a start of `broadside night` is about, after starts that failed, came late, or still run.
@Suite(.timeLimit(.minutes(60)))
struct NightDateTests {
    private let server: RecordingServer
    private let nights: Nights

    init() throws {
        server = try RecordingServer()
        nights = try Nights(rows: 6, endpoint: server.endpoint)
    }

    private func requests() throws -> Int { try server.answers().count }

    /// One start whose payload is missing.
    private func fail(at time: (day: Int, clock: String)) throws {
        let payload = nights.campaign.payloadFile
        try FileManager.default.moveItem(atPath: payload, toPath: payload + ".away")
        defer { try? FileManager.default.moveItem(atPath: payload + ".away", toPath: payload) }
        #expect(try nights.run(at: time).exitCode == 2)
    }

    @Test
    func `A start that finds its date finished long ago warns and names a free date`()
        throws
    {
        // The start of day 1 ended before it was noted, and was repeated after midnight.
        #expect(try nights.run(at: (2, "00:06")).exitCode == 0)
        for (clock, more) in [("12:05", []), ("20:05", ["--night-length", "20h"])] {
            let again = try nights.run(more, at: (2, clock))
            #expect(again.exitCode == 0, "\(again.errors)")
            #expect(again.errors.contains("is finished: nothing is sent"), "\(again.errors)")
            #expect(!again.errors.contains("warning"), "\(again.errors)")
        }
        let late = try nights.run(at: (2, "23:55"))
        #expect(late.exitCode == 0 && late.errorLines.count == 1, "\(late.errors)")
        #expect(
            late.errors.contains("warning: the night of \(nights.date(2)) began 23 h 4")
                && late.errors.contains("--date \(nights.date(1)), which was never sent"),
            "\(late.errors)")
        #expect(try requests() == 6)
        let named = try nights.run(["--date", nights.date(2)], at: (2, "23:55"))
        #expect(named.exitCode == 0 && !named.errors.contains("warning"), "\(named.errors)")
        #expect(try nights.run(["--date", nights.date(1)], at: (2, "23:56")).exitCode == 0)
        // Now no date is free until midnight.
        let full = try nights.run(at: (2, "23:57"))
        #expect(full.exitCode == 0 && full.errors.contains("after midnight"), "\(full.errors)")
        #expect(try requests() == 12)
        #expect(try nights.run(at: (3, "23:55")).exitCode == 0)
        #expect(try requests() == 18)
    }

    @Test
    func `A finished night that began late after failed starts does not block the next date`()
        throws
    {
        try fail(at: (1, "00:30"))
        #expect(try nights.run(at: (1, "14:00")).exitCode == 0)
        // A repeat of that evening is none of the next date.
        let repeated = try nights.run(at: (1, "23:50"))
        #expect(repeated.exitCode == 0, "\(repeated.errors)")
        let next = try nights.run(at: (2, "00:30"))
        #expect(next.exitCode == 0, "\(next.errors)")
        #expect(try nights.has(2) && requests() == 12)
        // A failed test by day does not make the repeats after midnight begin the next date.
        try fail(at: (3, "10:00"))
        #expect(try nights.run(at: (3, "22:00")).exitCode == 0)
        let after = try nights.run(at: (4, "00:10"))
        #expect(after.exitCode == 0, "\(after.errors)")
        #expect(
            after.errors.contains("may begin from \(nights.date(4)) 06:00 UTC on"),
            "\(after.errors)")
        #expect(try !nights.has(4) && requests() == 18)
    }

    @Test
    func `Starts with one date file are about the night of the first until the next evening`()
        throws
    {
        let directory = nights.campaign.directory
        let file = "\(directory.path)/date"
        func start(_ day: Int, _ clock: String, _ more: [String] = []) throws -> Finished {
            try nights.run(["--date-file", file] + more, at: (day, clock))
        }
        func text() throws -> String { try String(contentsOfFile: file, encoding: .utf8) }
        #expect(try start(1, "19:00", ["--dry-run"]).exitCode == 0)
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(try start(1, "23:55").exitCode == 0)
        #expect(try text().hasPrefix("\(nights.date(1)) "))
        for clock in ["11:57", "19:30"] {
            let again = try start(2, clock)
            #expect(again.exitCode == 0, "\(again.errors)")
            #expect(
                again.errors.contains("the night of \(nights.date(1)) is finished: nothing is sent")
                    && again.errors.contains("this is the date in \(file)"),
                "\(again.errors)")
        }
        // --date replaces the file, and leaves it as it is.
        let named = try start(2, "19:35", ["--date", nights.date(0)])
        #expect(named.exitCode == 0, "\(named.errors)")
        #expect(try nights.has(0) && text().hasPrefix(nights.date(1)))
        let next = try start(2, "23:55")
        #expect(next.exitCode == 0, "\(next.errors)")
        #expect(try nights.has(2) && text().hasPrefix(nights.date(2)))
        #expect(try requests() == 18)

        try directory.write("a list\n", to: "date")
        let refused = try start(3, "23:55")
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("--date-file \(file)"), "\(refused.errors)")
        #expect(try text() == "a list\n" && !nights.has(3))
    }

    @Test func `A start during another night names its own date, which a repeat needs`() throws {
        let slow = try Nights(rows: 3_000, endpoint: server.endpoint, ["--rate", "100"])
        let running = try slow.start(at: (1, "23:55"))
        try slow.waitForRows(running, day: 1)
        let next = try slow.run(at: (2, "23:55"))
        #expect(next.exitCode == 7, "\(next.errors)")
        #expect(
            next.errors.contains("then run the same command with --date \(slow.date(2))\n"),
            "\(next.errors)")
        // After midnight, a start is about the night that runs.
        let same = try slow.run(at: (2, "00:10"))
        #expect(same.exitCode == 7 && !same.errors.contains("--date"), "\(same.errors)")
        running.send(signal: SIGTERM)
        #expect(try running.wait(limit: 120).exitCode == 3)
    }

    @Test func `A start whose TZ is an unknown zone sends nothing, and UTC needs no zone's file`()
        throws
    {
        let typo = ["TZ": "Europe/Berlni"]
        for more in [[], ["--dry-run"], ["--date", nights.date(1)]] {
            let refused = try nights.run(more, at: (1, "23:30"), environment: typo)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errors.contains("TZ is 'Europe/Berlni', a time zone that this system"))
        }
        let nowhere = nights.campaign.directory.path
        let lacking = try nights.run(
            at: (1, "23:30"), environment: ["TZ": "Europe/Berlin", "TZDIR": nowhere])
        #expect(lacking.exitCode == 2, "\(lacking.errors)")
        #expect(lacking.errors.contains("unset TZDIR"), "\(lacking.errors)")
        #expect(try !nights.has(1) && !nights.has(2) && requests() == 0)
        for (zone, day) in [("", 1), ("UTC", 1), ("CET-1CEST,M3.5.0,M10.5.0", 2)] {
            let looked = try nights.run(
                ["--dry-run"], at: (1, "23:30"), environment: ["TZ": zone, "TZDIR": nowhere])
            #expect(
                looked.exitCode == 0
                    && looked.errors.contains("the night of \(nights.date(day)) would begin"),
                "\(looked.errors)")
        }
    }

    @Test func `A night whose notes are lost continues after midnight, and no other night begins`()
        throws
    {
        let nights = try Nights(rows: 300, endpoint: server.endpoint)
        #expect(try nights.runCutShort(at: (1, "23:55")).exitCode == 3)
        try FileManager.default.removeItem(atPath: "\(nights.folder)/evening/nights")
        let looked = try nights.run(["--dry-run"], at: (2, "00:20"))
        #expect(
            looked.errors.contains("the night of \(nights.date(1)) would continue"),
            "\(looked.errors)")
        // The second start finds the note that the first one has made.
        for clock in ["00:20", "00:40"] {
            let again = try nights.run(at: (2, clock))
            #expect(again.exitCode == 0, "\(again.errors)")
            #expect(try !nights.has(2) && requests() == 300)
        }
        #expect(try nights.notes().contains { $0.hasPrefix("\(nights.date(1)) intended ") })
        #expect(try nights.run(at: (2, "23:55")).exitCode == 0)
        #expect(try nights.has(2) && requests() == 600)
    }

    @Test
    func `A start by day after a failed evening names that date, and so does the next evening's`()
        throws
    {
        try fail(at: (1, "23:55"))
        for more in [["--dry-run"], []] {
            let begun = try nights.run(more, at: (2, "13:00"))
            #expect(begun.exitCode == 0, "\(begun.errors)")
            #expect(
                begun.errors.contains(
                    "warning: the night of \(nights.date(1)) was started, but never sent")
                    && begun.errors.contains("run the same command with --date \(nights.date(1))"),
                "\(begun.errors)")
        }
        let next = try nights.run(at: (2, "23:55"))
        #expect(next.exitCode == 0 && next.errors.contains("nothing is sent"), "\(next.errors)")
        #expect(
            next.errors.contains("warning: the night of \(nights.date(2)) began 10 h 5")
                && next.errors.contains("--date \(nights.date(1)), which was never sent"),
            "\(next.errors)")
        let named = try nights.run(["--date", nights.date(1)], at: (2, "23:56"))
        #expect(named.exitCode == 0 && !named.errors.contains("warning"), "\(named.errors)")
        let full = try nights.run(at: (2, "23:57"))
        #expect(full.exitCode == 0 && !full.errors.contains("warning"), "\(full.errors)")
        #expect(try requests() == 12)
    }

    @Test
    func `A start that fails before its note names its date in the hours before midnight`() throws {
        let advice = "; after midnight, run the same command with --date \(nights.date(1))\n"
        func check(_ more: [String] = [], _ exitCode: Int32 = 2) throws {
            for (day, clock, isNamed) in [(1, "23:55", true), (1, "09:00", false)] {
                let failed = try nights.run(more, at: (day, clock))
                #expect(
                    failed.exitCode == exitCode && failed.errorLines.count == 1, "\(failed.errors)")
                #expect(failed.errors.hasSuffix(advice) == isNamed, "\(failed.errors)")
            }
            for others in [["--date", nights.date(1)], ["--dry-run"]] {
                let failed = try nights.run(more + others, at: (1, "23:55"))
                #expect(!failed.errors.contains("after midnight"), "\(failed.errors)")
            }
        }
        try check(["--rate", "abc"])
        try check(["--night-length", "21h"])
        let text = try String(contentsOfFile: nights.file, encoding: .utf8)
        try nights.campaign.directory.write("{ \"tokns\": \"a\" }\n", to: "evening.json5")
        try check()
        try text.write(toFile: nights.file, atomically: true, encoding: .utf8)
        let folder = "\(nights.folder)/evening"
        try FileManager.default.createDirectory(
            atPath: "\(folder)/\(nights.date(0))", withIntermediateDirectories: true)
        try nights.campaign.directory.write("", to: "nights/evening/nights")
        try check([], 5)
    }
}
