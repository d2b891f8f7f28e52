import BroadsideTestSupport
import Foundation
import Testing

/// `broadside night`: what each start does, by the folder that it leaves and the requests that a server saw.
@Suite(.timeLimit(.minutes(60)))
struct NightTests {
    private static let rows = 60
    /// Options with which a night ends before its last row. Its first row may not be sent either.
    private static let cutShort = ["--deadline", "1s", "--rate", "20"]
    private let files = FileManager.default

    /// The requests that a server has got so far.
    private func requests(_ server: RecordingServer) throws -> Int {
        try server.answers().count
    }

    @Test func `A night is sent once, and later starts say that it is finished`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let first = try nights.run()
        #expect(first.exitCode == 0 && first.errors.isEmpty, "\(first.errors)")
        let date = try #require(nights.notes().first?.prefix(10))
        let place = "\(nights.folder)/evening/\(date)"
        #expect(
            try nights.notes().map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
                == ["\(date) intended", "\(date) begun"])
        // The list and the payload of a finished night may be gone, or tomorrow's.
        try nights.campaign.directory.write("x\n", to: "tokens.txt")
        try files.removeItem(atPath: nights.campaign.payloadFile)
        let summary = "\(nights.campaign.directory.path)/summary.json"
        for more in [[], ["--date", String(date)], ["--summary", summary]] {
            let again = try nights.run(more)
            #expect(again.exitCode == 0)
            #expect(again.errors == "the night of \(date) is finished: nothing is sent\n")
        }
        let told = try SendSummary(json: String(contentsOfFile: summary, encoding: .utf8))
        #expect(told.accepted == Self.rows && told.outcome == "complete")
        #expect(try requests(server) == Self.rows)

        let report = try String(contentsOfFile: "\(place)/report.html", encoding: .utf8)
        #expect(report.contains("<html") && report.contains("</html>"))
        let index = try String(
            contentsOfFile: "\(nights.folder)/evening/index.html", encoding: .utf8)
        #expect(index.contains("href=\"\(date)/report.html\""))
        #expect(index.contains("It is complete."), "\(index)")
        // With the page in it, it is a ledger like any other.
        for command in [
            ["ledger", "verify", "--ledger", place], ["ledger", "export", "--ledger", place],
            ["ledger", "stats", "--ledger", place], ["status", place],
            ["report", "--ledger", place], ["status", "\(nights.folder)/evening"],
            ["ledger", "repair", "--ledger", place, "--output", "\(place)-repaired"],
            ["ledger", "merge", "--output", "\(place)-merged", place],
        ] {
            let done = try Broadside.run(command, in: nights.campaign.directory)
            #expect(done.exitCode == (command[1] == "merge" ? 2 : 0), "\(command): \(done.errors)")
        }
    }

    @Test func `A damaged night continues with its repaired ledger, as the message says`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        #expect(try nights.runCutShort(at: (1, "20:00")).exitCode == 3)
        let (place, directory) = (nights.ledger(1), nights.campaign.directory)
        try "x".write(toFile: "\(place)/manifest.json", atomically: true, encoding: .utf8)
        let refused = try nights.run(at: (1, "20:10"))
        #expect(refused.exitCode == 5, "\(refused.errors)")
        let advice = "move the damaged one elsewhere, rename the new one to \(nights.date(1))"
        #expect(refused.errors.contains(advice), "\(refused.errors)")

        let repaired = try Broadside.run(
            ["ledger", "repair", "--ledger", place, "--output", "\(place)-repaired"], in: directory)
        #expect([0, 5].contains(repaired.exitCode), "\(repaired.errors)")
        try files.moveItem(atPath: place, toPath: "\(directory.path)/damaged")
        try files.moveItem(atPath: "\(place)-repaired", toPath: place)
        let rest = try nights.run(at: (1, "20:20"))
        #expect([0, 6].contains(rest.exitCode), "\(rest.errors)")
        let counts = try nights.statistics(1)
        #expect(counts.remaining == 0 && counts.accepted + counts.unknown == Self.rows)
        #expect(try server.tally(nights.campaign.tokens).repeated == 0)
        let again = try nights.run(at: (1, "20:30"))
        #expect(again.errors.contains("is finished: nothing is sent"), "\(again.errors)")
    }

    @Test
    func `A dry run after the night is about the next one, and says of its date that it is over`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let few = try nights.run(["--limit", "5"], at: (1, "19:50"))
        #expect(few.exitCode == 0, "\(few.errors)")
        let same = try nights.run(["--limit", "5", "--dry-run"], at: (1, "19:55"))
        #expect(same.errors.contains("is not sent again; the next night"), "\(same.errors)")
        let others = try nights.run(["--dry-run"], at: (1, "19:55"))
        #expect(
            others.errors.contains("the night of \(nights.date(1)) would continue")
                && others.output.contains("to send      \(Self.rows - 5)\n"),
            "\(others.errors) \(others.output)")
        #expect(try nights.run(Self.cutShort, at: (1, "20:00")).exitCode == 3)
        let sent = try nights.statistics(1).accepted
        let rest = try nights.run(["--dry-run"], at: (1, "20:05"))
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(
            rest.output.contains("to send      \(Self.rows - sent)\n")
                && rest.output.contains("settled      \(sent) by"), "\(rest.output)")
        #expect(try nights.run(at: (1, "20:10")).exitCode == 0)
        // The list of the next night.
        let device = String(repeating: "cd", count: 32)
        try "\(device)\n".write(
            toFile: nights.campaign.list, atomically: true, encoding: .utf8)
        let next = try nights.run(["--dry-run"], at: (1, "21:00"))
        #expect(next.exitCode == 0, "\(next.errors)")
        #expect(
            next.errors.contains("is not sent again; the next night would be as follows")
                && next.output.contains("to send      1\n"), "\(next.errors) \(next.output)")
        let over = try nights.run(["--dry-run", "--date", nights.date(1)], at: (1, "21:00"))
        #expect(over.exitCode == 0 && over.output.isEmpty, "\(over.output)")
        #expect(
            over.errors == "the night of \(nights.date(1)) is finished: nothing would be sent\n")
        #expect(try requests(server) == Self.rows)
    }

    @Test func `A night whose waves last longer than a night continues is a warning`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 3, endpoint: server.endpoint)
        func warning(_ time: String, _ more: [String] = []) throws -> String {
            let looked = try nights.run(
                ["--dry-run", "--deliver-at", time, "--zone-default", "UTC"] + more,
                at: (1, "00:30"))
            #expect(looked.exitCode == 0, "\(looked.errors)")
            return looked.errors
        }
        #expect(try warning("12:25").contains("warning") == false)
        let long = try warning("13:30")
        #expect(long.contains("the last wave is due at "), "\(long)")
        #expect(long.contains("after the start, but a night lasts 12 h 00 m. "), "\(long)")
        #expect(try warning("13:30", ["--night-length", "14h"]).contains("warning") == false)
    }

    @Test func `A night that was stopped continues after midnight until its length is over`() throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 600, endpoint: server.endpoint)
        let end = try nights.runCutShort(at: (1, "23:55"))
        #expect(end.exitCode == 3, "\(end.errors)")
        #expect(
            end.errors.contains("--date \(nights.date(1)) continues")
                && !end.errors.contains("--resume") && !end.errors.contains("--ledger "),
            "\(end.errors)")
        // A dry run by day looks at the same night, and changes nothing.
        let looked = try nights.run(["--dry-run"], at: (2, "00:20"))
        #expect(looked.exitCode == 0, "\(looked.errors)")
        #expect(looked.errors.contains("the night of \(nights.date(1)) would continue"))
        let continued = try nights.run(at: (2, "00:30"))
        #expect(continued.exitCode == 0, "\(continued.errors)")
        #expect(continued.errors.contains("the night of \(nights.date(1)) continues in"))
        #expect(try nights.statistics(1).accepted == 600)
        let again = try nights.run(at: (2, "11:54"))
        #expect(again.exitCode == 0 && again.errors.contains("is finished: nothing is sent"))
        #expect(
            again.errors.contains(
                "may begin from \(nights.date(2)) 11:55 UTC on, or now with --date \(nights.date(2))"
            ),
            "\(again.errors)")
        #expect(!nights.has(2))
        let byDay = try nights.run(["--dry-run"], at: (2, "11:00"))
        #expect(byDay.errors.contains("the night of \(nights.date(2)) would begin"))
        #expect(try nights.run(at: (2, "23:55")).exitCode == 0)
        #expect(try nights.statistics(2).accepted == 600)
        let tally = try server.tally(nights.campaign.tokens)
        #expect(tally.counts.allSatisfy { $0 == 2 })
    }

    @Test
    func `An earlier night with rows left is named, stays as it is, and continues by its date`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 300, endpoint: server.endpoint)
        #expect(try nights.runCutShort(at: (1, "23:55")).exitCode == 3)
        let before = try nights.statistics(1)
        #expect(before.accepted > 0 && before.remaining ?? 0 > 0)
        for time in ["12:00", "23:55"] {
            let next = try nights.run(at: (2, time))
            #expect(next.exitCode == 0, "\(next.errors)")
            #expect(
                next.errors.contains(
                    "warning: the night of \(nights.date(1)) is not complete, and is not continued by this start: to "
                        + "send the rest of it, run the same command with --date \(nights.date(1)); if it is not to be sent any more, rename "
                        + "\(nights.ledger(1)) to \(nights.ledger(1))-ended, where --skip-dead and --history still find it"
                ),
                "\(next.errors)")
        }
        #expect(try nights.statistics(1) == before)
        let rest = try nights.run(
            ["--date", nights.date(1)], at: (2, "23:58"))
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try nights.statistics(1).accepted == 300)
        #expect(try nights.run(at: (3, "23:55")).errors.contains("not complete") == false)
    }

    @Test func `A part is sent every night, with other apns-ids`() throws {
        let server = try RecordingServer()
        let nights = try Nights(
            rows: 5, endpoint: server.endpoint,
            ["--part", "1/2", "--campaign-id", "0123456789abcdef"])
        var campaigns: Set<String> = []
        for day in 1...2 {
            #expect(try nights.run(["--dry-run"], at: (day, "20:00")).exitCode == 0)
            let sent = try nights.run(at: (day, "20:00"))
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let again = try nights.run(at: (day, "20:05"))
            #expect(again.errors.contains("is finished: nothing is sent"), "\(again.errors)")
            campaigns.insert(try nights.statistics(day).campaign)
        }
        #expect(campaigns.count == 2 && !campaigns.contains("0123456789abcdef"), "\(campaigns)")
        #expect(try requests(server) == 10)
    }

    @Test func `A night whose ledger is gone is exit 2 on its date, and the next one warns of it`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        #expect(try nights.run(at: (1, "23:55")).exitCode == 0)
        try files.moveItem(atPath: nights.ledger(1), toPath: nights.ledger(1) + ".elsewhere")
        for more in [[], ["--date", nights.date(1)], ["--dry-run"]] {
            let lost = try nights.run(more, at: (1, "23:58"))
            #expect(lost.exitCode == 2, "\(lost.errors)")
            #expect(
                lost.errors.contains("its ledger is gone. Its rows may already have been sent"),
                "\(lost.errors)")
            #expect(!nights.has(1))
        }
        try files.createDirectory(atPath: nights.ledger(1), withIntermediateDirectories: false)
        #expect(try nights.run(at: (2, "00:10")).exitCode == 2)
        try files.removeItem(atPath: nights.ledger(1))
        for more in [["--dry-run"], []] {
            let next = try nights.run(more, at: (2, "23:55"))
            #expect(next.exitCode == 0, "\(next.errors)")
            #expect(
                next.errors.contains(
                    "warning: the night of \(nights.date(1)) was started, but its ledger "
                        + "\(nights.ledger(1)) is gone: rows of it may remain unsent, and "
                        + "--skip-dead lacks its reports: put the ledger back"), "\(next.errors)")
        }
        let later = try nights.run(["--dry-run"], at: (3, "23:55"))
        #expect(later.exitCode == 0 && !later.errors.contains("is gone"), "\(later.errors)")
        try files.moveItem(atPath: nights.ledger(1) + ".elsewhere", toPath: nights.ledger(1))
        #expect(try nights.run(["--date", nights.date(1)], at: (2, "23:58")).exitCode == 0)
        #expect(try requests(server) == 2 * Self.rows)
    }

    @Test func `A night whose first start sent nothing may begin again`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let payload = nights.campaign.payloadFile
        // Nothing is begun by a campaign that is wrong.
        try files.moveItem(atPath: payload, toPath: payload + ".away")
        #expect(try nights.run(at: (1, "23:55")).exitCode == 2)
        try files.moveItem(atPath: payload + ".away", toPath: payload)
        // No contact: the ledger is kept, as the night has to continue in it.
        let port = try Ports.free()
        let none = try nights.run(
            ["--endpoint", "localhost:\(port)", "--give-up-after", "1s"], at: (1, "23:56"))
        #expect(none.exitCode == 1, "\(none.errors)")
        #expect(nights.has(1))
        #expect(try nights.run(at: (2, "00:20")).exitCode == 0)
        #expect(try nights.statistics(1).accepted == Self.rows && !nights.has(2))
        #expect(try requests(server) == Self.rows)
    }

    @Test func `A list that turns out to be wrong discards the ledger, and the night begins again`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 2, endpoint: server.endpoint)
        // More invalid rows than are allowed, where only the run itself finds them, before it has sent a row.
        let tokens = try String(contentsOfFile: nights.campaign.list, encoding: .utf8)
        let wrong = String(repeating: "oops\n", count: 1_000)
        try nights.campaign.directory.write(
            String(repeating: tokens, count: 450) + String(repeating: wrong, count: 2),
            to: "wrong.txt")
        let path = nights.campaign.directory.path
        let refused = try nights.run(
            [
                "--tokens", "\(path)/wrong.txt", "--suppress", nights.campaign.list,
                "--max-invalid",
                "20",
            ], at: (1, "23:55"))
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(!nights.has(1))
        let notes = try nights.notes()
        #expect(notes.last?.hasPrefix("\(nights.date(1)) withdrawn ") == true, "\(notes)")
        let right = try nights.run(at: (2, "00:10"))
        #expect(right.exitCode == 0, "\(right.errors)")
        #expect(try nights.statistics(1).accepted == 2)
        #expect(try requests(server) == 2)
    }

    @Test func `Of two starts at once one sends, and the other is exit 7`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 600, endpoint: server.endpoint)
        let starts = try (1...2).map { _ in try nights.start(["--rate", "5"], at: (1, "23:55")) }
        // Until one has ended, the other has rows to send.
        while starts.allSatisfy(\.isRunning) { usleep(10_000) }
        let sending = try #require(starts.first { $0.isRunning })
        try sending.wait {
            try Broadside.run(
                ["control", "--ledger", nights.ledger(1), "rate", "1000"],
                in: nights.campaign.directory
            ).exitCode == 0
        }
        let ends = try starts.map { try $0.wait(limit: 120) }
        #expect(ends.map(\.exitCode).sorted() == [0, 7], "\(ends.map(\.errors))")
        let loser = try #require(ends.first { $0.exitCode == 7 })
        #expect(loser.errors.contains("another process is at work on"), "\(loser.errors)")
        #expect(loser.errorLines.count == 1)
        #expect(try server.tally(nights.campaign.tokens).counts.allSatisfy { $0 == 1 })
    }

    @Test func `While another night is at work a start is exit 7, and says which one`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 3_000, endpoint: server.endpoint, ["--rate", "100"])
        let running = try nights.start(at: (1, "23:55"))
        try nights.waitForRows(running, day: 1)
        for more in [[], ["--date", nights.date(2)]] {
            let next = try nights.run(more, at: (2, "23:55"))
            #expect(next.exitCode == 7)
            #expect(
                next.errors.contains("at work on the night of \(nights.date(1))"), "\(next.errors)")
        }
        running.send(signal: SIGTERM)
        #expect(try running.wait(limit: 120).exitCode == 3)
        // By hand, without the notes.
        let byHand = try Broadside.start(
            [
                "send", "--campaign", nights.file, "--resume", "--ledger", nights.ledger(1),
                "--skip-dead", "\(nights.folder)/evening",
            ],
            in: nights.campaign.directory)
        try byHand.wait {
            let status = try? Broadside.run(
                ["status", nights.ledger(1)], in: nights.campaign.directory)
            return status?.output.contains("running") == true
        }
        let next = try nights.run(at: (2, "23:55"))
        #expect(next.exitCode == 7)
        #expect(
            next.errors.contains("the night of \(nights.date(1)) is still running"),
            "\(next.errors)")
        byHand.send(signal: SIGTERM)
        #expect(try byHand.wait(limit: 120).exitCode == 3)
        #expect(!nights.has(2))
        #expect(try server.tally(nights.campaign.tokens).counts.allSatisfy { $0 <= 1 })
    }

    @Test
    func
        `Only the newest ledgers are kept, and a night whose ledger was removed is not sent again`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        // Not complete, so that it is kept.
        #expect(try nights.runCutShort(at: (1, "23:55")).exitCode == 3)
        // Dates that did not begin here, and folders with other files.
        let strange = "\(nights.folder)/evening/2020-01-01"
        try files.createDirectory(atPath: strange, withIntermediateDirectories: false)
        try "mine".write(toFile: "\(strange)/file", atomically: true, encoding: .utf8)
        for day in 2...4 {
            #expect(try nights.run(["--keep", "5"], at: (day, "23:55")).exitCode == 0)
        }
        try "mine".write(
            toFile: "\(nights.ledger(2))/export.csv", atomically: true, encoding: .utf8)
        let kept = try nights.run(["--keep", "2"], at: (5, "23:55"))
        #expect(kept.exitCode == 0)
        #expect(
            kept.errors.contains("\(nights.ledger(2)) is kept, because export.csv in it"),
            "\(kept.errors)")
        #expect((1...5).map(nights.has) == [true, true, false, true, true])
        #expect(files.fileExists(atPath: "\(strange)/file"))
        try files.removeItem(atPath: "\(nights.ledger(2))/export.csv")
        #expect(try nights.run(["--keep", "1"], at: (5, "23:58")).exitCode == 0)
        #expect((1...5).map(nights.has) == [true, false, false, false, true])
        #expect(!kept.errors.contains("removed 1 ledger"), "\(kept.errors)")
        // Nor are their claims left, but that of the night that is not complete.
        let claims = try nights.campaign.directory.names(in: "\(nights.folder)/evening")
            .filter { $0.hasPrefix(".") }
        #expect(claims.count == 2, "\(claims)")
        let removed = try nights.run(["--date", nights.date(3)], at: (5, "23:59"))
        #expect(removed.exitCode == 0)
        #expect(removed.errors.contains("--keep has removed its ledger: nothing is sent"))
        // A night that is not finished removes none.
        #expect(
            try nights.run(["--keep", "1"] + Self.cutShort, at: (6, "23:55")).exitCode == 3)
        #expect(nights.has(5))
        #expect(try requests(server) < 6 * Self.rows)
    }

    @Test func `Rows that failed or are unknown are exit 6, and the retry is named`() throws {
        let server = try RecordingServer("reset")
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        #expect(try nights.run(at: (1, "23:55")).exitCode == 6)
        let unknown = try nights.statistics(1).unknown
        let again = try nights.run(at: (1, "23:56"))
        #expect(again.exitCode == 6)
        #expect(
            again.errors.contains("(\(unknown) unknown)")
                && again.errors.contains("--date \(nights.date(1)) --retry unknown"),
            "\(again.errors)")
        let retried = try nights.run(
            ["--date", nights.date(1), "--retry", "unknown"], at: (2, "08:00"))
        #expect(retried.exitCode == 0, "\(retried.errors)")
        #expect(retried.errors.contains("night of \(nights.date(1)) continues"))
        #expect(try nights.run(at: (2, "08:01")).exitCode == 0)
        // Nothing is left to retry.
        for more in [[], ["--dry-run"]] {
            let finished = try nights.run(
                ["--date", nights.date(1), "--retry", "failed,unknown"] + more, at: (2, "08:02"))
            #expect(finished.exitCode == 0, "\(finished.errors)")
            #expect(!finished.errors.contains("the night of"), "\(finished.errors)")
        }
    }

    @Test
    func `Two campaigns of one name, or a ledger of that date beside, are not taken for the night`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let path = nights.campaign.directory.path
        #expect(try nights.run(at: (1, "23:55")).exitCode == 0)
        try files.createDirectory(
            atPath: "\(path)/other", withIntermediateDirectories: false)
        try files.copyItem(atPath: nights.file, toPath: "\(path)/other/evening.json5")
        func other(_ more: [String] = []) throws -> Finished {
            try Broadside.run(
                ["night", "--campaign", "\(path)/other/evening.json5", "--ledgers", nights.folder]
                    + more, in: nights.campaign.directory, environment: nights.clock(1, "23:57"))
        }
        let refused = try other()
        #expect(refused.exitCode == 2 && refused.errors.contains("--name"), "\(refused.errors)")
        #expect(try other(["--name", "other"]).exitCode == 0)
        // As a script left it that named its ledgers after the date alone.
        try files.moveItem(atPath: nights.ledger(1), toPath: "\(nights.folder)/\(nights.date(1))")
        let beside = try other(["--name", "third"])
        #expect(
            beside.exitCode == 2 && beside.errors.contains("is already a ledger for that date"),
            "\(beside.errors)")
        #expect(try requests(server) == 2 * Self.rows)
    }

    @Test func `What names no folder, no day and no night is exit 2, and names the option`() throws
    {
        let nights = try Nights(rows: 1, endpoint: "localhost:1")
        let path = nights.campaign.directory.path
        try nights.campaign.directory.write("", to: "file")
        for (more, words) in [
            (["--date", nights.date(2)], "--date \(nights.date(2)) is in the future"),
            (["--date", "2026-02-30"], "--date '2026-02-30' is not a date"),
            (["--date", "tomorrow"], "--date 'tomorrow' is not a date"),
            (["--night-length", "21h"], "--night-length must be above 0 and at most 20h"),
            (["--night-length", "0s"], "--night-length"), (["--keep", "0"], "--keep '0'"),
            (["--keep", "5000"], "--keep '5000'"), (["--name", "a/b"], "--name 'a/b'"),
            (["--name", ".a"], "--name '.a'"), (["--name", ".."], "--name '..'"),
            (["--ledger", "x"], "--ledgers DIR"), (["--resume"], "remove it"),
            (["--summary", "\(nights.folder)/evening/nights"], "--summary"),
        ] {
            let refused = try nights.run(more, at: (1, "23:55"))
            #expect(refused.exitCode == 2, "\(more): \(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(refused.errors.contains(words), "\(more): \(refused.errors)")
            #expect(try nights.campaign.directory.names(in: nights.folder).isEmpty, "\(more)")
        }
        for (words, part) in [
            (["--campaign", "\(path)/none.json5", "--ledgers", nights.folder], "none.json5"),
            (
                ["--campaign", nights.file, "--ledgers", "\(path)/none"],
                "create the folder yourself"
            ),
            (["--campaign", nights.file, "--ledgers", "\(path)/file"], "is not a directory"),
            (["--campaign", nights.file], "--ledgers is missing"),
            (["--ledgers", nights.folder], "--campaign is missing"),
        ] {
            let refused = try Broadside.run(["night"] + words, in: nights.campaign.directory)
            #expect(refused.exitCode == 2 && refused.errors.contains(part), "\(refused.errors)")
            #expect(refused.errorLines.count == 1)
        }
    }

    @Test
    func `A folder that can't be locked or synced begins nothing, and pages decide no exit code`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let library = try Shim.compile("fail-calls", in: nights.campaign.directory)
        let fail = ["LD_PRELOAD": library, "FAIL_FILE": "\(nights.campaign.directory.path)/fail"]
        try nights.campaign.directory.write("folder", to: "fail")
        let failed = try nights.run(environment: fail)
        #expect(failed.exitCode == 5 && failed.errorLines.count == 1, "\(failed.errors)")
        #expect(try requests(server) == 0)
        try nights.campaign.directory.write("", to: "fail")
        // In the place of both pages something is that can't be replaced.
        let folder = "\(nights.folder)/evening"
        try files.createDirectory(
            atPath: "\(folder)/index.html/full", withIntermediateDirectories: true)
        let sent = try nights.run(environment: fail)
        #expect(sent.exitCode == 0)
        #expect(sent.errors.contains("warning: a report page was not written"), "\(sent.errors)")
        #expect(try requests(server) == Self.rows)
    }

    @Test func `A campaign file may hold the night's options, and other commands pass over them`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let text = try String(contentsOfFile: nights.file, encoding: .utf8)
        try nights.campaign.directory.write(
            text.dropLast(2)
                + ",\n\"ledgers\": \"nights\", \"keep\": 2, \"night-length\": \"6h\" }\n",
            to: "evening.json5")
        for command in [["send", "--dry-run"], ["probe", "--dry-run"], ["tokens", "check"]] {
            let done = try Broadside.run(
                command + ["--campaign", nights.file], in: nights.campaign.directory)
            #expect(done.exitCode == 0, "\(command): \(done.errors)")
        }
        let sent = try Broadside.run(
            ["night", "--campaign", nights.file], in: nights.campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let preview = try nights.run(["--preview", "1"])
        #expect(preview.exitCode == 0, "\(preview.errors)")
        let printed = try nights.run(["--print-campaign"])
        #expect(printed.exitCode == 0 && printed.output.contains("\"night-length\": \"6h\""))
    }
}
