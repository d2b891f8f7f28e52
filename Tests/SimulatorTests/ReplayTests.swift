import BroadsideAPNs
import Foundation
import Testing

@testable import BroadsideSimulator

/// Responses from a file, and the file that records them.
@Suite struct ReplayTests {
    private let folder = Folder()

    @Test func `The Nth request of a token gets its Nth line, and later ones its last`() throws {
        let file = try folder.write(
            "replay",
            """
            {"token":"00ff","status":503,"reason":"ServiceUnavailable","retry_after":7}
            {"token":"ab","status":429,"reason":"TooManyRequests"}

            {"token":null,"status":405,"reason":"MethodNotAllowed"}
            {"token":"00FF","status":410,"reason":"Unregistered","timestamp":1700000000123}\r
            {"token":"cd","status":0}
            {"token":"ef","status":431}
            """)
        let replay = try Replay(path: file)
        func take(_ token: String) -> Response? { Array(token.utf8).withBytes { replay.take($0) } }
        var busy = Response.refused(.serviceUnavailable)
        busy.retryAfterSeconds = 7
        var gone = Response.refused(.unregistered)
        gone.timestampMilliseconds = 1_700_000_000_123
        #expect(take("00fF") == busy && take("ab") == .refused(.tooManyRequests))
        #expect(take("00ff") == gone && take("00ff") == gone && take("00fe") == nil)
        #expect(take("cd") == .untaken && take("") == nil)
        #expect(take("ef") == Response(status: 431, reason: nil))
        let counts = Replay.Counts(replayed: 5, repeated: 1, unknown: 1)
        #expect(replay.counts == counts && replay.totals == counts)
        replay.restart()
        #expect(replay.counts == .init() && replay.totals == counts)
        #expect(take("00ff") == busy)
    }

    @Test func `A file may begin with a byte order mark`() throws {
        let file = try folder.write("replay", "\u{feff}{\"token\":\"00ff\",\"status\":410}\r\n")
        let replay = try Replay(path: file)
        #expect(Array("00ff".utf8).withBytes { replay.take($0)?.status } == 410)
    }

    @Test func `A token's responses on the legacy gateway are separate from those over HTTP/2`()
        throws
    {
        let file = try folder.write(
            "replay",
            """
            {"token":"00ff","protocol":"binary","status":8,"reason":"BadDeviceToken"}
            {"token":"00ff","protocol":"http2","status":410,"reason":"Unregistered","timestamp":1}
            {"token":"00ff","protocol":"binary","status":0}
            """)
        let replay = try Replay(path: file)
        func take(_ isBinary: Bool) -> UInt16? {
            Array("00ff".utf8).withBytes { replay.take($0, isBinary: isBinary)?.status }
        }
        #expect([take(true), take(true), take(true), take(false)] == [8, 0, 0, 410])
    }

    @Test(
        arguments: [
            ("{", "not a response"), ("[]", "not a response"), ("{\"token\":\"00\"}", "not a"),
            ("{\"token\":\"00\",\"status\":\"200\"}", "not a response"),
            ("{\"token\":\"00\",\"status\":200,\"delay\":1}", "'delay' is unknown"),
            ("{\"token\":\"0\",\"status\":200}", "'0' is not a device token"),
            ("{\"token\":\"zz\",\"status\":200}", "'zz' is not a device token"),
            ("{\"token\":\"00\",\"status\":302}", "status and reason do not match"),
            ("{\"token\":\"00\",\"status\":200,\"reason\":\"Shutdown\"}", "do not match"),
            ("{\"token\":\"00\",\"status\":400,\"reason\":\"Timeout\"}", "do not match"),
            ("{\"token\":\"00\",\"protocol\":\"tcp\",\"status\":200}", "http2 or binary"),
            ("{\"token\":\"00\",\"protocol\":\"binary\",\"status\":256}", "of the legacy gateway"),
            (
                "{\"token\":\"00\",\"protocol\":\"binary\",\"status\":8,\"reason\":\"Shutdown\"}",
                "do not match"
            ),
        ])
    func `A line that is no response is named with its number`(
        _ line: String, message: String
    ) throws {
        let file = try folder.write("wrong", "{\"token\":\"00\",\"status\":200}\n\n\(line)\n")
        let error = try #require(throws: SimulatorError.self) { try Replay(path: file) }
        #expect(error.exitCode == 2 && error.message.contains("\(file), line 3: "))
        #expect(error.message.contains(message), "\(error.message)")
    }

