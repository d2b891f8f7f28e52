import BroadsideAPNs
import BroadsideTLS
import Foundation
import Glibc
import Testing

@testable import BroadsideSimulator

/// Each status and reason of the provider API, asked for by a client that nobody here wrote.
@Suite(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
struct ProviderAPITests {
    typealias Client = IndependentClient

    struct Case: Sendable, CustomTestStringConvertible {
        let status: Int
        let reason: String
        var change: [(String, String)] = []
        var without: Set<String> = []
        var body = "{\"aps\":{}}"
        /// The use of the key that signs; nil: the first key.
        var key: String?
        var issued = 0

        var testDescription: String { "\(status) \(reason) \(change.first?.0 ?? "")" }
    }

    static let cases = [
        Case(status: 200, reason: ""),
        Case(status: 200, reason: "", change: [("host", "127.0.0.1")]),
        Case(status: 200, reason: "", change: [("host", "127.0.0.1")], without: [":authority"]),
        Case(status: 200, reason: "", change: [("apns-collapse-id", text(64))]),
        Case(status: 400, reason: "BadCollapseId", change: [("apns-collapse-id", text(65))]),
        Case(status: 400, reason: "BadDeviceToken", change: [(":path", "/3/device/abc")]),
        Case(status: 400, reason: "BadDeviceToken", change: [(":path", "/3/device/zz")]),
        Case(status: 400, reason: "BadExpirationDate", change: [("apns-expiration", "soon")]),
        Case(status: 400, reason: "BadExpirationDate", change: [("apns-expiration", "-1")]),
        Case(status: 400, reason: "BadMessageId", change: [("apns-id", "1234")]),
        Case(status: 400, reason: "BadPriority", change: [("apns-priority", "7")]),
        Case(
            status: 400, reason: "BadPriority",
            change: [("apns-push-type", "background"), ("apns-priority", "10")]),
        Case(status: 400, reason: "BadTopic", change: [("apns-topic", "com example")]),
        Case(
            status: 400, reason: "DeviceTokenNotForTopic",
            change: [("apns-topic", "com.example.Other")]),
        Case(
            status: 400, reason: "DuplicateHeaders",
            change: [("apns-expiration", "0"), ("apns-expiration", "0")]),
        Case(status: 400, reason: "InvalidPushType", change: [("apns-push-type", "shout")]),
        Case(status: 400, reason: "MissingDeviceToken", change: [(":path", "/3/device/")]),
        Case(status: 400, reason: "MissingTopic", without: ["apns-topic"]),
        Case(status: 400, reason: "PayloadEmpty", body: ""),
        Case(status: 400, reason: "TopicDisallowed", change: [("apns-topic", "com.stranger")]),
        Case(
            status: 400, reason: "TopicDisallowed",
            change: [("apns-topic", "com.example.Other")], key: "key for the topic"),
        // Both apps are the first team's.
        Case(status: 400, reason: "TopicDisallowed", key: "key of another team"),
        Case(
            status: 400, reason: "TopicDisallowed",
            change: [("apns-topic", "com.example.Other")], key: "key of another team"),
        Case(status: 403, reason: "MissingProviderToken", without: ["authorization"]),
        Case(status: 403, reason: "InvalidProviderToken", change: [("authorization", "bearer x")]),
        Case(status: 403, reason: "ExpiredProviderToken", issued: -3700),
        Case(status: 403, reason: "InvalidProviderToken", issued: 3700),
        Case(status: 200, reason: "", key: "key for production"),
        Case(status: 200, reason: "", key: "key for the topic"),
        Case(status: 403, reason: "BadEnvironmentKeyIdInToken", key: "key for development"),
        Case(status: 404, reason: "BadPath", change: [(":path", "/2/device/abcd")]),
        Case(status: 405, reason: "MethodNotAllowed", change: [(":method", "GET")]),
        Case(status: 413, reason: "PayloadTooLarge", body: text(4097)),
        Case(status: 200, reason: "", body: text(4096)),
        Case(status: 200, reason: "", change: voip, body: text(5120)),
        Case(status: 413, reason: "PayloadTooLarge", change: voip, body: text(5121)),
    ]

    static let voip = [
        ("apns-topic", "com.example.Broadside.voip"), ("apns-push-type", "voip"),
    ]

    static func text(_ count: Int) -> String { String(repeating: "a", count: count) }
    static func json(_ reason: String) -> String { "{\"reason\":\"\(reason)\"}" }

    @Test(arguments: cases) func `A request gets the documented status and reason`(_ one: Case)
        throws
    {
        let harness = try EndpointHarness()
        let token = try harness.providerToken(use: one.key, issued: one.issued)
        let events = try Client.converse(
            harness,
            [
                .request(
                    Client.fields(
                        harness, bearer: token,
                        [("apns-id", EndpointHarness.id)].filter { _ in
                            !one.change.contains { $0.0 == "apns-id" }
                        } + one.change, without: one.without), body: one.body)
            ])
        let answer = try #require(events.first { $0.kind == "answer" }, "\(events)")
        #expect(answer.status == one.status)
        #expect(answer.body == (one.reason.isEmpty ? "" : Self.json(one.reason)))
        if one.reason != "BadMessageId" {
            #expect(answer.fields?["apns-id"] == EndpointHarness.id)
        }
        #expect(answer.fields?["apns-unique-id"] == nil, "this is production")
    }

    /// What no request brings about by itself a scenario does: all reasons that Apple lists.
    @Test func `A scenario can give each reason that Apple lists`() throws {
        let reasons = Reason.allCases.filter(\.isFromAPNs)
        let faults = reasons.enumerated().map { index, reason in
            "{ do: 'answer', at: \(index + 1), reason: '\(reason.text)', retry_after: 7 },"
        }
        let folder = Folder()
        let file = try folder.write("all.json5", "{ faults: [ \(faults.joined()) ] }")
        let harness = try EndpointHarness { $0.scenario = file }
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let events = try Client.converse(
            harness, reasons.map { _ in .request(fields, body: "{}") })
        let answers = events.filter { $0.kind == "answer" }
        try #require(answers.count == reasons.count)
        for (answer, reason) in zip(answers, reasons) {
            let body = answer.body ?? ""
            #expect(body.hasPrefix("{\"reason\":\"\(reason.text)\""), "\(body)")
            #expect(answer.fields?["retry-after"] == "7")
            #expect(body.contains("timestamp") == (answer.status == 410))
        }
        let statuses = Dictionary(
            uniqueKeysWithValues: zip(reasons, answers.map { $0.status ?? 0 }))
        #expect(statuses[.forbidden] == 403 && statuses[.expiredToken] == 410)
        #expect(statuses[.internalServerError] == 500 && statuses[.shutdown] == 503)
        #expect(statuses[.serviceUnavailable] == 503 && statuses[.tooManyRequests] == 429)
    }

    /// With an empty body, HEADERS ends the stream.
    @Test(arguments: ["{}", ""])
    func `A request whose host differs from :authority is reset and not counted`(_ body: String)
        throws
    {
        let harness = try EndpointHarness()
        let events = try Client.converse(
            harness,
            [
                .request(
                    Client.fields(
                        harness, bearer: try harness.providerToken(), [("host", "example.com")]),
                    body: body)
            ])
        #expect(events.contains { $0.kind == "reset" && $0.code == 1 }, "\(events)")
        #expect(!events.contains { $0.kind == "answer" })
        #expect(harness.stop().requests == 0)
    }

    @Test(arguments: [Endpoints.Environment.production, .development])
    func `The command that sends to a simulator names its environment unless it is production`(
        _ environment: Endpoints.Environment
    ) throws {
        let harness = try EndpointHarness {
            $0.environment = environment
            $0.binaryListen = "127.0.0.1:0"
        }
        let services = harness.endpoint.otherServices
        let commands = [harness.endpoint.sendCommand] + services.map(\.command)
        #expect(commands.count == 2)
        for command in commands {
            let name = command.firstIndex(of: "--environment").map { command[$0 + 1] }
            #expect(name == (environment == .development ? "development" : nil), "\(command)")
        }
    }

    @Test func `In development a response has an apns-unique-id`() throws {
        let harness = try EndpointHarness { $0.environment = .development }
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let events = try Client.converse(
            harness, [.request(fields, body: "{}"), .request(fields, body: "")])
        let answers = events.filter { $0.kind == "answer" }
        try #require(answers.count == 2)
        let unique = try #require(answers[0].fields?["apns-unique-id"])
        #expect(UUID(uuidString: unique) != nil && unique == unique.lowercased())
        #expect(unique != answers[0].fields?["apns-id"])
        #expect(answers[1].status == 400 && answers[1].fields?["apns-unique-id"] == nil)
        // And the other environment's key is now the one for production.
        let other = Client.fields(
            harness, bearer: try harness.providerToken(use: "key for production"))
        let refused = try Client.converse(harness, [.request(other, body: "{}")])
        #expect(refused.contains { $0.body == Self.json("BadEnvironmentKeyIdInToken") })
    }

    // MARK: Connections

    /// Keys in order of use on one connection, and what the last one comes to.
    @Test(
        arguments: [
            ([nil, "second key of the team"], "UnrelatedKeyIdInToken"),
            ([nil, "key of another team"], "InvalidProviderToken"),
            (["key for the topic", nil], "UnrelatedKeyIdInToken"),
            (["key for the topic", "key related to the key for the topic"], ""),
            ([nil, "second key of the team", nil], ""),
        ] as [([String?], String)])
    func `A connection is bound to its first key and team, or to one topic's key`(
        _ keys: [String?], reason: String
    ) throws {
        let harness = try EndpointHarness()
        var tokens: [String?: String] = [:]
        for key in keys { tokens[key] = try harness.providerToken(use: key) }
        let events = try Client.converse(
            harness,
            keys.map { .request(Client.fields(harness, bearer: tokens[$0]), body: "{}") })
        let answers = events.filter { $0.kind == "answer" }
        #expect(answers.count == keys.count)
        #expect(answers.first?.status == 200)
        #expect(answers.last?.body == (reason.isEmpty ? "" : Self.json(reason)))
    }

    /// "Refresh your token no more than once every 20 minutes."
    @Test(arguments: [
        // 1,300 seconds later is in order, 1,100 are too few; the one in use stays good, and what was
        // refused does not count.
        ([-3000, -1700, -600, -1700, -400], [200, 200, 429, 200, 200]),
        // A request with the earlier token, which was on its way, does not permit a renewal after
        // 300 seconds.
        ([-3000, -1700, -3000, -1400, -400], [200, 200, 200, 429, 200]),
    ])
    func `A token issued less than 20 minutes after the last is TooManyProviderTokenUpdates`(
        ages: [Int], statuses: [Int]
    ) throws {
        let harness = try EndpointHarness()
        var tokens: [Int: String] = [:]
        for age in ages { tokens[age] = try harness.providerToken(issued: age) }
        let events = try Client.converse(
            harness, ages.map { .request(Client.fields(harness, bearer: tokens[$0]), body: "{}") })
        let answers = events.filter { $0.kind == "answer" }
        #expect(answers.map(\.status) == statuses)
        let refused = answers.first { $0.status == 429 }
        #expect(refused?.body == Self.json("TooManyProviderTokenUpdates"))
    }

    @Test(arguments: [
        ("other/client-revoked", "BadCertificate", Endpoints.Environment.production),
        ("other/client-development", "BadCertificateEnvironment", .production),
        ("other/client-production", "BadCertificateEnvironment", .development),
    ])
    func `A revoked certificate, or one of another environment, is refused with GOAWAY`(
        _ name: String, reason: String, environment: Endpoints.Environment
    ) throws {
        let harness = try EndpointHarness { $0.environment = environment }
        let events = try Client.converse(
            harness, certificate: name, [.read(seconds: 10)])
        let goAway = try #require(events.first { $0.kind == "goaway" }, "\(events)")
        #expect(goAway.code == 0 && goAway.stream == 0 && goAway.debug == Self.json(reason))
        #expect(events.last?.kind == "end")
        #expect(harness.stop().requests == 0)
    }

    @Test func `A certificate of the environment is accepted without authorization`() throws {
        for (name, environment) in [
            ("client", Endpoints.Environment.production), ("client", .development),
            ("other/client-production", .production), ("other/client-development", .development),
        ] {
            let harness = try EndpointHarness { $0.environment = environment }
            // With a certificate `authorization` is ignored.
            let fields = Client.fields(harness, bearer: "nonsense")
            let events = try Client.converse(
                harness, certificate: name, [.request(fields, body: "{}")])
            #expect(events.contains { $0.status == 200 }, "\(name): \(events)")
        }
    }

    // MARK: Limits

    /// A refusal brings the stream limit down to 1, the next success up again.
    @Test func `Refusals lower the stream limit to 1, and the next success raises it`() throws {
        let folder = Folder()
        let file = try folder.write("collapse.json5", "{ refusals: { collapse_after: 2 } }")
        let harness = try EndpointHarness {
            $0.scenario = file
            $0.maxStreams = 77
        }
        let bearer = try harness.providerToken()
        let good = Client.fields(harness, bearer: bearer)
        let bad = Client.fields(harness, bearer: bearer, token: "abc")
        let events = try Client.converse(
            harness,
            [
                .request(good, body: "{}"), .request(bad, body: "{}"), .request(bad, body: "{}"),
                .request(good, body: "{}"), .ping("the last"),
            ])
        let limits = events.compactMap { $0.settings?["3"] }
        #expect(limits == [1, 77, 1, 77], "\(events)")
    }

    @Test func `Refusals beyond goaway_after end the connection`() throws {
        let folder = Folder()
        let file = try folder.write("budget.json5", "{ refusals: { goaway_after: 5 } }")
        let harness = try EndpointHarness {
            $0.scenario = file
            $0.unregistered = 1
        }
        let bearer = try harness.providerToken()
        let gone = Client.fields(harness, bearer: bearer)
        let bad = Client.fields(harness, bearer: bearer, token: "abc")
        let mute = Client.fields(harness, bearer: bearer, without: ["apns-topic"])
        // 410 does not count, BadDeviceToken counts twice: 2 + 2 + 1.
        let steps = [gone, gone, gone, gone, gone, gone, bad, bad, mute]
        let events = try Client.converse(
            harness, steps.map { .request($0, body: "{}") } + [.read(seconds: 10)])
        #expect(events.filter { $0.kind == "answer" }.count == steps.count)
        #expect(events.first { $0.kind == "goaway" }?.code == 11, "\(events)")
        #expect(events.last?.kind == "end")
    }

    @Test func `A device token above its rate gets 429, whatever its case`() throws {
        let folder = Folder()
        let file = try folder.write(
            "rate.json5", "{ token_rate: { requests: 3, per: '1h' } }")
        let harness = try EndpointHarness { $0.scenario = file }
        let bearer = try harness.providerToken()
        let lower = Client.fields(harness, bearer: bearer)
        let upper = Client.fields(
            harness, bearer: bearer, token: EndpointHarness.token.uppercased())
        let other = Client.fields(harness, bearer: bearer, token: "abcd")
        let events = try Client.converse(
            harness, [lower, upper, lower, upper, other].map { .request($0, body: "{}") })
        let answers = events.filter { $0.kind == "answer" }
        #expect(answers.map(\.status) == [200, 200, 200, 429, 200])
        #expect(answers[3].body == Self.json("TooManyRequests"))
    }

    @Test func `A client that respects the announced stream limit gets each response`() throws {
        let harness = try EndpointHarness { $0.maxStreams = 2 }
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        // h2 keeps to the limit by itself: nghttp2's word for it is in `SessionTests`.
        let events = try Client.converse(
            harness,
            [.request(fields, body: "{}"), .flood(count: 2, fields, body: "{}"), .answers])
        #expect(events.filter { $0.status == 200 }.count == 3)
    }
}
