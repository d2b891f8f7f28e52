import BroadsideTestSupport
import Foundation
import Testing

/// Campaigns over the binary protocol, against a gateway that was written from the documents' tables.
@Suite(.timeLimit(.minutes(60)))
struct LegacyGatewayTests {
    private func hexadecimal(_ text: String) -> String {
        text.utf8.map { String(format: "%02x", $0) }.joined()
    }

    @Test(arguments: [(1, "fin"), (2, "close"), (2, "rst")])
    func `The legacy gateway gets every good token once, and each bad one has its status`(
        command: Int, end: String
    ) throws {
        let campaign = try Campaign(rows: 3_000)
        let statuses = [8, 8, 5, 2, 7, 8, 8, 8, 5, 8]
        let bad = (0..<15).map { place in
            (campaign.tokens.token(place * 190 + 100), statuses[place % statuses.count])
        }
        let gateway = try PythonGateway(campaign, ["--end", end], bad: bad)
        let sent = try gateway.send(campaign, ["--binary-command", "\(command)"])
        #expect(sent.exitCode == 0, "\(sent.errors)")

        let taken = try gateway.taken()
        #expect(taken.count == 2985)
        #expect(Set(taken.map(\.token)).count == 2985)
        #expect(taken.allSatisfy { $0.command == command })
        let payload = hexadecimal(Campaign.payload)
        #expect(taken.allSatisfy { $0.payload == payload })
        // Identifiers of a connection rise.
        for (_, group) in Dictionary(grouping: taken, by: \.connection) {
            let identifiers = group.compactMap(\.identifier)
            #expect(identifiers.count == group.count)
            #expect(zip(identifiers, identifiers.dropFirst()).allSatisfy { $0 < $1 })
        }
        let rows = try campaign.export()
        #expect(rows.count == 3_000)
        let expected = Dictionary(uniqueKeysWithValues: bad)
        for row in rows {
            if let status = expected[row.token] {
                #expect(row.state == "rejected" && row.status == status, "\(row)")
                #expect(
                    row.reason
                        == [
                            8: "BadDeviceToken", 5: "InvalidTokenSize", 2: "MissingDeviceToken",
                            7: "PayloadTooLarge",
                        ][status])
            } else {
                #expect(row.state == "accepted", "\(row)")
            }
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test func `Each status of the legacy gateway settles its row as documented`() throws {
        let campaign = try Campaign(rows: 60)
        let meanings: [(status: Int, state: String, reason: String)] = [
            (0, "failed", "UnknownError"), (1, "failed", "ProcessingError"),
            (2, "rejected", "MissingDeviceToken"), (4, "rejected", "PayloadEmpty"),
            (5, "rejected", "InvalidTokenSize"), (7, "rejected", "PayloadTooLarge"),
            (8, "rejected", "BadDeviceToken"), (77, "failed", "UnknownError"),
            (128, "rejected", "ProtocolError"), (255, "failed", "UnknownError"),
        ]
        let bad = meanings.enumerated().map {
            (campaign.tokens.token($0.offset * 5 + 3), $0.element.status)
        }
        let gateway = try PythonGateway(campaign, bad: bad)
        let sent = try gateway.send(campaign, ["--max-attempts", "1", "--retry-for", "1ms"])
        #expect(sent.exitCode == 6, "\(sent.errors)")
        let rows = try campaign.export()
        #expect(rows.count == 60)
        for (place, row) in rows.enumerated() {
            let (number, rest) = place.quotientAndRemainder(dividingBy: 5)
            guard rest == 3, number < meanings.count else {
                #expect(row.state == "accepted", "\(row)")
                continue
            }
            let expected = meanings[number]
            #expect(row.state == expected.state && row.reason == expected.reason, "\(row)")
            #expect(row.status == expected.status || expected.status == 0, "\(row)")
        }
    }

    @Test(arguments: [3, 6])
    func `A topic status of the legacy gateway refuses the credential`(_ status: Int) throws {
        let campaign = try Campaign(rows: 20)
        let gateway = try PythonGateway(campaign, bad: [(campaign.tokens.token(10), status)])
        let sent = try gateway.send(campaign)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        let counts = try campaign.statistics()
        #expect(counts.accepted == 19 && counts.remaining == 1)
    }

    @Test func `After a shutdown packet the later rows go over another connection`() throws {
        let campaign = try Campaign(rows: 2000)
        let gateway = try PythonGateway(campaign, ["--shutdown-every", "300"])
        let sent = try gateway.send(campaign, ["--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let taken = try gateway.taken()
        #expect(taken.count == 2000)
        #expect(Set(taken.map(\.token)).count == 2000)
        #expect(taken.map(\.connection).max() == 7)
        #expect(try campaign.statistics().accepted == 2000)
    }

    @Test func `Expiration and priority are sent where each command has them`() throws {
        for (command, more, expiry, priority) in [
            (0, [], nil, 10), (1, [], 2_145_916_799, 10), (1, ["--expiration", "0"], 0, 10),
            (2, [], nil, 10),
            (2, ["--expiration", "1900000000", "--priority", "5"], 1_900_000_000, 5),
        ] as [(Int, [String], Int?, Int)] {
            let campaign = try Campaign(rows: 3)
            let gateway = try PythonGateway(campaign)
            let sent = try gateway.send(campaign, ["--binary-command", "\(command)"] + more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let taken = try gateway.taken()
            #expect(taken.map(\.token) == (0..<3).map { campaign.tokens.token($0) })
            #expect(taken.allSatisfy { $0.expiry == expiry && $0.priority == priority })
        }
    }

    @Test
    func `Without an error packet the rows in flight are in doubt and not sent again`() throws {
        let campaign = try Campaign(rows: 400)
        let gateway = try PythonGateway(
            campaign, ["--lose-packet"], bad: [(campaign.tokens.token(200), 8)])
        let sent = try gateway.send(campaign, ["--connections", "1"])
        #expect(sent.exitCode == 6, "\(sent.errors)")
        let counts = try campaign.statistics()
        #expect(counts.unknown > 0)
        #expect(counts.accepted + counts.unknown == 400)
        let taken = try gateway.taken().map(\.token)
        #expect(Set(taken).count == taken.count)
        let accepted = Set(
            try campaign.export(["--state", "accepted", "--tokens", campaign.list]).map(\.token))
        #expect(accepted.isSubset(of: taken))
    }

    @Test func `A resume over the legacy gateway sends only what was left`() throws {
        let campaign = try Campaign(rows: 1000)
        let gateway = try PythonGateway(campaign, bad: [(campaign.tokens.token(700), 8)])
        #expect(try gateway.send(campaign, ["--limit", "400"]).exitCode == 0)
        #expect(try gateway.taken().count == 400)
        let resumed = try gateway.send(campaign, ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let taken = try gateway.taken()
        #expect(taken.count == 999)
        #expect(Set(taken.map(\.token)).count == 999)
    }

    @Test func `A list of bad tokens stops a legacy campaign`() throws {
        let campaign = try Campaign(rows: 100)
        let gateway = try PythonGateway(
            campaign, ["--error-delay", "0"], bad: (0..<100).map { (campaign.tokens.token($0), 8) })
        let sent = try gateway.send(campaign, ["--abort-after", "5"])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(try campaign.statistics().rejected == 5)
    }

    @Test
    func `A payload, token or header that the legacy protocol cannot carry is refused`() throws {
        let payload = "{\"aps\":{\"alert\":\"\(String(repeating: "x", count: 300))\"}}"
        let campaign = try Campaign(rows: 1, payload: payload)
        let gateway = try PythonGateway(campaign)
        for (more, word) in [
            (["--binary-command", "1"], "256"), (["--collapse-id", "a"], "--collapse-id"),
            (["--priority", "1"], "--priority"), (["--binary-command", "3"], "--binary-command"),
            (
                ["--binary-command", "0", "--expiration", "0", "--payload", "@short"],
                "--expiration"
            ),
        ] {
            let short = try campaign.directory.write("{}", to: "short")
            let sent = try gateway.send(campaign, more.map { $0 == "@short" ? short : $0 })
            #expect(sent.exitCode == 2, "\(more): \(sent.errors)")
            #expect(sent.errorLines.count == 1)
            #expect(sent.errors.contains(word), "\(more): \(sent.errors)")
        }
        #expect(try gateway.taken().isEmpty)
    }
}
