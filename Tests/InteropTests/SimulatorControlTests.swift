import BroadsideTestSupport
import Foundation
import Testing

/// What can be changed while `simulate` runs, and tokens that it issued.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SimulatorControlTests {
    @Test func `A scenario is switched on and off while the simulator runs`() throws {
        let directory = try TemporaryDirectory()
        let control = directory.path + "/socket"
        let server = try LocalAPNs(["--control", control, "--threads", "2"])
        var mode = stat()
        try #require(stat(control, &mode) == 0)
        #expect(mode.st_mode & 0o777 == 0o600)

        func send() throws -> SendSummary {
            let campaign = try Campaign(rows: 500)
            let sent = try campaign.send(to: server.endpoint, ["--summary", "-"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            return try SendSummary(json: sent.output)
        }
        #expect(try send().retries == 0)
        let file = try directory.write(
            "{ faults: [{ do: 'refuse', at: 5, count: 3, scope: 'global' }] }", to: "mine.json5")
        var answers = try ControlSocket.ask(
            control, ["status", "scenario \(file)"], in: directory)
        let before = try ControlSocket.object(answers[0])
        #expect(before["ok"] as? Bool == true && before["requests"] as? Int == 500)
        #expect(before["accepted"] as? Int == 500 && before["scenario"] is NSNull)
        #expect(try ControlSocket.object(answers[1])["scenario"] as? String == file)
        // A scenario for a connection that is open: each thread looks when it is woken.
        #expect(try send().retries == 3)
        answers = try ControlSocket.ask(
            control,
            [
                "status", "scenario none", "scenario nonsense", "scenario", "online xyz",
                "offline abcd", "online abcd", "rate 5",
            ], in: directory)
        let during = try ControlSocket.object(answers[0])
        #expect(during["strikes"] as? Int == 3 && during["accepted"] as? Int == 1000)
        #expect(try ControlSocket.object(answers[1])["scenario"] is NSNull)
        for index in [2, 3, 4, 7] {
            let refused = try ControlSocket.object(answers[index])
            #expect(refused["ok"] as? Bool == false && refused["error"] is String)
        }
        #expect(try ControlSocket.object(answers[5])["ok"] as? Bool == true)
        #expect(try ControlSocket.object(answers[6])["delivered"] as? Int == 0)
        #expect(try send().retries == 0)
        _ = try server.finish()
        #expect(access(control, F_OK) != 0, "the socket's file was left behind")
    }

    /// nghttp2 kept some 270 bytes of each closed stream: 27 MB of these.
    @Test func `The simulator's memory does not grow with the requests of a connection`() throws {
        let server = try LocalAPNs(["--hpack-lint", "off"])
        func send(_ rows: Int) throws -> Int {
            let campaign = try Campaign(rows: rows)
            let sent = try campaign.send(
                to: server.endpoint, ["--connections", "1", "--summary", "-"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            #expect(try SendSummary(json: sent.output).accepted == rows)
            return try server.residentBytes()
        }
        // The memory of the longer run's connection is free again when it has ended, but it stays
        // with the process.
        let early = try send(2_000)
        let late = try send(100_000)
        #expect(late - early < 12 << 20, "\(early) bytes, then \(late)")
    }

    @Test func `An outage ends connections and accepts none until it is over`() throws {
        let directory = try TemporaryDirectory()
        let control = directory.path + "/socket"
        let server = try LocalAPNs(["--control", control])
        let file = try directory.write("{ faults: [{ do: 'outage' }] }", to: "outage.json5")
        let campaign = try Campaign(rows: 1000)
        let send = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--connections", "4", "--rate", "20", "--on-lost", "resend", "--summary", "-",
                ]), in: campaign.directory)
        func status(_ first: String? = nil) throws -> (open: Int, accepted: Int) {
            let answers = try ControlSocket.ask(
                control, [first, "status"].compactMap { $0 }, in: directory)
            let object = try ControlSocket.object(answers.last)
            return (
                object["open_connections"] as? Int ?? -1, object["accepted"] as? Int ?? -1
            )
        }
        try send.wait { try status().accepted > 0 }
        _ = try status("scenario \(file)")
        var seen = try status()
        try send.wait {
            seen = try status()
            return seen.open == 0
        }
        #expect(seen.open == 0)
        try #require(seen.accepted < 1000, "the outage came too late")
        usleep(500_000)
        #expect(try status() == seen)
        _ = try status("scenario none")
        try campaign.hurry()
        let sent = try send.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 1000 && summary.reconnects > 0)
        _ = try server.finish()
    }

    @Test func `Issued device tokens are accepted, and others refused with their reason`() throws {
        let simulation = try Simulation(["--issue-tokens", "300"])
        let ca = try simulation.options(["ca-file"])[1]
        let state = String(ca.dropLast("/ca.pem".count))
        func tokens(_ name: String) throws -> [String] {
            try String(contentsOfFile: "\(state)/\(name)", encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
        let good = try tokens("tokens.txt")
        let otherEnvironment = try tokens("tokens-other-environment.txt")
        let otherTopic = try tokens("tokens-other-topic.txt")
        #expect(good.count == 300 && otherEnvironment.count == 100 && otherTopic.count == 100)
        #expect(Set(good + otherEnvironment + otherTopic).count == 500)
        var information = stat()
        #expect(stat(state + "/token.key", &information) == 0)
        #expect(information.st_mode & 0o777 == 0o600)
        // One figure changed in each: nothing that was issued.
        let forged = good.enumerated().map { index, token in
            var digits = Array(token.utf8)
            let place = index % digits.count
            digits[place] = digits[place] == 0x30 ? 0x31 : 0x30
            return String(decoding: digits, as: UTF8.self)
        }
        let all = good + otherEnvironment + otherTopic + forged

        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(
            all.joined(separator: "\n") + "\n", to: "issued.txt")
        let sent = try campaign.send(
            to: simulation.endpoint,
            try simulation.credentials() + ["--tokens", list, "--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let rows = try campaign.export(["--tokens", list])
        try #require(rows.count == all.count)
        for (index, row) in rows.enumerated() {
            let expected =
                switch index {
                case 0..<300: "accepted "
                case 400..<500: "rejected DeviceTokenNotForTopic"
                default: "rejected BadDeviceToken"
                }
            #expect("\(row.state) \(row.reason)" == expected, "row \(index)")
        }
    }

    @Test
    func `Issued tokens stay the same with the same state, and fail in the other environment`()
        throws
    {
        let directory = try TemporaryDirectory()
        let state = directory.path + "/state"
        func issue(_ environment: String) throws -> (String, String) {
            let process = try Broadside.start(
                [
                    "simulate", "--listen", "127.0.0.1:0", "--state", state, "--issue-tokens",
                    "20", "--environment", environment,
                ], in: directory)
            for _ in 0..<6000 {
                let output = FileManager.default.contents(atPath: process.outputPath) ?? Data()
                if String(decoding: output, as: UTF8.self).contains("broadside send") { break }
                usleep(10_000)
            }
            process.stop()
            return (
                try String(contentsOfFile: state + "/tokens.txt", encoding: .utf8),
                try String(contentsOfFile: state + "/tokens-other-environment.txt", encoding: .utf8)
            )
        }
        let production = try issue("production")
        let development = try issue("development")
        #expect(production.0.split(separator: "\n").count == 20)
        #expect(production.0 == development.1 && production.1 == development.0)
        #expect(try issue("production") == production)
    }
}
