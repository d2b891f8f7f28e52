import BroadsideTestSupport
import Foundation
import Testing

/// `broadside status`: what each run does now, or how the last one ended.
@Suite(.timeLimit(.minutes(60)))
struct StatusTests {
    private struct Line: Decodable {
        var ledger: String
        var campaign: String?
        var name: String?
        var state: String
        var started_at_ms: UInt64?
        var rows: UInt64?
        var settled: UInt64?
        var failed: UInt64?
        var unknown: UInt64?
        var rate: UInt64?
        var limited_by: String?
        var limited: Bool?
        var eta_seconds: Double?
        var error: String?
    }

    private func status(
        _ arguments: [String], in directory: TemporaryDirectory, zone: String = "UTC"
    ) throws -> Finished {
        let script = "cd '\(directory.path)' && exec \"$@\""
        return try Subprocess(
            "sh", ["-c", script, "sh", Broadside.path(), "status"] + arguments, in: directory,
            environment: ["TZ": zone]
        ).wait(limit: 60)
    }

    private func lines(_ finished: Finished) throws -> [String: Line] {
        let lines = try finished.output.split(separator: "\n").map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        return Dictionary(uniqueKeysWithValues: lines.map { ($0.ledger, $0) })
    }

    @Test
    func `status shows a run from the first request to the last row, as text and JSON`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 9000)
        let directory = campaign.directory
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--rate", "150", "--name", "Night ❄"]),
            in: directory)
        func state() throws -> Line? {
            try lines(status(["--json", "ledger"], in: directory))["ledger"]
        }
        // On a busy machine, the rate is not the limit at times, and is caught up afterwards.
        var latest: Line?
        try process.wait {
            latest = try state()
            return latest?.settled ?? 0 >= 300 && latest?.limited_by == "rate"
                && (120...180).contains(latest?.rate ?? 0)
        }
        let running = try #require(latest)
        #expect(running.state == "running" && running.name == "Night ❄")
        #expect(running.campaign == (try campaign.statistics().campaign))
        #expect((1...120).contains(try #require(running.eta_seconds)), "\(running)")
        // Without a name it looks at the current directory.
        try process.wait {
            let table = try status([], in: directory)
            #expect(table.exitCode == 0, "\(table.errors)")
            #expect(table.output.contains("ledger  Night ❄  running  "), "\(table.output)")
            return table.output.contains("the rate limit")
        }
        for (word, expected) in [("pause", "paused"), ("resume", "running"), ("stop", "stopped")] {
            let control = try Broadside.run(
                ["control", "--ledger", campaign.ledger, word], in: directory, limit: 30)
            #expect(control.exitCode == 0, "\(control.errors)")
            if word == "stop" { _ = try process.wait(limit: 60) }
            #expect(try state()?.state == expected)
        }
        let stopped = try #require(try state())
        #expect(stopped.rows == 9000 && stopped.settled ?? 0 >= 300 && stopped.rate == nil)
        #expect(stopped.settled == UInt64(try campaign.statistics().accepted))
        #expect(
            try status(["ledger"], in: directory).output.contains(
                "\(stopped.settled! * 100 / 9000)% of 9,000"))

        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        let complete = try #require(try state())
        #expect(complete.state == "complete" && complete.settled == 9000 && complete.rows == 9000)
        #expect(running.limited == nil && complete.limited == false)
        #expect(try status(["ledger"], in: directory).output.contains("100% of 9,000"))
    }

    @Test func `status counts rows that an earlier run sent beyond the limit of the latest run`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3000)
        func state() throws -> Line? {
            try lines(status(["--json", "ledger"], in: campaign.directory))["ledger"]
        }
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "200"]), in: campaign.directory)
        try process.wait { try state()?.settled ?? 0 > 60 }
        process.send(signal: SIGINT)
        #expect(try process.wait(limit: 60).exitCode == 3)
        let sent = try campaign.statistics().accepted
        let start = try #require(try state()?.started_at_ms)
        #expect(
            try campaign.send(to: server.endpoint, ["--resume", "--limit", "20"]).exitCode == 0)
        let line = try #require(try state())
        #expect(line.state == "complete" && sent > 60, "\(line)")
        #expect(line.rows == UInt64(sent) && line.settled == UInt64(sent), "\(line)")
        #expect(line.started_at_ms == start, "the campaign's start, not that of its latest run")
        #expect(line.limited == true)
        let table = try status(["ledger"], in: campaign.directory).output
        #expect(table.contains(" (--limit)"), "\(table)")
    }

    @Test func `status counts failed and unknown rows of a finished campaign`() throws {
        let stalled = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let directory = campaign.directory
        let process = try Broadside.start(
            campaign.arguments(to: stalled.endpoint, ["--limit", "5000"]), in: directory)
        try process.wait { try !stalled.events().filter { $0.fields != nil }.isEmpty }
        process.send(signal: SIGKILL)
        _ = try process.wait()
        let killed = try #require(
            try lines(status(["--json", "ledger"], in: directory))["ledger"])
        #expect(killed.state == "interrupted" && killed.limited == nil, "\(killed)")
        let server = try RecordingServer()
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 6, "\(resumed.errors)")
        let unknown = try campaign.statistics().unknown
        #expect(unknown > 0)
        let telemetry = "\(campaign.ledger)/telemetry.json"
        // By the run's own word, and counted where there is none.
        for isThere in [true, false] {
            if !isThere { try FileManager.default.removeItem(atPath: telemetry) }
            let line = try #require(
                try lines(status(["--json", "ledger"], in: directory))["ledger"])
            #expect(line.state == "complete" && line.settled == 300 && line.failed == 0)
            #expect(line.unknown == UInt64(unknown), "\(line)")
            let table = try status(["ledger"], in: directory).output
            #expect(table.contains("100% of 300, \(unknown) unknown"), "\(table)")
        }
        #expect(
            try campaign.send(to: server.endpoint, ["--resume", "--retry", "unknown"]).exitCode
                == 0)
        let line = try #require(try lines(status(["--json", "ledger"], in: directory))["ledger"])
        #expect(line.state == "complete" && line.unknown == 0 && line.failed == 0)
        let table = try status(["ledger"], in: directory).output
        #expect(table.contains("100% of 300") && !table.contains("unknown"), "\(table)")
        // A zone without summer time, five and a half hours before UTC.
        let local = try status(["ledger"], in: directory, zone: "Asia/Kolkata").output
        #expect(local.contains(#/\d{4}-\d\d-\d\d \d\d:\d\d IST  /#), "\(local)")
        #expect(table.contains(#/\d\d:\d\d UTC  /#), "\(table)")
    }

    @Test(.enabled(if: geteuid() == 0, "only root can make a directory of another user"))
    func `status names a directory that it may not read and shows the others`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3)
        let directory = campaign.directory
        let nights = "\(directory.path)/nights"
        for name in ["", "/lost+found"] {
            try FileManager.default.createDirectory(
                atPath: nights + name, withIntermediateDirectories: false)
        }
        #expect(chmod("\(nights)/lost+found", 0o700) == 0)
        let sent = try campaign.send(to: server.endpoint, ["--ledger", "\(nights)/monday"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let user = 61_235
        for path in [directory.path, nights, "\(nights)/monday"]
            + (try directory.names(in: "\(nights)/monday").map { "\(nights)/monday/\($0)" })
        {
            #expect(chown(path, uid_t(user), gid_t(user)) == 0)
        }
        func ask(_ words: String...) throws -> Finished {
            try Subprocess(
                "setpriv",
                ["--reuid=\(user)", "--regid=\(user)", "--clear-groups", Broadside.path()] + words,
                in: directory
            ).wait(limit: 60)
        }
        let shown = try ask("status", "--json", nights)
        #expect(shown.exitCode == 0 && shown.errorLines.count == 1, "\(shown.errors)")
        #expect(shown.errors.contains("\(nights)/lost+found"), "\(shown.errors)")
        #expect(try lines(shown).mapValues(\.state) == ["\(nights)/monday": "complete"])
        let page = try ask("report", "--all", nights, "--output", "\(directory.path)/page.html")
        #expect(page.exitCode == 0 && page.errors.contains("lost+found"), "\(page.errors)")
        // What is named itself is an error.
        let named = try ask("status", "\(nights)/lost+found")
        #expect(
            named.exitCode == 5 && named.errors.contains("Permission denied"), "\(named.errors)")
    }

    @Test
    func `status distinguishes a killed run, a refused campaign, damage and other directories`()
        throws
    {
        let directory = try TemporaryDirectory()
        func path(_ name: String) -> String { "\(directory.path)/nights/\(name)" }
        try FileManager.default.createDirectory(
            atPath: path("notes"), withIntermediateDirectories: true)
        let stalled = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let process = try Broadside.start(
            campaign.arguments(to: stalled.endpoint, ["--ledger", path("killed")]),
            in: campaign.directory)
        try process.wait {
            try Broadside.run(
                ["control", "--ledger", path("killed"), "status"], in: directory
            ).exitCode == 0
        }
        process.send(signal: SIGKILL)
        _ = try process.wait()
        let refusing = try LocalAPNs()
        let refused = try campaign.send(
            to: refusing.endpoint, ["--ledger", path("refused"), "--team-id", "ZZZZZZZZZZ"])
        #expect(refused.exitCode == 4, "\(refused.errors)")
        let server = try RecordingServer()
        #expect(try campaign.send(to: server.endpoint, ["--ledger", path("whole")]).exitCode == 0)
        for (shard, rows) in [("1/3", 100), ("2/3", 100), ("3/3", 100)] {
            let name = "shard-\(shard.prefix(1))"
            let sent = try campaign.send(
                to: server.endpoint, ["--ledger", path(name), "--shard", shard])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let line = try lines(status(["--json", "nights/\(name)"], in: directory)).values.first
            let counted = try Broadside.run(
                ["ledger", "stats", "--ledger", path(name)], in: directory)
            #expect(counted.output.contains("rows        \(line?.rows ?? 0)\n"), "\(shard)")
            #expect(line?.rows ?? 0 <= UInt64(rows) + 2 && line?.settled == line?.rows)
            try FileManager.default.removeItem(atPath: path(name))
        }
        try FileManager.default.copyItem(atPath: path("whole"), toPath: path("damaged"))
        try Data("{}".utf8).write(to: URL(filePath: path("damaged/manifest.json")))

        let all = try status(["--json", "nights"], in: directory)
        #expect(all.exitCode == 5 && all.errorLines.count == 1, "\(all.errors)")
        // Its path is said once before the command that repairs it.
        let parts = all.errors.components(separatedBy: "broadside ledger repair --ledger ")
        #expect(parts.count == 2, "\(all.errors)")
        #expect(parts[0].components(separatedBy: "nights/damaged").count == 2, "\(all.errors)")
        #expect(!parts[0].contains("--ledger"), "\(all.errors)")
        let found = try lines(all).mapValues(\.state)
        #expect(
            found == [
                "nights/killed": "interrupted", "nights/refused": "aborted",
                "nights/whole": "complete", "nights/damaged": "unreadable",
            ], "\(found)")
        #expect(try lines(all)["nights/damaged"]?.error != nil)
        let killed = try Broadside.run(
            ["ledger", "stats", "--ledger", path("killed")], in: directory)
        #expect(killed.output.contains(": interrupted\n"), "\(killed.output)")
        for name in ["nights/notes", "nowhere", "nights/whole/manifest.json"] {
            let wrong = try status([name], in: directory)
            #expect(wrong.exitCode == 2 && wrong.errors.contains(name), "\(wrong.errors)")
            #expect(wrong.output.isEmpty)
        }
        #expect(
            try status(["nights/whole", "nights/whole"], in: directory).output
                .split(separator: "\n").count == 2, "a ledger that is named twice is one")
    }
}
