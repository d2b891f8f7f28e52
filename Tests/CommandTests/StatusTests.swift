import Foundation
import TestSupport
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
        var rate: UInt64?
        var limited_by: String?
        var eta_seconds: Double?
        var error: String?
    }

    private func status(_ arguments: [String], in directory: TemporaryDirectory) throws -> Finished
    {
        let script = "cd '\(directory.path)' && exec \"$@\""
        return try Subprocess(
            "sh", ["-c", script, "sh", Broadside.path(), "status"] + arguments, in: directory
        ).wait(limit: 60)
    }

    private func lines(_ finished: Finished) throws -> [String: Line] {
        let lines = try finished.output.split(separator: "\n").map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        return Dictionary(uniqueKeysWithValues: lines.map { ($0.ledger, $0) })
    }

    @Test("A run is followed from its first request to its last row, in words and in JSON")
    func run() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3000)
        let directory = campaign.directory
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--rate", "500", "--name", "Night ❄"]),
            in: directory)
        func state() throws -> Line? {
            try lines(status(["--json", "ledger"], in: directory))["ledger"]
        }
        try process.wait { try state()?.settled ?? 0 >= 1000 }
        let running = try #require(try state())
        #expect(running.state == "running" && running.name == "Night ❄")
        #expect(running.campaign == (try campaign.statistics().campaign))
        #expect(try #require(running.rate) <= 600 && running.limited_by == "rate")
        #expect((1...10).contains(try #require(running.eta_seconds)), "\(running)")
        // Without a name it looks at the current directory.
        let table = try status([], in: directory)
        #expect(table.exitCode == 0, "\(table.errors)")
        #expect(table.output.contains("ledger  Night ❄  running  "), "\(table.output)")
        #expect(table.output.contains("the rate limit"))
        for (word, expected) in [("pause", "paused"), ("resume", "running"), ("stop", "stopped")] {
            let control = try Broadside.run(
                ["control", "--ledger", campaign.ledger, word], in: directory, limit: 30)
            #expect(control.exitCode == 0, "\(control.errors)")
            if word == "stop" { _ = try process.wait(limit: 60) }
            #expect(try state()?.state == expected)
        }
        let stopped = try #require(try state())
        #expect(stopped.rows == 3000 && stopped.settled ?? 0 > 1000 && stopped.rate == nil)
        #expect(stopped.settled == UInt64(try campaign.statistics().accepted))
        #expect(
            try status(["ledger"], in: directory).output.contains(
                "\(stopped.settled! * 100 / 3000)% of 3,000"))

        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        let complete = try #require(try state())
        #expect(complete.state == "complete" && complete.settled == 3000 && complete.rows == 3000)
        #expect(try status(["ledger"], in: directory).output.contains("100% of 3,000"))
    }

    @Test("A killed run, a refused campaign, damage and what is not a ledger are told apart")
    func ends() throws {
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
        #expect(all.errors.contains("nights/damaged") && !all.errors.contains("--ledger"))
        let found = try lines(all).mapValues(\.state)
        #expect(
            found == [
                "nights/killed": "interrupted", "nights/refused": "aborted",
                "nights/whole": "complete", "nights/damaged": "unreadable",
            ], "\(found)")
        #expect(try lines(all)["nights/damaged"]?.error != nil)
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