    /// By curl, over a simulator that records and another that replays.
    @Test(.enabled(if: isInstalled("curl"), "curl is not installed"))
    func `What one simulator recorded is what another one responds`() throws {
        let recording = folder.file("recording")
        let first = try EndpointHarness {
            $0.record = recording
            $0.isControlledHere = true
        }
        let tokens = ["00fc13adff", "11fc13adff", "22FC13adff"]
        func answers(_ harness: EndpointHarness, _ tokens: [String]) throws -> [String] {
            try tokens.map { token in
                let response = try harness.curl(
                    "/3/device/\(token)", authorization: try harness.providerToken())
                let retry = response.headers["retry-after"] ?? ""
                return "\(response.status ?? 0) \(response.body) \(retry)"
            }
        }
        for outcome in [
            "\(tokens[0]) TooManyRequests times=1 retry-after=9", "\(tokens[1]) Unregistered",
        ] { #expect(first.endpoint.control("outcome \(outcome)").contains("\"ok\":true")) }
        let order = tokens + tokens
        let seen = try answers(first, order)
        #expect(seen[0].hasPrefix("429 {\"reason\":\"TooManyRequests\"}") && seen[0].hasSuffix("9"))
        #expect(seen[1].hasPrefix("410 ") && seen[3].hasPrefix("200 "))
        // A path without a device token is recorded, too.
        _ = try first.curl("/3/device/", authorization: try first.providerToken())
        _ = first.stop()

        let text = try String(contentsOfFile: recording, encoding: .utf8)
        let lines = text.split(separator: "\n").map { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any] ?? [:]
        }
        #expect(lines.compactMap { $0["status"] as? Int } == [429, 410, 200, 200, 410, 200, 400])
        #expect(
            lines.map { $0["token"] as? String ?? "none" }
                == order.map { $0.lowercased() } + ["none"])
        var mode = stat()
        #expect(stat(recording, &mode) == 0 && mode.st_mode & 0o777 == 0o600)

        let second = try EndpointHarness { $0.replay = recording }
        #expect(try answers(second, order) == seen)
        // The last line again, and a token of which nothing is recorded.
        #expect(
            try answers(second, [tokens[0], tokens[1], "33fc"]) == [seen[3], seen[4], seen[3]])
        let report = second.stop().report(lint: .off)
        #expect(
            report.contains(
                "replay: 6 requests got the next line of their token, 2 its last line again, "
                    + "1 found no line"))
    }

    @Test(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
    func `A recorded request that was not processed is refused so that it can be repeated`() throws
    {
        let file = try folder.write(
            "untaken", "{\"token\":\"00fc\",\"status\":0}\n{\"token\":\"00fc\",\"status\":200}\n")
        let harness = try EndpointHarness { $0.replay = file }
        let fields = IndependentClient.fields(
            harness, bearer: try harness.providerToken(), token: "00fc")
        let events = try IndependentClient.converse(
            harness, [.request(fields, body: "{}"), .request(fields, body: "{}")])
        // REFUSED_STREAM (RFC 9113 section 8.7).
        #expect(events.filter { $0.kind == "reset" }.map(\.code) == [7])
        #expect(events.compactMap(\.status) == [200])
        let totals = harness.stop()
        #expect(totals.requests == 1 && totals.accepted == 1)
    }
}
