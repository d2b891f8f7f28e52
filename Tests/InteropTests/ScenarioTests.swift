import BroadsideTestSupport
import Foundation
import Testing

/// Whole campaigns to a simulator that plays each scenario it ships with.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ScenarioTests {
    /// What a scenario must come to.
    struct Expectation: Sendable, CustomTestStringConvertible {
        let name: String
        var exitCode: Int32 = 0
        var simulate: [String] = []
        var send: [String] = []
        /// Seconds into a window of provider tokens at which it begins; nil: whenever the test runs.
        var second: Int?
        /// What the summary and the journal must show of the scenario.
        let holds: @Sendable (SendSummary, Requests) -> Bool

        var testDescription: String { name }

        func environment() throws -> [String: String] {
            try second.map { try FakeTime.inWindow($0) } ?? [:]
        }
    }

    /// The journal, read.
    struct Requests: Sendable {
        /// Lines by status and reason: `200`, `503ServiceUnavailable`; `0` was not acted on.
        var answers: [String: Int] = [:]
        /// How often each token was accepted.
        var accepted: [String: Int] = [:]
        /// Accepted notifications of each connection.
        var byConnection: [String: Int] = [:]

        init(_ lines: [[String]]) {
            for line in lines {
                answers[line[5] + line[6], default: 0] += 1
                guard line[5] == "200" else { continue }
                accepted[line[4], default: 0] += 1
                byConnection[line[1], default: 0] += 1
            }
        }

        var longest: Int { byConnection.values.max() ?? 0 }
    }

    static let rows = 4000
    private static let whole: @Sendable (SendSummary, Requests) -> Bool = { summary, requests in
        summary.retries == 0 && summary.reconnects == 0 && requests.answers == ["200": rows]
    }
    private static let bad = ["--bad-token", "0.1"]

    static let expectations = [
        Expectation(name: "calm", holds: whole),
        Expectation(name: "goaway") { summary, requests in
            summary.reconnects >= 4 && requests.longest == 500
        },
        // So few streams that rows are left once all four connections have got the notice.
        Expectation(name: "goaway-notice", send: ["--max-streams", "50"]) { summary, requests in
            summary.reconnects > 0 && requests.longest >= 500
        },
        Expectation(name: "goaway-text") { summary, requests in
            summary.reconnects >= 5 && requests.longest == 499 && requests.answers["0"] ?? 0 > 0
        },
        Expectation(name: "goaway-abrupt", exitCode: 6) { summary, _ in
            summary.unknown > 0 && summary.reconnects > 0
        },
        Expectation(name: "refused-streams") { summary, requests in
            requests.answers["0"] ?? 0 >= 500 && summary.retries == requests.answers["0"]
        },
        Expectation(name: "reset-streams", exitCode: 6) { summary, requests in
            summary.unknown == 20 && requests.answers == ["200": rows]
        },
        Expectation(name: "resets", exitCode: 6) { summary, _ in
            summary.unknown >= 3 && summary.reasons["ConnectionLost"] == summary.unknown
        },
        Expectation(name: "closes", exitCode: 6) { summary, _ in
            summary.unknown > 0 && summary.reasons["ConnectionLost"] == summary.unknown
        },
        Expectation(name: "stalls", holds: whole),
        Expectation(name: "stall-for-good", exitCode: 6, send: ["--request-timeout", "1s"]) {
            summary, _ in summary.unknown > 0 && summary.reasons["Timeout"] ?? 0 > 0
        },
        Expectation(name: "slow-reads", holds: whole),
        Expectation(name: "small-windows", holds: whole),
        Expectation(name: "dribbled-windows", holds: whole),
        Expectation(name: "changing-settings", holds: whole),
        Expectation(name: "split-answers", simulate: bad) { summary, requests in
            summary.rejected > 0
                && summary.rejected == requests.answers["400BadDeviceToken"]
                && summary.reasons == ["BadDeviceToken": summary.rejected]
        },
        Expectation(name: "too-many-requests") { summary, requests in
            summary.retries == 30 && requests.answers["429TooManyRequests"] == 30
        },
        Expectation(name: "server-errors") { summary, requests in
            requests.answers["500InternalServerError"] == 10
                && requests.answers["503Shutdown"] == 5 && summary.retries >= 15
        },
        Expectation(name: "unavailable") { summary, requests in
            requests.answers["503ServiceUnavailable"] == 20 && summary.retries >= 20
        },
        // The client's token is this window's: that it should be expired speaks for a wrong clock.
        Expectation(name: "expired-token", exitCode: 4, second: 600) { summary, requests in
            requests.answers["403ExpiredProviderToken"] ?? 0 > 0
                && summary.accepted < rows && summary.unknown == 0
        },
        Expectation(name: "collapsing-limit", simulate: bad) { summary, requests in
            summary.rejected > 0 && summary.rejected == requests.answers["400BadDeviceToken"]
        },
        Expectation(
            name: "refusal-budget", simulate: bad, send: ["--max-streams", "50"]
        ) { summary, requests in
            // Each counts twice: a connection ends with its 50th. Few streams, so that not all rows
            // are on their way by then.
            summary.reconnects > 0 && summary.rejected == requests.answers["400BadDeviceToken"]
        },
        Expectation(name: "slow-after-refusals", simulate: bad) { summary, requests in
            summary.rejected > 0 && summary.rejected == requests.answers["400BadDeviceToken"]
        },
        // One token for the whole run.
        Expectation(name: "token-updates", holds: whole),
        Expectation(
            name: "late-unregistered", simulate: ["--unregistered", "0.1"],
            // Two seconds, so that some rows come before the moment of their token.
            send: ["--rate", "2000"]
        ) { summary, requests in
            summary.rejected == requests.answers["410Unregistered"]
                && (1..<rows / 10).contains(summary.rejected)
        },
        Expectation(name: "varying-latency", holds: whole),
        Expectation(name: "overload", holds: whole),
        Expectation(name: "knee", holds: whole),
        Expectation(name: "outage", send: ["--on-lost", "resend"]) { summary, _ in
            summary.accepted == rows
        },
        Expectation(name: "idle-timeout", send: ["--rate", "2", "--limit", "3"]) { summary, _ in
            summary.reconnects > 0 && summary.accepted == 3
        },
    ]

    @Test(arguments: expectations)
    func `Each scenario ends as expected`(_ expected: Expectation) throws {
        let server = try LocalAPNs(["--scenario", expected.name] + expected.simulate)
        let campaign = try Campaign(rows: Self.rows)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "4", "--summary", "-"] + expected.send,
            environment: expected.environment())
        #expect(sent.exitCode == expected.exitCode, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        let requests = Requests(try server.finish())
        #expect(expected.holds(summary, requests), "\(summary) \(requests.answers)")

        let settled = summary.accepted + summary.rejected + summary.unknown
        let rows = expected.send.contains("--limit") ? 3 : Self.rows
        #expect(settled + (summary.remaining ?? -1) == rows)
        // What the ledger calls accepted was accepted; what it may not know is not sent again.
        let accepted = try campaign.export(["--tokens", campaign.list, "--state", "accepted"])
        #expect(accepted.count == summary.accepted)
        #expect(accepted.allSatisfy { requests.accepted[$0.token] ?? 0 >= 1 })
        if !expected.send.contains("resend") {
            #expect(requests.accepted.values.allSatisfy { $0 == 1 })
        }
    }

    @Test func `A device token limited to two requests gets all of its four in the end`() throws {
        let server = try LocalAPNs(["--scenario", "busy-device"])
        let campaign = try Campaign(rows: 50)
        let list = campaign.tokens.list()
        try campaign.directory.write(list + list + list + list, to: "tokens.txt")
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "1", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let requests = Requests(try server.finish())
        #expect(requests.accepted.count == 50)
        #expect(requests.accepted.values.allSatisfy { $0 == 4 })
        #expect(requests.answers["429TooManyRequests"] ?? 0 > 0)
    }

    @Test func `A provider token that expires during a run is renewed`() throws {
        let server = try LocalAPNs(["--scenario", "expired-token"])
        let campaign = try Campaign(rows: 2000)
        // Two minutes into a window the token is that of the one before: it is renewed.
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "4", "--summary", "-"],
            environment: FakeTime.inWindow(120))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 2000 && summary.reconnects > 0)
        let requests = Requests(try server.finish())
        #expect(requests.accepted.count == 2000)
        #expect(requests.accepted.values.allSatisfy { $0 == 1 })
        #expect(requests.answers["403ExpiredProviderToken"] ?? 0 > 0)
    }

    @Test func `Each shipped scenario has an expectation`() throws {
        let directory = try TemporaryDirectory()
        let listed = try Broadside.run(["simulate", "--scenario", "list"], in: directory)
        #expect(listed.exitCode == 0)
        let names = listed.output.split(separator: "\n")
            .compactMap { $0.split(separator: " ").first }
        // The gateway's is run in SimulatedGatewayTests.
        let known = Self.expectations.map(\.name) + ["busy-device", "gateway-shutdowns"]
        #expect(Set(names.map(String.init)) == Set(known))
        #expect(names.count == known.count)
        let document = try String(
            contentsOfFile: Tool.packageRoot + "/docs/scenarios.md", encoding: .utf8)
        for name in known { #expect(document.contains("\n| `\(name)` | "), "\(name)") }
    }

    @Test func `A mistake in a scenario is reported with line and column`() throws {
        let directory = try TemporaryDirectory()
        for (text, place, word) in [
            ("{\n  faults: [{ do: \"goawy\" }],\n}", "line 2, column 18", "goaway"),
            ("{ settings: { max_stream: 1 } }", "line 1, column 15", "max_streams"),
            ("{\n\n  seed: 'x' }", "line 3, column 9", "whole number"),
            ("{ latency: \"fast\" }", "line 1, column 12", "duration"),
            ("{ faults: [{ do: 'refuse', every: 0 }] }", "line 1, column 35", "every"),
            ("{ faults: [{}] }", "line 1, column 12", "'do' is missing"),
            ("{ faults: [{ do: 'stall', at: 1, } }", "line 1, column 36", "']'"),
            ("[1]", "line 1, column 1", "object"),
        ] {
            let file = try directory.write(text, to: "wrong.json5")
            let ended = try Broadside.run(
                ["simulate", "--state", directory.path + "/state", "--scenario", file],
                in: directory, limit: 20)
            #expect(ended.exitCode == 2)
            #expect(ended.errors.contains(place) && ended.errors.contains(word), "\(ended.errors)")
        }
        let ended = try Broadside.run(
            [
                "simulate", "--state", directory.path + "/state", "--fast", "--scenario", "calm",
            ], in: directory, limit: 20)
        #expect(ended.exitCode == 2 && ended.errors.contains("--scenario"), "\(ended.errors)")
    }
}
