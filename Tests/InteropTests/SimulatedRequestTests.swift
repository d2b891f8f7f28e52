import BroadsideTestSupport
import Foundation
import Testing

/// Rules of the local APNs for single requests, asked for by curl.
@Suite(.timeLimit(.minutes(60)))
struct SimulatedRequestTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var options: [String] = []
        var suffix: String? = ""
        var certificate: String?
        var payload: [UInt8]? = Array(#"{"aps":{"alert":"x"}}"#.utf8)
        var status: Int
        var reason = ""
    }

    static func spaces(_ count: Int) -> [UInt8] {
        Array("{}".utf8) + Array(repeating: 0x20, count: count - 2)
    }

    static func header(_ text: String) -> [String] { ["-H", text] }

    static let cases = [
        Case(testDescription: "HEAD", options: ["-I"], payload: nil, status: 405),
        Case(
            testDescription: "background without priority",
            options: header("apns-push-type: background"), status: 400, reason: "BadPriority"),
        Case(
            testDescription: "background with 5",
            options: header("apns-push-type: background") + header("apns-priority: 5"), status: 200),
        Case(
            testDescription: "VoIP by topic", suffix: ".voip", payload: spaces(5120), status: 200),
        Case(
            testDescription: "too large for VoIP", suffix: ".voip", payload: spaces(5121),
            status: 413, reason: "PayloadTooLarge"),
        Case(
            testDescription: "too large for others", payload: spaces(4097), status: 413,
            reason: "PayloadTooLarge"),
        Case(
            testDescription: "a single topic needs no name", suffix: nil,
            certificate: "client-single", status: 200),
        Case(
            testDescription: "one of several does", suffix: nil, certificate: "client",
            status: 400, reason: "MissingTopic"),
        Case(
            testDescription: "a single topic covers no suffix", suffix: ".voip",
            certificate: "client-single", status: 400, reason: "TopicDisallowed"),
    ]

    @Test(arguments: [[], ["--fast"]])
    func `Each request gets its documented status and reason`(_ options: [String]) throws {
        let api = try SimulatedAPI(options)
        let bearer = try api.providerToken()
        let topic = try api.value("topic")
        for one in Self.cases {
            let response = try api.curl(
                one.options, bearer: one.certificate == nil ? bearer : nil,
                certificate: one.certificate, topic: one.suffix.map { topic + $0 },
                payload: one.payload)
            let expected = SimulatedAPI.Response(code: 0, status: one.status, reason: one.reason)
            #expect(response == expected, "\(one.testDescription)")
        }
    }

    /// RFC 9110 section 9.3.2: "the server MUST NOT send content in the response."
    @Test(arguments: [[], ["--fast"]])
    func `A response to HEAD ends with its headers`(_ options: [String]) throws {
        let api = try SimulatedAPI(options)
        let seen = try Subprocess(
            "nghttp", ["-v", "-n", "-H", ":method: HEAD", "https://\(api.simulation.endpoint)/"],
            in: api.directory
        ).wait()
        let text = seen.output
        let headers = try #require(text.range(of: "recv HEADERS frame"), "\(seen.errors)")
        #expect(text[headers.upperBound...].prefix(200).contains("END_STREAM"))
        #expect(!text.contains("recv DATA"))
    }

    /// Bodies that APNs has no use for.
    static let bodies: [(name: String, options: [String], body: [UInt8], finding: String?)] = [
        ("an object", [], Array(#"{"aps":{}}"#.utf8), nil),
        ("said to be as it is", header("content-encoding: identity"), Array("{}".utf8), nil),
        ("an array", [], Array("[]".utf8), "not a JSON dictionary"),
        ("a string", [], Array(#""aps""#.utf8), "not a JSON dictionary"),
        ("cut off", [], Array(#"{"aps":{}"#.utf8), "not a JSON dictionary"),
        ("two", [], Array("{}{}".utf8), "not a JSON dictionary"),
        ("NUL-terminated", [], Array("{}\0".utf8), "not a JSON dictionary"),
        (
            "not UTF-8", [], Array("{\"a\":\"".utf8) + [0xff] + Array("\"}".utf8),
            "not a JSON dictionary"
        ),
        ("said to be compressed", header("content-encoding: gzip"), Array("{}".utf8), "compressed"),
        (
            "gzip", [], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf],
            "compressed"
        ),
        (
            "zlib", header("content-encoding: deflate"), [0x78, 0x9c, 0xab, 0xae, 5, 0],
            "compressed"
        ),
        ("zstd", [], [0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0, 0x7b, 0x7d], "compressed"),
    ]

    @Test(arguments: ["report", "refuse", "off"])
    func `Bodies that are no JSON dictionary are counted, and refused if asked for`(mode: String)
        throws
    {
        let api = try SimulatedAPI(mode == "report" ? [] : ["--payload-lint", mode])
        let bearer = try api.providerToken()
        for (name, options, body, finding) in Self.bodies {
            let isRefused = mode == "refuse" && finding != nil
            let response = try api.curl(options, bearer: bearer, payload: body)
            #expect(response.status == (isRefused ? 400 : 200), "\(name)")
            #expect(response.reason == (isRefused ? "PayloadEmpty" : ""), "\(name)")
        }
        let said = try api.simulation.stop()
        for kind in ["not a JSON dictionary", "compressed"] {
            let count = Self.bodies.count { $0.finding == kind }
            let line = "payload: \(kind): \(count) requests"
            #expect(said.contains(line) == (mode != "off"), "\(said)")
        }
    }

    @Test(arguments: [
        ("NOW", 200, false), ("NOW.0", 200, false), ("NOW.987654", 200, false),
        ("NOWe0", 200, false), (#""NOW""#, 200, true), (#""NOW.5""#, 403, false),
        ("NOW000", 403, false), (#""NOW000""#, 403, false), ("-NOW", 403, false),
        ("[NOW]", 403, false), ("null", 403, false),
    ])
    func `A textual iat is accepted and counted`(_ form: String, status: Int, isText: Bool) throws {
        let api = try SimulatedAPI()
        let now = Int(Date().timeIntervalSince1970)
        let token = try api.providerToken(
            issueTime: form.replacingOccurrences(of: "NOW", with: "\(now)"))
        let response = try api.curl(bearer: token)
        #expect(response.status == status)
        #expect(response.reason == (status == 403 ? "InvalidProviderToken" : ""))

        let campaign = try Campaign(rows: 3)
        let file = try campaign.directory.write(token, to: "token")
        try #require(chmod(file, 0o600) == 0)
        let sent = try Broadside.run(
            campaign.arguments(
                to: api.simulation.endpoint,
                ["--auth-token-file", file, "--ca-file", try api.value("ca-file")]
                    + ["--topic", try api.value("topic")],
                without: ["auth-key", "key-id", "team-id", "ca-file", "topic"]),
            in: campaign.directory)
        #expect(sent.exitCode == (status == 200 ? 0 : 2), "\(sent.errors)")
        #expect(sent.errors.contains("iat is a string") == isText, "\(sent.errors)")
        let said = try api.simulation.stop()
        #expect(said.contains("iat is a string, not a number: 4 requests") == isText, "\(said)")
    }
}
