import Foundation
import TestSupport
import Testing

/// The simulator's legacy gateway and feedback service, driven by a provider that was written from
/// the documents' listings, and by our own command.
@Suite(.timeLimit(.minutes(60)))
struct SimulatedGatewayTests {
    private struct Reply: Decodable {
        var packet: [Int]?
        var tuples: [Tuple]?
        var closed: Bool

        struct Tuple: Decodable {
            var seconds: Int
            var token: String

            init(from decoder: any Decoder) throws {
                var values = try decoder.unkeyedContainer()
                seconds = try values.decode(Int.self)
                token = try values.decode(String.self)
            }
        }
    }

    private final class World {
        let campaign: Campaign
        let server: LocalAPNs
        let gateway: Int
        let feedback: Int
        let client: ServerIdentity

        init(rows: Int = 100, _ more: [String] = [], scenario: String? = nil) throws {
            campaign = try Campaign(rows: rows)
            gateway = try Ports.free()
            feedback = try Ports.free()
            client = try campaign.authority.clientCertificate(in: campaign.directory)
            var options = [
                "--binary-listen", "127.0.0.1:\(gateway)", "--feedback-listen",
                "127.0.0.1:\(feedback)",
            ]
            if let scenario {
                options += [
                    "--scenario", try campaign.directory.write(scenario, to: "scenario.json5"),
                ]
            }
            server = try LocalAPNs(options + more)
        }

        /// What the provider of the documents hears.
        func provide(
            _ notifications: [String], identity: ServerIdentity? = nil, feedback: Bool = false
        ) throws -> Reply {
            let identity = identity ?? client
            let finished = try Subprocess(
                "python3",
                [
                    "-B", "\(Tool.packageRoot)/Tests/Servers/legacy_provider.py", "--port",
                    "\(feedback ? self.feedback : gateway)", "--ca", campaign.authority.caFile,
                    "--certificate", identity.certificate, "--key", identity.key,
                ] + (feedback ? ["--feedback"] : notifications), in: campaign.directory
            ).wait()
            guard finished.exitCode == 0 else { throw TestFailure(finished.errors) }
            return try JSONDecoder().decode(Reply.self, from: Data(finished.output.utf8))
        }

        var binary: [String] {
            [
                "--protocol", "binary", "--certificate", client.certificate, "--private-key",
                client.key, "--request-timeout", "4s",
            ]
        }

        func send(_ more: [String] = []) throws -> Finished {
            try Broadside.run(
                campaign.arguments(
                    to: "localhost:\(gateway)", binary + more,
                    without: ["auth-key", "key-id", "team-id", "topic"]),
                in: campaign.directory)
        }
    }

    private static let payload = Array(#"{"aps":{"alert":"x"}}"#.utf8).map {
        String(format: "%02x", $0)
    }.joined()

    private func notification(
        _ command: Int, _ identifier: Int, _ token: String, expiry: Int = 2_000_000_000,
        payload: String = Self.payload
    ) -> String {
        "\(command):\(identifier):\(expiry):10:\(token):\(payload)"
    }

    /// The documented formula.
    private func share(_ token: String) -> Double {
        var z = UInt64(token.prefix(16), radix: 16)! &+ 0x9e37_79b9_7f4a_7c15
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return Double(z ^ (z >> 31)) * 0x1p-64
    }

    @Test("All three commands are taken, and each lands in the journal")
    func commands() throws {
        let world = try World()
        let tokens = (0..<3).map { world.campaign.tokens.token($0) }
        let reply = try world.provide((0..<3).map { notification($0, $0 + 5, tokens[$0]) })
        #expect(reply.packet == nil && !reply.closed)
        let journal = try world.server.finish()
        #expect(journal.map { $0[4] } == tokens)
        #expect(journal.map { $0[5] } == ["0", "0", "0"])
        #expect(journal.map { $0[2] } == ["0", "6", "7"])
    }

