import BroadsideTestSupport
import Foundation
import Testing

/// `--control` and `broadside control`: what an operator says to a run under way.
@Suite(.timeLimit(.minutes(60)))
struct ControlTests {
    private func control(_ campaign: Campaign, _ words: String...) throws -> Finished {
        try Broadside.run(
            ["control", socket(campaign), "--json"] + words, in: campaign.directory, limit: 30)
    }

    private func socket(_ campaign: Campaign) -> String { "\(campaign.directory.path)/control" }

    private func status(_ campaign: Campaign) throws -> [String: Any] {
        let answer = try control(campaign, "status")
        guard answer.exitCode == 0 else { return [:] }
        let object = try JSONSerialization.jsonObject(with: Data(answer.output.utf8))
        return try #require(object as? [String: Any])
    }

    /// Waits until a run accepts requests, which is a moment after its socket is there.
    private func wait(_ process: Subprocess, at place: [String], _ campaign: Campaign) throws {
        try process.wait {
            try Broadside.run(["control"] + place + ["status"], in: campaign.directory).exitCode
                == 0
        }
    }

    /// Times in the server's journal, seconds.
    private func times(_ journal: [[String]]) throws -> [Double] {
        try journal.map { try #require(Double($0[0])) / 1e6 }.sorted()
    }

    @Test
    func `Pause, rate, resume and stop act within a second and lose or repeat no row`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 60_000)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--connections", "2", "--rate", "6000", "--control", socket(campaign),
                    "--summary", "-", "--give-up-after", "5s", "--report",
                    "\(campaign.directory.path)/report.html",
                ]), in: campaign.directory)
        try process.wait { try status(campaign)["settled"] as? Int ?? 0 >= 3000 }
        let asked = ContinuousClock.now
        let before = try status(campaign)
        #expect(try control(campaign, "pause").exitCode == 0)
        let seconds = (ContinuousClock.now - asked) / .seconds(1)
        var last: Int?
        try process.wait {
            // Counts may be 250 ms old.
            Thread.sleep(forTimeInterval: 0.3)
            let found = try status(campaign)
            let settled = found["settled"] as? Int
            defer { last = settled }
            return found["in_flight"] as? Int == 0 && settled == last
        }
        // Longer than --give-up-after: a pause is not silence of the server.
        Thread.sleep(forTimeInterval: 5.5)
        #expect(process.isRunning)
        let still = try status(campaign)
        #expect(still["phase"] as? String == "paused")
        #expect(still["in_flight"] as? Int == 0)
        let paused = try #require(still["settled"] as? Int)
        let settled = try #require(before["settled"] as? Int)
        let inFlight = try #require(before["in_flight"] as? Int)
        #expect(
            Double(paused - settled - inFlight) < 6000 * (seconds + 1),
            "the pause was felt within a second")
        #expect(try control(campaign, "rate", "1000").exitCode == 0)
        let resumed = ContinuousClock.now
        #expect(try control(campaign, "resume").exitCode == 0)
        var sent = 0
        try process.wait {
            sent = (try status(campaign)["settled"] as? Int ?? 0) - paused
            return sent >= 2000
        }
        let rate = Double(sent) / ((ContinuousClock.now - resumed) / .seconds(1))
        #expect(sent >= 2000 && rate < 1100, "1,000 a second from the end of the pause")
        #expect(try control(campaign, "stop").exitCode == 0)
        let stopped = try process.wait(limit: 60)
        #expect(stopped.exitCode == 3)
        #expect(stopped.errors.contains("--resume"), "\(stopped.errors)")
        #expect(!FileManager.default.fileExists(atPath: socket(campaign)))
        let summary = try SendSummary(json: stopped.output)
        #expect(summary.unknown == 0 && summary.accepted < 60_000)
        let page = try String(
            contentsOfFile: "\(campaign.directory.path)/report.html", encoding: .utf8)
        for words in [
            "paused the run", "1,000 requests per second", "continued the run", "stopped the run",
        ] {
            #expect(page.contains(words), "\(words)")
        }

        let rest = try campaign.send(to: server.endpoint, ["--resume", "--summary", "-"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        let journal = try server.finish()
        #expect(journal.count == 60_000)
        #expect(Set(journal.map { $0[4] }).count == 60_000)

        // By the server's own clock.
        let first = Array(try times(journal).prefix(summary.accepted))
        let gap = try #require(
            first.indices.dropLast().max {
                first[$0 + 1] - first[$0] < first[$1 + 1] - first[$1]
            })
        #expect(first[gap + 1] - first[gap] > 5)
        #expect(gap + 1 == paused, "no request came during the pause")
    }

    @Test
    func `The control socket is its owner's, and replaces a stale socket but no other file`() throws
    {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let path = socket(campaign)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--control", path]), in: campaign.directory)
        try wait(process, at: [path], campaign)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        // In use: another run names another place, and has sent nothing.
        let other = try campaign.send(
            to: server.endpoint, ["--ledger", campaign.ledger + "2", "--control", path])
        #expect(other.exitCode == 2 && other.errors.contains("in use"), "\(other.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger + "2"))
        process.send(signal: SIGKILL)
        _ = try process.wait()
        #expect(FileManager.default.fileExists(atPath: path), "a killed run leaves it")
        let nobody = try control(campaign, "status")
        #expect(nobody.exitCode == 1 && nobody.errors.contains("nothing listens"))

        let fine = try RecordingServer()
        let next = try Campaign(rows: 5)
        for path in [next.ledger, next.ledger + "/"] {
            let same = try next.send(to: fine.endpoint, ["--control", path])
            #expect(same.exitCode == 2 && same.errorLines.count == 1, "\(same.errors)")
            #expect(same.errors.contains("--control and --ledger name the same place"))
            #expect(!FileManager.default.fileExists(atPath: next.ledger))
        }
        let sent = try next.send(to: fine.endpoint, ["--control", path])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(!FileManager.default.fileExists(atPath: path))

        let file = try next.directory.write("precious", to: "precious")
        let refused = try next.send(
            to: fine.endpoint, ["--ledger", next.ledger + "2", "--control", file])
        #expect(refused.exitCode == 2 && refused.errors.contains("is not a socket"))
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
    }

    @Test
    func `A run is controlled through its ledger, however long the ledger's path is`() throws {
        for name in ["ledger", String(repeating: "long-", count: 40)] {
            let server = try RecordingServer("stall")
            let campaign = try Campaign(rows: 300)
            let ledger = "\(campaign.directory.path)/\(name)"
            func ask(_ words: String...) throws -> Finished {
                try Broadside.run(
                    ["control", "--ledger", ledger] + words, in: campaign.directory, limit: 30)
            }
            let absent = try ask("status")
            #expect(absent.exitCode == 2 && absent.errors.contains("No such file"))
            let process = try Broadside.start(
                campaign.arguments(to: server.endpoint, ["--ledger", ledger]),
                in: campaign.directory)
            defer { process.send(signal: SIGKILL) }
            try wait(process, at: ["--ledger", ledger], campaign)
            let mode = try FileManager.default.attributesOfItem(atPath: ledger + "/control")
            #expect(mode[.posixPermissions] as? Int == 0o600)
            #expect(try ask("status").output.contains("phase "), "for people")
            let rate = try ask("rate", "7", "--json")
            #expect(rate.output.contains(#""rate_limit":7"#), "\(rate.output)")
            #expect(try ask("frob").exitCode == 2)
            // A ledger with a socket in it is a ledger like any other.
            #expect(
                try Broadside.run(
                    ["ledger", "stats", "--ledger", ledger], in: campaign.directory
                ).exitCode == 0)
            process.send(signal: SIGKILL)
            _ = try process.wait()
            #expect(FileManager.default.fileExists(atPath: ledger + "/control"), "left behind")
            let gone = try ask("status")
            #expect(gone.exitCode == 1 && gone.errors.contains("no run is writing"))
            #expect(gone.errors.contains("ledger stats --ledger"), "\(gone.errors)")

            // The next run takes its place, and takes it away in the end.
            let fine = try RecordingServer()
            let resumed = try campaign.send(
                to: fine.endpoint, ["--ledger", ledger, "--resume", "--retry", "unknown"])
            #expect(resumed.exitCode == 0, "\(resumed.errors)")
            #expect(!resumed.errors.contains("control"), "\(resumed.errors)")
            #expect(!FileManager.default.fileExists(atPath: ledger + "/control"))
        }
        let empty = try TemporaryDirectory()
        let foreign = try Broadside.run(
            ["control", "--ledger", empty.path, "status"], in: empty, limit: 30)
        #expect(foreign.exitCode == 2 && foreign.errors.contains("is not a ledger"))
    }

    @Test
    func `A file at the control socket's path is kept, and the campaign is sent without it`() throws
    {
        let campaign = try Campaign(rows: 300)
        let stalled = try RecordingServer("stall")
        let process = try Broadside.start(
            campaign.arguments(to: stalled.endpoint), in: campaign.directory)
        try process.wait {
            FileManager.default.fileExists(atPath: campaign.ledger + "/control")
        }
        process.send(signal: SIGKILL)
        _ = try process.wait()
        let place = campaign.ledger + "/control"
        try FileManager.default.removeItem(atPath: place)
        try Data("precious".utf8).write(to: URL(filePath: place))
        let fine = try RecordingServer()
        let resumed = try campaign.send(
            to: fine.endpoint, ["--resume", "--retry", "unknown"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(resumed.errors.contains("warning: broadside control --ledger will not reach"))
        #expect(try String(contentsOfFile: place, encoding: .utf8) == "precious")
    }

    @Test func `A malformed control request is refused, and the connection stays open`() throws {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let path = socket(campaign)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--control", path]), in: campaign.directory)
        defer { process.send(signal: SIGKILL) }
        try wait(process, at: [path], campaign)
        for words in [["frob"], ["rate", "-5"], ["rate", "0x10"], ["rate"], ["status", "now"]] {
            let answer = try Broadside.run(["control", path] + words, in: campaign.directory)
            #expect(answer.exitCode == 2 && answer.errorLines.count == 1, "\(answer.errors)")
        }
        let text = try Broadside.run(["control", path, "status"], in: campaign.directory)
        #expect(text.exitCode == 0 && text.output.contains("phase"), "\(text.output)")

        // Somebody who holds every place, says too much, or goes away.
        let program = """
            import json, socket, sys
            def connect():
                one = socket.socket(socket.AF_UNIX); one.settimeout(20); one.connect(sys.argv[1])
                return one
            many = connect()
            many.sendall(b"status\\nfrob\\r\\nstat")
            lines = b""
            while lines.count(b"\\n") < 2: lines += many.recv(65536)
            many.sendall(b"us\\n")
            while lines.count(b"\\n") < 3: lines += many.recv(65536)
            print([json.loads(line)["ok"] for line in lines.splitlines()])
            long = connect(); long.sendall(b"x" * 5000)
            rest = b""
            try:
                while True:
                    part = long.recv(65536)
                    if not part: break
                    rest += part
            except ConnectionError: pass
            print(b"status" not in rest)
            idle = [connect() for _ in range(7)]
            for one in idle: one.close()
            last = connect(); last.sendall(b"status\\n")
            print(json.loads(last.recv(65536))["ok"])
            """
        let python = try Subprocess.run(
            "python3", ["-c", program, path], in: campaign.directory, limit: 60)
        #expect(python.output == "[True, False, True]\nTrue\nTrue\n", "\(python.errors)")
        #expect(process.isRunning)
    }
}
