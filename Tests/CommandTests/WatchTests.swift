import BroadsideTestSupport
import Foundation
import Testing

/// What tells of a run besides its ledger: terminal, metrics, report, event log, trace of frames.
@Suite(.timeLimit(.minutes(60)))
struct WatchTests {
    /// Runs a command at a pseudo terminal; prints what it wrote, and whether the terminal's modes
    /// are what they were.
    private static let terminal = """
        import fcntl, os, pty, select, signal, struct, sys, termios, time
        columns, narrower = int(sys.argv[1]), int(sys.argv[2])
        # A key, and what is written before the next one is typed.
        keys = [pair.split("=", 1) for pair in sys.argv[3].split("|") if pair]
        master, slave = pty.openpty()
        def resize(columns):
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        resize(columns)
        before = termios.tcgetattr(slave)
        child = os.fork()
        if child == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            os.dup2(slave, 0); os.dup2(slave, 2)
            os.execv(sys.argv[4], sys.argv[4:])
        text, end, acted, since = b"", time.time() + 60, False, 0
        while time.time() < end:
            if select.select([master], [], [], 0.1)[0]: text += os.read(master, 65536)
            if not acted and b" in flight" in text:
                acted = True
                if narrower: resize(narrower)
            if acted and keys and (not since or awaited in text[since:]):
                key, awaited = [part.encode() for part in keys.pop(0)]
                since = len(text)
                os.write(master, b"\\x03" if key == b"^C" else key)
            if os.waitpid(child, os.WNOHANG)[0]: break
        while select.select([master], [], [], 0.2)[0]: text += os.read(master, 65536)
        sys.stdout.write("sane\\n" if termios.tcgetattr(slave) == before else "changed\\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        """

    private func atTerminal(
        _ campaign: Campaign, _ arguments: [String], columns: Int, narrower: Int = 0,
        keys: [(key: String, awaited: String)] = [], environment: [String: String] = [:]
    ) throws -> String {
        let process = try Subprocess(
            "python3",
            [
                "-c", Self.terminal, "\(columns)", "\(narrower)",
                keys.map { "\($0.key)=\($0.awaited)" }.joined(separator: "|"), try Broadside.path(),
            ] + arguments, in: campaign.directory,
            environment: ["LANG": "C.UTF-8", "TERM": "xterm", "LC_ALL": "", "NO_COLOR": ""].merging(
                environment
            ) {
                $1
            })
        let finished = try process.wait(limit: 90)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(finished.output.hasPrefix("sane\n"))
        return finished.output
    }

    /// The rows of a screen of so many columns after all this was written to it.
    private func screen(_ text: String) -> [String] {
        var rows: [String] = [""]
        var row = 0
        var scalars = text.unicodeScalars.makeIterator()
        while let scalar = scalars.next() {
            switch scalar {
            case "\r": break
            case "\n":
                row += 1
                if row == rows.count { rows.append("") }
                rows[row] = ""
            case "\u{1b}":
                var code = ""
                while let next = scalars.next() {
                    code.unicodeScalars.append(next)
                    if next != "[" && next.properties.isAlphabetic { break }
                }
                if code.hasSuffix("A") { row -= Int(code.dropFirst().dropLast()) ?? 0 }
                if code == "[J" {
                    rows = Array(rows.prefix(max(0, row))) + [""]
                }
            default: rows[row].unicodeScalars.append(scalar)
            }
        }
        return rows
    }