    @Test("The bad one is named, what follows it is discarded")
    func bad() throws {
        let world = try World(["--bad-token", "0.2"])
        let tokens = (0..<100).map { world.campaign.tokens.token($0) }
        let first = try #require(tokens.firstIndex { share($0) < 0.2 })
        let reply = try world.provide(
            tokens.enumerated().map { notification(1, $0.offset + 1000, $0.element) })
        #expect(reply.packet == [8, 8, first + 1000])
        #expect(reply.closed)
        // Command 0 has no identifier: the connection ends without a word.
        let silent = try world.provide(tokens.map { notification(0, 0, $0) })
        #expect(silent.packet == nil && silent.closed)
        let journal = try world.server.finish()
        #expect(journal.map { $0[4] } == Array(tokens[...first]) + Array(tokens[...first]))
    }

    @Test("Each status can be had")
    func statuses() throws {
        let tokens = (0..<10).map { DeviceTokens(seed: 77, count: 10).token($0) }
        let world = try World(
            scenario: """
                {gateway: {statuses: [{token: "\(tokens[1])", status: 1},
                  {token: "\(tokens[6])", status: 6}, {token: "\(tokens[9])", status: 255}],
                  shutdown_every: 3}}
                """)
        let good = tokens[0]
        for (notifications, packet) in [
            ([notification(2, 7, tokens[1])], [8, 1, 7]),
            ([notification(1, 7, "")], [8, 2, 7]),
            ([notification(1, 7, good, payload: "")], [8, 4, 7]),
            (
                [notification(2, 7, String(repeating: "aa", count: 101))], [8, 5, 7]
            ),
            ([notification(2, 7, tokens[6])], [8, 6, 7]),
            ([notification(1, 7, good, payload: String(repeating: "20", count: 257))], [8, 7, 7]),
            ([notification(2, 7, good, payload: String(repeating: "20", count: 2049))], [8, 7, 7]),
            ((1...5).map { notification(1, $0, tokens[$0 + 1]) }, [8, 10, 3]),
            (
                // A frame whose one item is an identifier and some that no frame has.
                ["raw:020000000a" + "03000400000007" + "090000"], [8, 128, 7]
            ),
            ([notification(2, 7, tokens[9])], [8, 255, 7]),
        ] {
            let reply = try world.provide(notifications)
            #expect(reply.packet == packet)
            #expect(reply.closed)
        }
        // A certificate that names no topic.
        let nameless = try world.campaign.authority.clientCertificate(
            userID: "", in: world.campaign.directory, name: "nameless")
        #expect(
            try world.provide([notification(1, 7, good)], identity: nameless).packet == [8, 3, 7])
    }

    @Test("Our own campaign: every good token once, the bad ones with their status; then feedback")
    func campaign() throws {
        let world = try World(
            rows: 3000, ["--bad-token", "0.005", "--unregistered", "0.02"],
            scenario: "{gateway: {shutdown_every: 900, error_delay: '50ms'}}")
        let tokens = (0..<3000).map { world.campaign.tokens.token($0) }
        let sent = try world.send()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let bad = Set(tokens.filter { share($0) < 0.005 })
        let gone = Set(tokens.filter { share($0) >= 0.005 && share($0) < 0.025 })
        let rows = try world.campaign.export()
        #expect(Set(rows.filter { $0.state == "rejected" }.map(\.token)) == bad)
        #expect(rows.allSatisfy { $0.state == (bad.contains($0.token) ? "rejected" : "accepted") })
        // Nobody answered for those that were accepted, and none of them had an apns-id.
        #expect(rows.allSatisfy { $0.status == ($0.state == "rejected" ? 8 : nil) })
        #expect(rows.allSatisfy { $0.identifier.isEmpty })
        let good = try #require(tokens.first { !bad.contains($0) })
        let found = try world.campaign.ledger("find", ["--token", good])
        #expect(found.output.hasPrefix("row ") && !found.output.contains("200"))

        // What the gateway learned of devices is told by the feedback service, once.
        let ledger = "\(world.campaign.directory.path)/feedback"
        let read = [
            "feedback", "--endpoint", "localhost:\(world.feedback)", "--ca-file",
            world.campaign.authority.caFile, "--certificate", world.client.certificate,
            "--private-key", world.client.key, "--ledger", ledger,
        ]
        let fed = try Broadside.run(read, in: world.campaign.directory)
        #expect(fed.exitCode == 0, "\(fed.errors)")
        #expect(try world.provide([], feedback: true).tuples?.isEmpty == true)
        // The gateway's silence, newer or not, keeps none of them.
        let output = "\(world.campaign.directory.path)/clean.txt"
        for ledgers in [[ledger], [ledger, world.campaign.ledger], [world.campaign.ledger, ledger]] {
            let pruned = try Broadside.run(
                ["prune", "--tokens", world.campaign.list, "--output", output]
                    + ledgers.flatMap { ["--ledger", $0] }, in: world.campaign.directory)
            #expect(pruned.exitCode == 0, "\(pruned.errors)")
            #expect(pruned.errors.contains("not counted") == (ledgers.count > 1))
            let kept = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
            #expect(kept.map(String.init) == tokens.filter { !gone.contains($0) })
        }

        let journal = try world.server.finish()
        let taken = journal.filter { $0[5] == "0" }.map { $0[4] }
        #expect(taken.count == 3000 - bad.count)
        #expect(Set(taken).count == taken.count)
    }

    @Test("The feedback service's tuples, read by the documents' provider")
    func feedback() throws {
        let world = try World(["--unregistered", "0.5"])
        let tokens = (0..<50).map { world.campaign.tokens.token($0) }
        #expect(
            try world.provide(
                tokens.enumerated().map { notification(2, $0.offset + 1, $0.element) }
            )
            .packet == nil)
        let now = Int(Date().timeIntervalSince1970)
        let tuples = try #require(try world.provide([], feedback: true).tuples)
        #expect(Set(tuples.map(\.token)) == Set(tokens.filter { share($0) < 0.5 }))
        #expect(tuples.allSatisfy { abs($0.seconds - now) < 600 })
    }

    @Test("A certificate of several topics reads the lists of all of them")
    func topics() throws {
        let world = try World(["--unregistered", "1"])
        let authority = world.campaign.authority
        let directory = world.campaign.directory
        let tokens = (0..<2).map { world.campaign.tokens.token($0) }
        for place in 0..<2 {
            let single = try authority.clientCertificate(
                userID: "com.example.\(place)", in: directory, name: "single\(place)")
            _ = try world.provide([notification(2, 1, tokens[place])], identity: single)
        }
        let both = try authority.clientCertificate(
            topics: ["com.example.0", "com.example.1"], in: directory, name: "both")
        let tuples = try #require(try world.provide([], identity: both, feedback: true).tuples)
        #expect(Set(tuples.map(\.token)) == Set(tokens))
    }

    @Test("An end by RST comes behind the packet", .timeLimit(.minutes(60)))
    func reset() throws {
        let world = try World(
            ["--bad-token", "1"], scenario: "{gateway: {end: 'rst', error_delay: '10ms'}}")
        // What the provider had not read is lost with the connection: the packet, or nothing.
        let reply = try world.provide([notification(1, 5, world.campaign.tokens.token(0))])
        #expect(reply.closed)
        #expect(reply.packet == nil || reply.packet == [8, 8, 5])
    }

    @Test("A notification that may not be stored is not, below zero as at zero")
    func expiry() throws {
        let directory = try TemporaryDirectory()
        let deliveries = "\(directory.path)/deliveries"
        let world = try World(["--offline", "1", "--deliveries", deliveries])
        let tokens = (0..<3).map { world.campaign.tokens.token($0) }
        _ = try world.provide([
            notification(1, 1, tokens[0], expiry: 0), notification(1, 2, tokens[1], expiry: -1),
            notification(1, 3, tokens[2]),
        ])
        _ = try world.server.finish()
        #expect(try world.server.totals().contains("1 stored"))
        #expect(try world.server.totals().contains("2 discarded"))
    }
}
