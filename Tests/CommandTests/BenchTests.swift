import BroadsideTestSupport
import Foundation
import Testing

/// `broadside bench`, briefly: its figures, what it refuses, and that nothing is left of it.
@Suite(.timeLimit(.minutes(60)))
struct BenchTests {
    private struct Figures: Decodable {
        struct Latency: Decodable {
            var p50: Double
            var p99: Double
        }
        struct Simulator: Decodable {
            var cpu_microseconds_per_notification: Double
        }
        struct Machine: Decodable {
            var vaes: Bool
            var library: String
        }
        var notifications: Int
        var seconds: Double
        var notifications_per_second: Double
        var cpu_microseconds_per_notification: Double
        var bytes_per_notification: Double
        var payload_bytes: Int
        var connections: Int
        struct Column: Decodable {
            var up_to_ms: Double
            var answers: Int
        }
        struct Reference: Decodable {
            var version: String
            var notifications: Int
            var cpu_microseconds_per_notification: Double
        }
        var latency_ms: Latency
        var latency_histogram: [Column]
        /// Where h2load is installed and the simulator is the benchmark's.
        var h2load: Reference?
        var limited_by: [String: Double]
        /// Where there was one of its own.
        var simulator: Simulator?
        var machine: Machine
    }

    @Test func `bench prints its figures as JSON and leaves no file`() throws {
        let directory = try TemporaryDirectory()
        let place = "\(directory.path)/place"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false)
        let finished = try Broadside.run(
            [
                "bench", "--json", "--duration", "200ms", "--connections", "2", "--streams", "20",
                "--reactors", "1", "--latency", "20ms", "--payload-bytes", "100",
            ], in: directory, environment: ["TMPDIR": place])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let figures = try JSONDecoder().decode(Figures.self, from: Data(finished.output.utf8))
        #expect(figures.notifications > 0 && figures.seconds > 0)
        #expect(figures.notifications_per_second > 0)
        #expect(figures.cpu_microseconds_per_notification > 0)
        #expect(try #require(figures.simulator).cpu_microseconds_per_notification > 0)
        // Two frame headers and the path's literal token are more than 50 bytes.
        #expect(figures.payload_bytes == 100 && figures.bytes_per_notification > 150)
        #expect(figures.connections == 2)
        #expect(figures.latency_ms.p50 >= 20 && figures.latency_ms.p99 >= figures.latency_ms.p50)
        #expect(!figures.limited_by.isEmpty)
        #expect(try directory.names(in: place).isEmpty)
        let columns = figures.latency_histogram
        let bounds = columns.map(\.up_to_ms)
        #expect(columns.count == 16 && zip(bounds, bounds.dropFirst()).allSatisfy { $0.0 < $0.1 })
        // What lies in two columns is divided between them, and rounded.
        let all = columns.map(\.answers).reduce(0, +)
        #expect(abs(all - figures.notifications) <= columns.count, "\(all)")
        // The median is the upper end of what is counted together, which is 4 % wide.
        let late = columns.filter { $0.up_to_ms >= figures.latency_ms.p50 * 0.95 }.map(\.answers)
        #expect(late.reduce(0, +) * 2 >= all * 9 / 10, "\(columns) \(figures.latency_ms)")
        let early = columns.filter { $0.up_to_ms <= figures.latency_ms.p50 * 0.95 }.map(\.answers)
        #expect(early.reduce(0, +) * 2 <= all * 11 / 10, "\(columns) \(figures.latency_ms)")
        let reference = try #require(figures.h2load)
        #expect(reference.version.hasPrefix("h2load nghttp2/"))
        #expect(reference.notifications == figures.notifications)
        #expect(reference.cpu_microseconds_per_notification > 0)
        // OpenSSL's own command loads the same library.
        let openssl = try Subprocess.run(
            Tool.path(of: "openssl"), ["version"], in: directory
        ).output
        #expect(openssl.contains("(Library: \(figures.machine.library) "), "\(openssl)")
        let flags = try String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)
            .split(separator: "\n").first { $0.hasPrefix("flags") }
        #expect(figures.machine.vaes == (flags ?? "").split(separator: " ").contains("vaes"))
    }

    @Test func `bench without h2load, or with one that fails, shows no figures of h2load`() throws {
        let directory = try TemporaryDirectory()
        let folder = "\(directory.path)/bin"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let arguments = ["bench", "--duration", "500ms", "--connections", "1"]
        let noted = "#!/bin/sh\necho \"$*\" >>'\(directory.path)/calls'\nexit 1\n"
        for script in [nil, noted, "#!/bin/sh\necho h2load nghttp2/0\n"] {
            if let script {
                let path = try directory.write(script, to: "bin/h2load")
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o755], ofItemAtPath: path)
            }
            let finished = try Broadside.run(
                arguments, in: directory,
                environment: ["TMPDIR": directory.path, "PATH": folder])
            #expect(finished.exitCode == 0, "\(finished.errors)")
            #expect(!finished.output.contains("h2load"), "\(finished.output)")
            #expect(finished.errors.contains("warning: h2load failed") == (script != nil))
            // Bars of the histogram.
            #expect(finished.output.contains("\u{2588} "), "\(finished.output)")
        }
        // As many streams as Broadside may use.
        let calls = try String(contentsOfFile: "\(directory.path)/calls", encoding: .utf8)
        #expect(calls.contains(" -c 1 ") && calls.contains(" -m 1000 "), "\(calls)")
    }

    @Test func `bench runs longer if connections take longer than its duration to open`() throws {
        let directory = try TemporaryDirectory()
        let state = "\(directory.path)/apns"
        let simulator = try Broadside.start(
            ["simulate", "--listen", "127.0.0.1:0", "--state", state], in: directory)
        defer { simulator.stop() }
        var told = ""
        try simulator.wait {
            told = try String(contentsOfFile: simulator.outputPath, encoding: .utf8)
            return told.contains("--ledger")
        }
        let relay = try PythonServer(
            "slow_relay.py",
            [
                "--to", try #require(told.firstMatch(of: /127.0.0.1:(\d+)/)).1.description,
                "--delay", "0.7",
            ], in: directory)
        let words = told.split(whereSeparator: \.isWhitespace).map(String.init)
        func option(_ name: String) throws -> [String] {
            let place = try #require(words.firstIndex(of: name))
            return [name, words[place + 1]]
        }
        var arguments = ["bench", "--json", "--duration", "200ms", "--connections", "1"]
        arguments += ["--endpoint", "127.0.0.1:\(relay.port)"]
        for name in ["--ca-file", "--auth-key", "--key-id", "--team-id", "--topic"] {
            arguments += try option(name)
        }
        let finished = try Broadside.run(
            arguments, in: directory, environment: ["TMPDIR": directory.path])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let figures = try JSONDecoder().decode(Figures.self, from: Data(finished.output.utf8))
        #expect(figures.notifications > 0)
    }

    @Test func `The error about a run of bench does not advise to resume its ledger`() throws {
        let directory = try TemporaryDirectory()
        let scenario = try directory.write(
            "{faults: [{do: 'reset_stream', at: 1}]}", to: "scenario.json5")
        let server = try LocalAPNs(["--scenario", scenario])
        let authority = try TestAuthority.shared()
        let ended = try Broadside.run(
            [
                "bench", "--duration", "200ms", "--connections", "1", "--endpoint",
                server.endpoint, "--ca-file", authority.caFile, "--topic", Campaign.topic,
                "--auth-key", authority.authKey, "--key-id", Campaign.keyID, "--team-id",
                Campaign.teamID,
            ], in: directory, environment: ["TMPDIR": directory.path])
        #expect(ended.exitCode == 1, "\(ended.errors)")
        #expect(ended.errors.contains("run failed: 1 row is unknown"), "\(ended.errors)")
        #expect(!ended.errors.contains("--resume"), "\(ended.errors)")
    }

    @Test func `A signal ends bench and its simulator with exit 3 and leaves no file`() throws {
        let directory = try TemporaryDirectory()
        let place = "\(directory.path)/place"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false)
        let bench = try Broadside.start(
            [
                "bench", "--duration", "10m", "--latency", "200ms", "--connections", "1",
                "--streams", "10",
            ], in: directory, environment: ["TMPDIR": place])
        var children: [pid_t] = []
        try bench.wait {
            let told = try String(contentsOfFile: bench.errorsPath, encoding: .utf8)
            guard told.contains("in the warm-up") else { return false }
            children = try self.children(of: bench.identifier)
            return children.count == 2
        }
        #expect(children.count == 2)
        bench.send(signal: SIGINT)
        let finished = try bench.wait(limit: 60)
        #expect(finished.exitCode == 1, "\(finished.errors)")
        for child in children { #expect(kill(child, 0) == -1 && errno == ESRCH) }
        #expect(try directory.names(in: place).isEmpty)
    }

    @Test func `bench that is killed leaves no child process`() throws {
        let directory = try TemporaryDirectory()
        let bench = try Broadside.start(
            [
                "bench", "--duration", "10m", "--latency", "200ms", "--connections", "1",
                "--streams", "10",
            ], in: directory, environment: ["TMPDIR": directory.path])
        var children: [pid_t] = []
        try bench.wait {
            children = try self.children(of: bench.identifier)
            return children.count == 2
        }
        bench.send(signal: SIGKILL)
        _ = try bench.wait()
        let deadline = ContinuousClock.now + .seconds(60)
        while children.contains(where: isAlive), ContinuousClock.now < deadline { usleep(5000) }
        #expect(!children.isEmpty && !children.contains(where: isAlive))
        for child in children where isAlive(child) { kill(child, SIGKILL) }
    }

    /// Whoever takes an orphan in may be slow to bury it: a dead one counts as ended.
    private func isAlive(_ process: pid_t) -> Bool {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let state = text.split(separator: ")").last?.split(separator: " ").first
        else { return false }
        return state != "Z" && state != "X"
    }

    private func children(of process: pid_t) throws -> [pid_t] {
        try String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
            .split(separator: " ").compactMap { pid_t($0) }
    }

    @Test func `bench with an endpoint trusts the system's certificates unless told otherwise`()
        throws
    {
        let directory = try TemporaryDirectory()
        let finished = try Broadside.run(
            ["bench", "--endpoint", "127.0.0.1:1"], in: directory,
            environment: ["TMPDIR": directory.path])
        // What is missing is the topic and the credential.
        #expect(finished.exitCode == 2 && finished.errors.contains("--auth-key"))
        #expect(!finished.errors.contains("--ca-file"), "\(finished.errors)")
    }

    @Test(arguments: [
        "api.push.apple.com", "API.development.push.apple.com.:2197", "17.188.1.2:443",
        "[2620:149:a44::1]:443",
    ])
    func `bench refuses Apple's hosts`(endpoint: String) throws {
        let directory = try TemporaryDirectory()
        let finished = try Broadside.run(
            ["bench", "--endpoint", endpoint, "--ca-file", "/dev/null"], in: directory)
        #expect(finished.exitCode == 2 && finished.errors.contains("is Apple's"))
    }
}
