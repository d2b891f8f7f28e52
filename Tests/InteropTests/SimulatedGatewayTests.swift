import BroadsideTestSupport
import Foundation
import Testing

/// The simulator's legacy gateway and feedback service, driven by a provider that was written from
/// the documents' listings, and by our own command.
@Suite(.timeLimit(.minutes(60)))
struct SimulatedGatewayTests {
    @Test func `The simulated gateway takes all three commands and journals each`() throws {
        let fixture = try GatewayFixture()
        let tokens = (0..<3).map { fixture.campaign.tokens.token($0) }
        let reply = try fixture.provide(
            (0..<3).map { gatewayNotification($0, $0 + 5, tokens[$0]) }, staysOpen: true)
        #expect(reply.packet == nil && !reply.closed)
        let journal = try fixture.server.finish()
        #expect(journal.map { $0[4] } == tokens)
        #expect(journal.map { $0[5] } == ["0", "0", "0"])
        #expect(journal.map { $0[2] } == ["0", "6", "7"])
    }

    @Test
    func `The simulated gateway names a bad notification and discards the later ones`() throws {
        let fixture = try GatewayFixture(["--bad-token", "0.2"])
        let tokens = (0..<100).map { fixture.campaign.tokens.token($0) }
        let first = try #require(tokens.firstIndex { fateShare($0) < 0.2 })
        let reply = try fixture.provide(
            tokens.enumerated().map { gatewayNotification(1, $0.offset + 1000, $0.element) })
        #expect(reply.packet == [8, 8, first + 1000])
        #expect(reply.end == "fin")
        // Command 0 has no identifier: the connection ends without a word.
        let silent = try fixture.provide(tokens.map { gatewayNotification(0, 0, $0) })
        #expect(silent.packet == nil && silent.closed)
        let journal = try fixture.server.finish()
        #expect(journal.map { $0[4] } == Array(tokens[...first]) + Array(tokens[...first]))
    }

