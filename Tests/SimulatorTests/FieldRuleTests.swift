import BroadsideRing
import Testing

@testable import BroadsideSimulator

/// Rules that are known from the field only: each is a scenario.
@Suite(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
struct FieldRuleTests {
    typealias Client = IndependentClient

    private func harness(
        _ scenario: String, _ change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws -> EndpointHarness {
        let folder = Folder()
        let file = try folder.write("scenario.json5", scenario)
        return try EndpointHarness {
            $0.scenario = file
            change(&$0)
        }
    }

    /// The response to one request on a connection of its own.
    private func response(_ harness: EndpointHarness, bearer: String) throws -> String {
        let events = try Client.converse(
            harness, [.request(Client.fields(harness, bearer: bearer), body: "{}")])
        let answer = events.first { $0.kind == "answer" }
        return "\(answer?.status ?? 0)\(answer?.body ?? "")"
    }

    private static let tooMany = "429{\"reason\":\"TooManyProviderTokenUpdates\"}"
    private static let invalid = "403{\"reason\":\"InvalidProviderToken\"}"

    /// Two connections of one address with a token each.
    @Test(arguments: [("{}", "200"), ("{ token_updates: {} }", tooMany)])
    func `A second token on another connection is refused only if updates count by address`(
        _ scenario: String, second: String
    ) throws {
        let harness = try harness(scenario)
        let (older, newer) = (
            try harness.providerToken(issued: -3000), try harness.providerToken(issued: -1000)
        )
        #expect(try response(harness, bearer: older) == "200")
        #expect(try response(harness, bearer: newer) == second)
        // The token in use stays good.
        #expect(try response(harness, bearer: older) == "200")
    }

    @Test(arguments: [("false", "200"), ("true", tooMany)])
    func `A valid token right after an invalid one is refused only if invalid ones count`(
        _ counts: String, then: String
    ) throws {
        let harness = try harness("{ token_updates: { invalid: \(counts) } }")
        let good = try harness.providerToken()
        #expect(try response(harness, bearer: good + "x") == Self.invalid)
        #expect(try response(harness, bearer: good) == then)
    }

    @Test func `A token may change after the interval, and the one before stays good`() throws {
        var table = TokenUpdateTable()
        let rule = TokenUpdateRule(intervalNanoseconds: 100, countsInvalid: false)
        func uses(_ token: UInt64, from address: UInt32 = 1, port: UInt16 = 1, at now: UInt64)
            -> Bool
        {
            table.allows(token, from: .v4(address, port: port), rule, now: now)
        }
        #expect(uses(7, at: 0) && !uses(8, port: 2, at: 99) && uses(8, at: 100))
        // Both of them, but no third.
        #expect(uses(7, at: 101) && uses(8, at: 101) && !uses(9, at: 199) && uses(9, at: 200))
        #expect(!uses(7, at: 201))
        #expect(uses(8, from: 2, at: 201))
    }

    @Test func `Of more addresses than the limit the one with the oldest change is forgotten`() {
        var table = TokenUpdateTable()
        let rule = TokenUpdateRule(intervalNanoseconds: 1_000_000, countsInvalid: false)
        func uses(_ token: UInt64, from address: UInt32, at now: UInt64) -> Bool {
            table.allows(token, from: .v4(address, port: 1), rule, now: now)
        }
        for address in 0...UInt32(TokenUpdateTable.limit) {
            #expect(uses(1, from: address, at: UInt64(address)))
        }
        #expect(uses(2, from: 0, at: 2000))
        #expect(!uses(2, from: 2, at: 2000))
    }

    /// BadDeviceToken counts twice: 5 of them delay what follows by 500 ms.
    @Test func `Refusals delay the further responses of their connection, and no others`() throws {
        let harness = try harness("{ refusals: { slow_by: '50ms' } }")
        let bearer = try harness.providerToken()
        let good = Client.fields(harness, bearer: bearer)
        let bad = Client.fields(harness, bearer: bearer, token: "abc")
        let steps = Array(repeating: Client.Step.request(bad, body: "{}"), count: 5)
        let events = try Client.converse(harness, steps + [.request(good, body: "{}")])
        let last = try #require(events.last { $0.kind == "answer" }, "\(events)")
        #expect(last.status == 200 && last.seconds ?? 0 >= 0.45)
        let session = try strictSession("{ refusals: { slow_by: '50ms' } }")
        session.weigh(.refused(.badDeviceToken), session.limits)
        session.weigh(.refused(.badTopic), session.limits)
        session.weigh(.refused(.unregistered), session.limits)
        #expect(session.slowedNanoseconds == 150_000_000)
        session.weigh(.accepted, session.limits)
        #expect(session.slowedNanoseconds == 100_000_000)
        for _ in 0..<100 { session.weigh(.refused(.badTopic), session.limits) }
        #expect(session.slowedNanoseconds == RefusalLimits.maximumSlowNanoseconds)
        for _ in 0..<100 { session.weigh(.accepted, session.limits) }
        #expect(session.slowedNanoseconds == 0)
    }

    private func strictSession(_ scenario: String) throws -> ServerSession {
        let context = WorkerContext(
            options: SimulatorOptions(state: ""),
            tokenTopics: TopicTable(app: "a.b", otherApp: "a.c"), keys: [], journal: nil,
            start: .now(), seed: 1)
        context.run = ScenarioRun(
            try ScenarioReader.read(Array(scenario.utf8), name: "test"), now: context.now)
        let session = ServerSession(
            context: context, credential: ConnectionCredential(hasCertificate: true),
            topics: context.tokenTopics, slot: 0, generation: 0, number: 0)
        session.start()
        return session
    }

    @Test(
        arguments: [
            ("{ unregistered: { share: 0 } }", [200, 200]),
            ("{ unregistered: {} }", [410, 410]), ("{}", [410, 410]),
        ] as [(String, [Int])])
    func `A dead token gets 200 as long as the scenario has it`(
        _ scenario: String, statuses: [Int]
    ) throws {
        let harness = try harness(scenario) { $0.unregistered = 1 }
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let events = try Client.converse(
            harness, [.request(fields, body: "{}"), .request(fields, body: "{}")])
        #expect(events.compactMap(\.status) == statuses)
    }

    @Test func `Dead tokens turn to 410 evenly over the time of the scenario`() {
        let rule = LateUnregistered(withinNanoseconds: 1000, share: 1)
        for elapsed in [0, 250, 500, 1000] as [UInt64] {
            let reported = (0..<10_000 as Range<UInt64>).count { token in
                rule.isReported(token, elapsedNanoseconds: elapsed, chance: 0.5)
            }
            #expect(abs(reported - Int(elapsed) * 10) < 300)
        }
        let rare = LateUnregistered(withinNanoseconds: 0, share: 0.3)
        #expect(rare.isReported(1, elapsedNanoseconds: 0, chance: 0.29))
        #expect(!rare.isReported(1, elapsedNanoseconds: 0, chance: 0.31))
    }
}

extension ServerSession {
    fileprivate var limits: RefusalLimits { context.run!.scenario.refusals }
}
