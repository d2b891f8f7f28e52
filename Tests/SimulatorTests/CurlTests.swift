import Foundation
import Testing

@testable import BroadsideSimulator

/// curl asks each thing once, of both kinds of session.
@Suite(.enabled(if: isInstalled("curl"), "curl is not installed"))
struct CurlTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let status: Int
        let body: String
        var path = "/3/device/\(EndpointHarness.token)"
        var hasToken = true
        var issued = 0
        var topic: String? = ""
        var payload: String? = "{\"aps\":{}}"
        var more: [String] = []

        var testDescription: String { "\(status) \(body)" }
    }

    /// Token and seed for 410 were looked up in Python with 30 % unregistered, 10 % bad, seed 7.
    static let cases = [
        Case(status: 200, body: "", path: "/3/device/ffffffffffffffff00"),
        Case(
            status: 410, body: "{\"reason\":\"Unregistered\",\"timestamp\":1700012689224}"),
        Case(
            status: 400, body: reason("BadDeviceToken"), path: "/3/device/0123456789abcdef"),
        Case(status: 400, body: reason("BadDeviceToken"), path: "/3/device/nonsense"),
        Case(status: 403, body: reason("MissingProviderToken"), hasToken: false),
        Case(status: 403, body: reason("ExpiredProviderToken"), issued: -3700),
        Case(status: 403, body: reason("InvalidProviderToken"), issued: 3700),
        Case(status: 404, body: reason("BadPath"), path: "/2/device/ab"),
        Case(status: 405, body: reason("MethodNotAllowed"), payload: nil),
        Case(
            status: 413, body: reason("PayloadTooLarge"),
            payload: String(repeating: "a", count: 4097)),
        Case(
            status: 413, body: reason("PayloadTooLarge"),
            payload: String(repeating: "a", count: 100_000)),
        Case(status: 400, body: reason("MissingTopic"), topic: nil),
        Case(status: 400, body: reason("TopicDisallowed"), topic: "com.stranger"),
        Case(status: 400, body: reason("DeviceTokenNotForTopic"), topic: "com.example.Other"),
        Case(
            status: 400, body: reason("PayloadEmpty"), payload: nil, more: ["-X", "POST"]),
        Case(
            status: 400, body: reason("DuplicateHeaders"),
            more: ["-H", "apns-priority: 5", "-H", "apns-priority: 10"]),
    ]

    static func reason(_ text: String) -> String { "{\"reason\":\"\(text)\"}" }

    @Test(arguments: cases, [false, true])
    func `A request by curl gets its status, reason and apns-id`(_ one: Case, isFast: Bool) throws {
        let harness = try EndpointHarness {
            $0.isFast = isFast
            $0.badToken = 0.1
            $0.unregistered = 0.3
            $0.seed = 7
        }
        let token = one.hasToken ? try harness.providerToken(issued: one.issued) : nil
        let response = try harness.curl(
            one.path, authorization: token, topic: one.topic, body: one.payload,
            more: one.more + ["-H", "apns-id: \(EndpointHarness.id)"])
        #expect(response.status == one.status, "\(response.errors)")
        #expect(response.body == one.body)
        #expect(response.headers["apns-id"] == EndpointHarness.id)
        #expect((response.headers["content-type"] == "application/json") == !one.body.isEmpty)
        let totals = harness.stop()
        #expect(totals.requests == 1)
        #expect(totals.accepted == (one.status == 200 ? 1 : 0))
    }

    @Test func `A host with a name of Apple's is verified against the server's certificate`() throws
    {
        let harness = try EndpointHarness { $0.serverNames = ["api.push.apple.com"] }
        for (host, status) in [
            ("api.push.apple.com", "200"), ("api.sandbox.push.apple.com", "000"),
        ] {
            let result = try run([
                "curl", "-sS", "--http2", "--max-time", "10", "--cacert",
                harness.state.file("ca.pem"), "--resolve",
                "\(host):\(harness.endpoint.port):127.0.0.1", "-o", "/dev/null", "-w",
                "%{http_code}", "-H", "authorization: bearer \(try harness.providerToken())", "-H",
                "apns-topic: \(harness.state.topic)", "--data", "{}",
                "https://\(host):\(harness.endpoint.port)/3/device/\(EndpointHarness.token)",
            ])
            #expect(result.output == status, "\(result.errors)")
        }
    }

    /// More than SETTINGS_MAX_HEADER_LIST_SIZE allows, which is advice (RFC 9113 section 6.5.2).
    @Test(arguments: [false, true]) func `Headers above the announced list size get 431`(
        isFast: Bool
    ) throws {
        let harness = try EndpointHarness { $0.isFast = isFast }
        let response = try harness.curl(
            authorization: try harness.providerToken(),
            more: ["-H", "x-long: " + String(repeating: "a", count: 9000)])
        #expect(response.status == 431, "\(response.errors)")
        #expect(harness.stop().accepted == 0)
    }

    @Test(arguments: [false, true])
    func `A request without apns-id gets a random one in upper case`(isFast: Bool) throws {
        let harness = try EndpointHarness { $0.isFast = isFast }
        let response = try harness.curl(authorization: try harness.providerToken())
        let id = try #require(response.headers["apns-id"])
        #expect(UUID(uuidString: id) != nil)
        #expect(id == id.uppercased())
        #expect(id.dropFirst(14).first == "4")
    }

    @Test(arguments: [false, true])
    func `With a client certificate the topic must be one of its topics`(isFast: Bool) throws {
        let harness = try EndpointHarness { $0.isFast = isFast }
        let files = [
            "--cert", harness.state.file("client.pem"), "--key", harness.state.file("client.key"),
        ]
        // `authorization` is ignored, even where it is nonsense.
        let accepted = try harness.curl(authorization: "nonsense", more: files)
        #expect(accepted.status == 200, "\(accepted.errors)")
        let voip = try harness.curl(
            authorization: nil, topic: harness.state.topic + ".voip", more: files)
        #expect(voip.status == 200)
        let missing = try harness.curl(authorization: nil, topic: nil, more: files)
        #expect(missing.body == Self.reason("MissingTopic"))
        let other = try harness.curl(authorization: nil, topic: "com.example.Other", more: files)
        #expect(other.body == Self.reason("TopicDisallowed"))
    }

    @Test func `A certificate of another authority fails the handshake`() throws {
        let harness = try EndpointHarness()
        let other = try StateDirectory(path: harness.folder.file("other"))
        let response = try harness.curl(
            authorization: nil,
            more: ["--cert", other.file("client.pem"), "--key", other.file("client.key")])
        #expect(response.status == nil)
        #expect(harness.stop().handshakesFailed == 1)
    }

    @Test func `A response waits for the latency and its jitter`() throws {
        let harness = try EndpointHarness {
            $0.latencyNanoseconds = 300_000_000
            $0.latencyJitterNanoseconds = 100_000_000
        }
        let token = try harness.providerToken()
        let start = ClockStart.monotonicNanoseconds()
        let response = try harness.curl(authorization: token)
        let elapsed = ClockStart.monotonicNanoseconds() - start
        #expect(response.status == 200)
        #expect(elapsed >= 200_000_000)
    }

    @Test func `The journal has a line for each request, with quoted fields`() throws {
        let folder = Folder()
        let harness = try EndpointHarness { $0.journal = folder.file("journal.csv") }
        let token = try harness.providerToken()
        let before = UInt64(Date().timeIntervalSince1970 * 1e6)
        _ = try harness.curl(
            authorization: token, more: ["-H", "apns-id: \(EndpointHarness.id)"])
        _ = try harness.curl("/nonsense,path", authorization: token)
        _ = harness.stop()
        let rows = try journalRows(folder.file("journal.csv"))
        try #require(rows.count == 2)
        let microseconds = try #require(UInt64(rows[0][0]))
        #expect(microseconds > before && microseconds < before + 60_000_000)
        #expect(
            Array(rows[0][1...])
                == ["1", "1", EndpointHarness.id, EndpointHarness.token, "200", ""])
        #expect(rows[1][1] == "2")
        #expect(Array(rows[1][4...]) == ["", "404", "BadPath"])
    }

    @Test func `The journal is written while the simulator runs`() throws {
        let folder = Folder()
        let harness = try EndpointHarness { $0.journal = folder.file("journal.csv") }
        _ = try harness.curl(authorization: try harness.providerToken())
        var rows = 0
        for _ in 0..<600 where rows == 0 {
            usleep(100_000)
            rows = try journalRows(folder.file("journal.csv")).count
        }
        #expect(rows == 1)
    }
}