    @Test(arguments: [40, 160])
    func `Progress lines are redrawn in place and gone when the run ends`(columns: Int) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 400)
        let output = try atTerminal(
            campaign,
            campaign.arguments(
                to: server.endpoint,
                ["--rate", "150", "--connections", "1", "--progress", "auto", "--yes"]),
            columns: columns)
        #expect(output.contains("\u{1b}[J") && output.contains("█") && output.contains("\u{1b}[1m"))
        #expect(output.contains("bottleneck") && output.contains("150/s"))
        let rows = screen(output)
        #expect(!rows.contains { $0.contains("█") || $0.contains("in flight") }, "\(rows)")
        #expect(rows.contains { $0.contains("accepted    400") }, "\(rows)")
        // What was said before and after is cut between words, and goes on below.
        let place = try #require(rows.firstIndex { $0.hasPrefix("connections  ") }, "\(rows)")
        let goesOn = columns < 80
        #expect(rows[place + 1].hasPrefix(goesOn ? "             " : "rate  "), "\(rows)")
        let end = try #require(rows.firstIndex { $0.hasPrefix("rate  ") }, "\(rows)")
        #expect(rows[place...end].allSatisfy { $0.count <= columns }, "\(rows)")
    }

    @Test func `NO_COLOR, a shrinking window and Ctrl-C leave a sane terminal`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3000)
        let output = try atTerminal(
            campaign,
            campaign.arguments(
                to: server.endpoint,
                ["--rate", "150", "--connections", "1", "--progress", "auto", "--yes"]),
            columns: 120, narrower: 50, keys: [("^C", "")], environment: ["NO_COLOR": "1"])
        #expect(!output.contains("\u{1b}[1m") && !output.contains("\u{1b}[32m"))
        #expect(output.contains("\u{1b}[J"))
        #expect(output.contains("--resume continues"), "\(output)")
    }

    @Test func `Keys pause, continue, slow down, explain and stop a run`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3000)
        let output = try atTerminal(
            campaign,
            campaign.arguments(
                to: server.endpoint,
                ["--rate", "100", "--connections", "1", "--progress", "auto", "--yes"]),
            columns: 80,
            keys: [
                ("p", "paused: press r"), ("r", "bottleneck"), ("-", "limit 80/s"),
                ("?", "pauses the run"), ("q", "q stops it"), ("x", "p pause, q stop"),
                ("q", "q stops it"), ("q", "no new requests"),
            ])
        for said in [
            "the operator paused the run", "the operator continued the run",
            "the operator set the rate to 80 requests per second",
            "no new requests: stopped by the key q",
        ] {
            #expect(output.contains(said), "\(said) in \(output)")
        }
        // The plan is said before the first row, and again.
        #expect(output.matches(of: /list  +/).count >= 2, "\(output)")
        #expect(output.contains("--resume continues"), "\(output)")
    }

    @Test func `--progress json beside --log json prints only objects with all keys`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 250)
        let sent = try campaign.send(
            to: server.endpoint,
            ["--rate", "100", "--connections", "1", "--progress", "json", "--log", "json"])
        #expect(sent.exitCode == 0)
        let page = try String(
            contentsOfFile: "\(Tool.packageRoot)/docs/how-to/runs.md", encoding: .utf8)
        let table = try #require(page.firstMatch(of: /(?s)\| Key \| Value \|\n.*?\n\n/)).0
        let keys = table.split(separator: "\n").filter { !$0.contains("| only if") }
            .compactMap { $0.split(separator: "|").first }
        let documented = Set(
            keys.flatMap { $0.matches(of: /`([a-z_]+)`/) }.map { String($0.1) })
        var events: Set<String> = []
        for line in sent.errors.split(separator: "\n").filter({ $0.hasPrefix("{") }) {
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            if let event = object["event"] as? String {
                events.insert(event)
                #expect((object["time"] as? String)?.hasSuffix("Z") == true)
                #expect((object["campaign"] as? String)?.count == 16)
                if event.hasPrefix("connection") || event == "started" {
                    #expect((object["endpoint"] as? String)?.contains(":") == true, "\(line)")
                }
                if event == "ended" {
                    let counts = try #require(object["counts"] as? [String: Int])
                    #expect(counts["accepted"] == 250 && object["outcome"] as? String == "complete")
                    #expect(object["cause"] as? String == "complete")
                }
                continue
            }
            #expect(object["rows"] as? Int == 250 && object["phase"] is String)
            #expect(Set(object.keys) == documented)
            #expect(object["connections_wanted"] as? Int == 1)
        }
        #expect(
            events.isSuperset(of: ["started", "connection-open", "connection-closed", "ended"]))
        #expect(!sent.errors.contains(campaign.tokens.token(0)))
    }

    @Test
    func `Metrics are in the file at the end and at the endpoint for scrapers alone`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 60)
        let file = "\(campaign.directory.path)/broadside.prom"
        let sent = try campaign.send(to: server.endpoint, ["--metrics", file])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.contains("broadside_rows_settled_total{state=\"accepted\"} 60\n"))
        #expect(text.contains("broadside_phase{phase=\"finished\"} 1\n"))

        let slow = try RecordingServer("stall")
        let other = try Campaign(rows: 300)
        let process = try Broadside.start(
            other.arguments(to: slow.endpoint, ["--metrics", ":0"]), in: other.directory)
        defer { process.send(signal: SIGKILL) }
        let (url, _) = try scrape(process, other)
        #expect(url.hasPrefix("http://127.0.0.1:"))
        let missing = try Subprocess(
            "curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "\(url)x"], in: other.directory
        ).wait(limit: 30)
        #expect(missing.output == "404")
        // A page of another name that resolves to this machine is no scraper.
        for (host, code) in [
            ("evil.example", "403"), ("localhost", "200"), ("localhost:9100", "200"),
            ("[::1]", "200"), ("127.0.0.1.evil.example:80", "403"),
        ] {
            let asked = try Subprocess(
                "curl",
                ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: \(host)", url],
                in: other.directory
            ).wait(limit: 30)
            #expect(asked.output == code, "\(host)")
        }
        let post = try Subprocess(
            "curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x", url],
            in: other.directory
        ).wait(limit: 30)
        #expect(post.output == "405")

        let taken = try campaign.send(
            to: server.endpoint,
            ["--ledger", campaign.ledger + "2", "--metrics", String(url.dropFirst(7).dropLast(8))])
        #expect(taken.exitCode == 2 && taken.errors.contains("--metrics"), "\(taken.errors)")
    }

    @Test(.needs(.prometheus))
    func `promtool accepts the metrics of the file and of the endpoint`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 60)
        let file = "\(campaign.directory.path)/broadside.prom"
        let sent = try campaign.send(to: server.endpoint, ["--metrics", file])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try check(file, campaign)

        let slow = try RecordingServer("stall")
        let other = try Campaign(rows: 300)
        let process = try Broadside.start(
            other.arguments(to: slow.endpoint, ["--metrics", ":0"]), in: other.directory)
        defer { process.send(signal: SIGKILL) }
        try check(scrape(process, other).file, other)
    }

    /// Waits for a run's metrics to have notifications in flight.
    ///
    /// - Returns: Their URL, and a file of what it served.
    private func scrape(
        _ process: Subprocess, _ campaign: Campaign
    ) throws -> (url: String, file: String) {
        var url = ""
        try process.wait {
            let errors = try String(contentsOfFile: process.errorsPath, encoding: .utf8)
            guard errors.contains("/metrics\n"), let range = errors.range(of: "http://") else {
                return false
            }
            url = String(errors[range.lowerBound...].prefix { $0 != "\n" })
            return true
        }
        let file = "\(campaign.directory.path)/scraped"
        try process.wait {
            let curl = try Subprocess.run(
                "curl", ["-sS", "--max-time", "10", "-o", file, url], in: campaign.directory)
            return try curl.exitCode == 0
                && String(contentsOfFile: file, encoding: .utf8).contains("in_flight")
        }
        return (url, file)
    }

    @Test func `A resumed run counts the rows of all runs`() throws {
        let refusing = try RecordingServer("verdicts")
        let campaign = try Campaign(rows: 100)
        let begun = try campaign.send(to: refusing.endpoint, ["--limit", "50"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let file = "\(campaign.directory.path)/broadside.prom"
        /// Rows by state or reason.
        func told(_ name: String) -> [String: Int] {
            let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            let lines = text.matches(of: /broadside_rows_(\w+)_total\{\w+="([^"]*)"\} (\d+)\n/)
            return Dictionary(
                uniqueKeysWithValues: lines.filter { $0.1 == name }.map {
                    (String($0.2), Int($0.3)!)
                })
        }
        let reasons = ["BadDeviceToken": 5, "Unregistered": 5, "SomethingNobodyKnowsYet": 5]
        let server = try RecordingServer()
        let more = ["--resume", "--metrics", file, "--summary", "-"]
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, more + ["--rate", "20", "--connections", "1"]),
            in: campaign.directory)
        try process.wait { told("settled")["accepted"] ?? 0 > 35 }
        #expect(told("refused") == reasons)
        let ended = try process.wait(limit: 60)
        #expect(ended.exitCode == 0, "\(ended.errors)")
        let summary = try SendSummary(json: ended.output)
        for _ in 0..<2 {
            #expect(summary.reasons == reasons && told("refused") == reasons)
            let settled = told("settled")
            #expect(settled["accepted"] == summary.accepted && summary.accepted == 85)
            #expect(settled["rejected"] == summary.rejected && summary.rejected == 15)
            try FileManager.default.removeItem(atPath: file)
            #expect(try campaign.send(to: server.endpoint, more).exitCode == 0)
        }
    }

    private func check(_ file: String, _ campaign: Campaign) throws {
        let verdict = try Subprocess(
            "promtool", ["check", "metrics"], in: campaign.directory, input: file
        )
        .wait(limit: 60)
        #expect(
            verdict.exitCode == 0 && verdict.errors.isEmpty && verdict.output.isEmpty,
            "\(verdict.errors)\(verdict.output)")
    }

    @Test func `Metrics are written again once their disk works, and each failure is told once`()
        throws
    {
        let campaign = try Campaign(rows: 10_000)
        let server = try LocalAPNs()
        let folder = "\(campaign.directory.path)/metrics"
        let file = "\(folder)/run.prom"
        let files = FileManager.default
        try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "100", "--metrics", file]),
            in: campaign.directory)
        for failure in 1...2 {
            try process.wait { files.fileExists(atPath: file) }
            try files.moveItem(atPath: folder, toPath: campaign.directory.fresh("moved"))
            try process.wait {
                try String(contentsOfFile: process.errorsPath, encoding: .utf8)
                    .ranges(of: "the metrics are not updated").count == failure
            }
            // Several more writes fail.
            usleep(2_500_000)
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
        }
        try process.wait { files.fileExists(atPath: file) }
        process.send(signal: SIGTERM)
        let stopped = try process.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let count = stopped.errors.ranges(of: "the metrics are not updated").count
        #expect(count == 2, "\(stopped.errors)")
    }

    @Test func `--trace-frames has every frame of both directions and no secret`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let file = "\(campaign.directory.path)/frames"
        let sent = try campaign.send(
            to: server.endpoint, ["--trace-frames", file, "--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        var types: [String: Int] = [:]
        for line in text.split(separator: "\n") {
            let frame = try #require(
                try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let type = try #require(frame["type"] as? String)
            types["\(frame["direction"] ?? "") \(type)", default: 0] += 1
            #expect(frame["connection"] as? Int == 1 && frame["length"] is Int)
            if type == "HEADERS" {
                let headers = try #require(frame["headers"] as? [[String]])
                #expect(headers.contains { $0[0] == ":path" || $0[0] == ":status" })
            }
        }
        #expect(types["sent HEADERS"] == 20 && types["received HEADERS"] == 20)
        #expect(types["sent DATA"] == 20 && types["sent SETTINGS"] == 2)
        #expect(types["received SETTINGS"] == 2 && types["sent GOAWAY"] == 1)
        for index in 0..<20 {
            #expect(!text.contains(campaign.tokens.token(index)))
            #expect(text.contains("/3/device/\(campaign.tokens.token(index).prefix(8))..."))
        }
        #expect(text.contains("bearer (") && !text.contains("bearer ey"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }
}