    @Test func `The simulated gateway can send each status`() throws {
        let tokens = (0..<10).map { DeviceTokens(seed: 77, count: 10).token($0) }
        let fixture = try GatewayFixture(
            scenario: """
                {gateway: {statuses: [{token: "\(tokens[1])", status: 1},
                  {token: "\(tokens[6])", status: 6}, {token: "\(tokens[9])", status: 255}],
                  shutdown_every: 3}}
                """)
        let good = tokens[0]
        for (notifications, packet) in [
            ([gatewayNotification(2, 7, tokens[1])], [8, 1, 7]),
            ([gatewayNotification(1, 7, "")], [8, 2, 7]),
            ([gatewayNotification(1, 7, good, payload: "")], [8, 4, 7]),
            (
                [gatewayNotification(2, 7, String(repeating: "aa", count: 101))], [8, 5, 7]
            ),
            ([gatewayNotification(1, 7, String(repeating: "aa", count: 31))], [8, 5, 7]),
            ([gatewayNotification(2, 7, "aa")], [8, 5, 7]),
            ([gatewayNotification(2, 7, tokens[6])], [8, 6, 7]),
            (
                [gatewayNotification(1, 7, good, payload: String(repeating: "20", count: 257))],
                [8, 7, 7]
            ),
            (
                [gatewayNotification(2, 7, good, payload: String(repeating: "20", count: 2049))],
                [8, 7, 7]
            ),
            ((1...5).map { gatewayNotification(1, $0, tokens[$0 + 1]) }, [8, 10, 3]),
            (
                // A frame whose one item is an identifier and some that no frame has.
                ["raw:020000000a" + "03000400000007" + "090000"], [8, 128, 7]
            ),
            ([gatewayNotification(2, 7, tokens[9])], [8, 255, 7]),
        ] {
            let reply = try fixture.provide(notifications)
            #expect(reply.packet == packet)
            #expect(reply.closed)
        }
        // A certificate that names no topic.
        let nameless = try fixture.campaign.authority.clientCertificate(
            userID: "", in: fixture.campaign.directory, name: "nameless")
        #expect(
            try fixture.provide([gatewayNotification(1, 7, good)], identity: nameless).packet == [
                8, 3, 7,
            ])
    }

    @Test func `A campaign over the simulated gateway and its feedback settle each token`() throws {
        let fixture = try GatewayFixture(
            rows: 3000, ["--bad-token", "0.005", "--unregistered", "0.02"],
            scenario: "{gateway: {shutdown_every: 900, error_delay: '50ms'}}")
        let tokens = (0..<3000).map { fixture.campaign.tokens.token($0) }
        let sent = try fixture.send()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let bad = Set(tokens.filter { fateShare($0) < 0.005 })
        let gone = Set(tokens.filter { fateShare($0) >= 0.005 && fateShare($0) < 0.025 })
        let rows = try fixture.campaign.export()
        #expect(Set(rows.filter { $0.state == "rejected" }.map(\.token)) == bad)
        #expect(rows.allSatisfy { $0.state == (bad.contains($0.token) ? "rejected" : "accepted") })
        // Nobody answered for those that were accepted, and none of them had an apns-id.
        #expect(rows.allSatisfy { $0.status == ($0.state == "rejected" ? 8 : nil) })
        #expect(rows.allSatisfy { $0.identifier.isEmpty })
        let good = try #require(tokens.first { !bad.contains($0) })
        let found = try fixture.campaign.ledger("find", ["--token", good])
        #expect(found.output.hasPrefix("row ") && !found.output.contains("200"))

        // What the gateway learned of devices is told by the feedback service, once.
        let ledger = "\(fixture.campaign.directory.path)/feedback"
        let read = [
            "feedback", "--endpoint", "localhost:\(fixture.feedback)", "--ca-file",
            fixture.campaign.authority.caFile, "--certificate", fixture.client.certificate,
            "--private-key", fixture.client.key, "--ledger", ledger,
        ]
        let fed = try Broadside.run(read, in: fixture.campaign.directory)
        #expect(fed.exitCode == 0, "\(fed.errors)")
        #expect(try fixture.provide([], feedback: true).tuples?.isEmpty == true)
        // The gateway's silence, newer or not, keeps none of them.
        let output = "\(fixture.campaign.directory.path)/clean.txt"
        for ledgers in [
            [ledger], [ledger, fixture.campaign.ledger], [fixture.campaign.ledger, ledger],
        ] {
            let pruned = try Broadside.run(
                ["prune", "--tokens", fixture.campaign.list, "--output", output]
                    + ledgers.flatMap { ["--ledger", $0] }, in: fixture.campaign.directory)
            #expect(pruned.exitCode == 0, "\(pruned.errors)")
            #expect(pruned.errors.contains("not counted") == (ledgers.count > 1))
            let text = try String(contentsOfFile: output, encoding: .utf8)
            let kept: [String] = text.split(separator: "\n").map(String.init)
            #expect(kept == tokens.filter { !gone.contains($0) })
        }

        let journal = try fixture.server.finish()
        let taken = journal.filter { $0[5] == "0" }.map { $0[4] }
        #expect(taken.count == 3000 - bad.count)
        #expect(Set(taken).count == taken.count)
    }

    @Test func `The scenario gateway-shutdowns loses and repeats no row`() throws {
        let fixture = try GatewayFixture(rows: 1600, ["--scenario", "gateway-shutdowns"])
        let sent = try fixture.send(["--connections", "1", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 1600 && summary.reconnects == 3)
        let taken = try fixture.server.finish().filter { $0[5] == "0" }
        #expect(Set(taken.map { $0[4] }).count == 1600 && taken.count == 1600)
        let byConnection = Dictionary(grouping: taken) { $0[1] }
        #expect(byConnection.values.map(\.count).sorted() == [100, 500, 500, 500])
    }

    @Test func `The simulated feedback service's tuples are read by a client of its own`() throws {
        let fixture = try GatewayFixture(["--unregistered", "0.5"])
        let tokens = (0..<50).map { fixture.campaign.tokens.token($0) }
        #expect(
            try fixture.provide(
                tokens.enumerated().map { gatewayNotification(2, $0.offset + 1, $0.element) },
                staysOpen: true
            )
            .packet == nil)
        let now = Int(Date().timeIntervalSince1970)
        let tuples = try #require(try fixture.provide([], feedback: true).tuples)
        #expect(Set(tuples.map(\.token)) == Set(tokens.filter { fateShare($0) < 0.5 }))
        #expect(tuples.allSatisfy { abs($0.seconds - now) < 600 })
    }

    @Test func `A certificate of several topics reads the feedback of all of them`() throws {
        let fixture = try GatewayFixture(["--unregistered", "1"])
        let authority = fixture.campaign.authority
        let directory = fixture.campaign.directory
        let tokens = (0..<2).map { fixture.campaign.tokens.token($0) }
        for place in 0..<2 {
            let single = try authority.clientCertificate(
                userID: "com.example.\(place)", in: directory, name: "single\(place)")
            _ = try fixture.provide(
                [gatewayNotification(2, 1, tokens[place])], identity: single, staysOpen: true)
        }
        let both = try authority.clientCertificate(
            topics: ["com.example.0", "com.example.1"], in: directory, name: "both")
        let tuples = try #require(try fixture.provide([], identity: both, feedback: true).tuples)
        #expect(Set(tuples.map(\.token)) == Set(tokens))
    }

    @Test
    func `The gateway counts payloads that are no JSON dictionary, and refuses them if asked for`()
        throws
    {
        for (options, packet) in [([], nil), (["--payload-lint", "refuse"], [8, 4, 7])]
            as [([String], [Int]?)]
        {
            let fixture = try GatewayFixture(options)
            let token = fixture.campaign.tokens.token(0)
            let reply = try fixture.provide(
                [gatewayNotification(1, 7, token, payload: "5b5d")], staysOpen: packet == nil)
            #expect(reply.packet == packet)
            let sound = try fixture.provide([gatewayNotification(1, 7, token)], staysOpen: true)
            #expect(sound.packet == nil)
            _ = try fixture.server.finish()
            #expect(try fixture.server.totals().contains("not a JSON dictionary: 1 requests"))
        }
    }

    @Test(.timeLimit(.minutes(60)))
    func `The gateway's RST comes behind the error packet`() throws {
        let fixture = try GatewayFixture(
            ["--bad-token", "1"], scenario: "{gateway: {end: 'rst', error_delay: '10ms'}}")
        // What the provider had not read is lost with the connection: the packet, or nothing.
        let reply = try fixture.provide([
            gatewayNotification(1, 5, fixture.campaign.tokens.token(0))
        ])
        #expect(reply.end == "rst")
        #expect(reply.packet == nil || reply.packet == [8, 8, 5])
    }

    @Test func `The gateway's notifications are received, recorded and replayed`() throws {
        let directory = try TemporaryDirectory()
        let (control, recording) = ("\(directory.path)/control", "\(directory.path)/recording")
        let port = try Ports.free()
        let tokens = (0..<4).map { DeviceTokens(seed: 77, count: 4).token($0) }
        let fixture = try GatewayFixture(
            ["--control", control, "--control-listen", "127.0.0.1:\(port)", "--record", recording],
            scenario: "{gateway: {statuses: [{token: '\(tokens[3])', status: 8}]}}")
        let notifications = (0..<3).map { gatewayNotification($0, $0 + 5, tokens[$0]) }
        let bad = gatewayNotification(2, 99, tokens[3])
        #expect(try fixture.provide(notifications + [bad]).packet == [8, 8, 99])

        let answers = try ControlSocket.ask(
            control,
            [
                "wait 4 topic=\(Campaign.topic)", "received",
                "received token=\(tokens[3]) status=8",
                "status",
            ], in: directory
        ).map { try ControlSocket.object($0) }
        #expect(answers.allSatisfy { $0["ok"] as? Bool == true }, "\(answers)")
        let all = answers[1]["requests"] as? [[String: Any]] ?? []
        #expect(all.map { $0["token"] as? String } == tokens)
        #expect(all.map { $0["status"] as? Int } == [0, 0, 0, 8])
        #expect(all.map { $0["reason"] as? String } == [nil, nil, nil, "BadDeviceToken"])
        #expect(all.map { $0["identifier"] as? Int } == [nil, 6, 7, 99])
        let expirations: [Int?] = [nil, 2_000_000_000, 2_000_000_000, 2_000_000_000]
        #expect(all.map { $0["expiration"] as? Int } == expirations)
        #expect(all.map { $0["priority"] as? Int } == [nil, nil, 10, 10])
        for one in all {
            #expect(one["protocol"] as? String == "binary")
            #expect(one["topic"] as? String == Campaign.topic)
            #expect(one["payload"] as? [String: [String: String]] == ["aps": ["alert": "x"]])
        }
        #expect((answers[2]["requests"] as? [Any])?.count == 1)
        #expect(answers[3]["requests"] as? Int == 4 && answers[3]["accepted"] as? Int == 3)
        let http = try Subprocess(
            "curl", ["-sS", "http://127.0.0.1:\(port)/received?limit=2"], in: directory
        ).wait()
        let first = try ControlSocket.object(http.output)["requests"] as? [[String: Any]]
        #expect(first?.map { $0["token"] as? String } == Array(tokens[..<2]), "\(http)")
        // Written within a moment, also without a request to the provider API.
        var lines: [Substring] = []
        for _ in 0..<6000 {
            let text = (try? String(contentsOfFile: recording, encoding: .utf8)) ?? ""
            lines = text.split(separator: "\n")
            if lines.count >= 4, text.hasSuffix("\n") { break }
            usleep(10_000)
        }
        #expect(
            lines.first.map(String.init)
                == "{\"token\":\"\(tokens[0])\",\"protocol\":\"binary\",\"status\":0}")
        #expect(lines.count == 4)
        _ = try fixture.server.finish()

        // The recorded status, without the scenario.
        let again = try GatewayFixture(["--replay", recording])
        #expect(try again.provide(notifications + [bad]).packet == [8, 8, 99])
        #expect(try again.server.finish().map { $0[5] } == ["0", "0", "0", "8"])
    }

    @Test func `The gateway stores no notification with an expiry of 0 or below`() throws {
        let directory = try TemporaryDirectory()
        let deliveries = "\(directory.path)/deliveries"
        let fixture = try GatewayFixture(["--offline", "1", "--deliveries", deliveries])
        let tokens = (0..<3).map { fixture.campaign.tokens.token($0) }
        _ = try fixture.provide(
            [
                gatewayNotification(1, 1, tokens[0], expiry: 0),
                gatewayNotification(1, 2, tokens[1], expiry: -1),
                gatewayNotification(1, 3, tokens[2]),
            ], staysOpen: true)
        _ = try fixture.server.finish()
        #expect(try fixture.server.totals().contains("1 stored"))
        #expect(try fixture.server.totals().contains("2 discarded"))
    }
}
