import Foundation
import Testing

@testable import BroadsideSimulator

/// The commands over HTTP, from curl and from Python.
@Suite(.enabled(if: isInstalled("curl"), "curl is not installed"))
struct ControlEndpointTests {
    private static let token = EndpointHarness.token

    private func harness(
        _ change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws -> EndpointHarness {
        try EndpointHarness {
            $0.controlListen = "127.0.0.1:0"
            change(&$0)
        }
    }

    /// What curl got: the status, and the JSON object.
    private func ask(
        _ harness: EndpointHarness, _ path: String, post: Bool = false, _ more: [String] = []
    ) throws -> (status: Int, object: [String: Any]) {
        let address = try #require(harness.endpoint.controlAddress)
        let words = ["curl", "-sS", "--max-time", "30", "-w", "\n%{http_code}"]
        let result = try run(
            words + (post ? ["-X", "POST"] : []) + more + ["http://\(address)\(path)"], seconds: 60)
        let lines = result.output.split(separator: "\n").map(String.init)
        let object = try JSONSerialization.jsonObject(with: Data((lines.first ?? "").utf8))
        return (Int(lines.last ?? "") ?? 0, object as? [String: Any] ?? [:])
    }

    private func push(
        _ harness: EndpointHarness, _ token: String = token, topic: String? = ""
    ) throws -> Int? {
        try harness.curl(
            "/3/device/\(token)", authorization: try harness.providerToken(), topic: topic,
            body: "{\"aps\":{\"alert\":\"ü\"}}", more: ["-H", "apns-priority: 10"]
        ).status
    }

    private func rows(_ object: [String: Any]) -> [[String: Any]] {
        object["requests"] as? [[String: Any]] ?? []
    }

    @Test func `What was received is there as JSON, filtered, and gone after a reset`() throws {
        let harness = try harness()
        #expect(try push(harness) == 200)
        #expect(try push(harness, "00ff", topic: "com.example.none") == 400)
        let all = try ask(harness, "/received")
        #expect(all.status == 200 && all.object["total"] as? Int == 2)
        #expect(all.object["dropped"] as? Int == 0 && all.object["more"] as? Bool == false)
        let first = try #require(rows(all.object).first)
        #expect(first["number"] as? Int == 1 && first["token"] as? String == Self.token)
        #expect(first["method"] as? String == "POST")
        #expect(first["path"] as? String == "/3/device/\(Self.token)")
        #expect(first["topic"] as? String == harness.state.topic)
        #expect(first["status"] as? Int == 200 && first["reason"] is NSNull)
        let headers = try #require(first["headers"] as? [String: String])
        #expect(headers["apns-priority"] == "10" && headers["authorization"] == "bearer …")
        let claims = try #require(first["provider_token"] as? [String: Any])
        #expect(claims["key_id"] as? String == harness.state.keyID)
        #expect(claims["team_id"] as? String == harness.state.teamID)
        #expect((first["payload"] as? [String: [String: String]]) == ["aps": ["alert": "ü"]])

        func numbers(_ query: String) throws -> [Int] {
            rows(try ask(harness, "/received?\(query)").object).compactMap { $0["number"] as? Int }
        }
        #expect(try numbers("token=00FF") == [2] && numbers("topic=com.example.none") == [2])
        #expect(try numbers("status=200") == [1] && numbers("reason=TopicDisallowed") == [2])
        #expect(try numbers("apns-priority=10") == [1, 2] && numbers("apns-priority=5").isEmpty)
        #expect(try numbers("after=1") == [2] && numbers("limit=1") == [1])
        let pages = try ["limit=1", "limit=1&after=1"].map {
            try ask(harness, "/received?\($0)").object["more"] as? Bool
        }
        #expect(pages == [true, false])
        #expect(try ask(harness, "/reset", post: true).status == 200)
        #expect(try numbers("limit=10").isEmpty)
        #expect(try push(harness) == 200 && numbers("limit=10") == [1])
    }

    @Test func `wait responds once enough requests came, or with 504 after its timeout`() throws {
        let harness = try harness()
        let late = try ask(harness, "/wait/1?timeout=50ms")
        #expect(late.status == 504 && late.object["ok"] as? Bool == false)
        #expect(try push(harness) == 200)
        let done = try ask(harness, "/wait/1?token=\(Self.token)")
        #expect(done.status == 200 && done.object["count"] as? Int == 1)
        #expect(try ask(harness, "/wait/1?token=00ff&timeout=50ms").status == 504)
        // A push while curl waits.
        let address = try #require(harness.endpoint.controlAddress)
        let push = "sleep 0.3; curl -sS --http2 --cacert \(harness.state.file("ca.pem")) -d '{}' "
        let both = try run(
            [
                "sh", "-c",
                "(\(push) \(harness.url("/3/device/00ff"))) >/dev/null & "
                    + "curl -sS --max-time 30 'http://\(address)/wait/2?timeout=30s'; wait",
            ], seconds: 60)
        #expect(both.output.contains("\"count\":2"), "\(both)")
    }

    @Test func `A wait ends when the simulator does`() throws {
        let harness = try harness()
        let address = try #require(harness.endpoint.controlAddress)
        let output = harness.folder.file("output")
        _ = try run([
            "bash", "-c",
            "(\(ConnectionEndTests.closeInherited); "
                + "curl -sS 'http://\(address)/wait/1?timeout=60s' >\(output).part 2>&1; "
                + "mv \(output).part \(output)) >/dev/null 2>&1 &",
        ])
        // Until the connection is there.
        for _ in 0..<3000 where access("\(output).part", F_OK) != 0 { usleep(10_000) }
        usleep(300_000)
        let start = Date()
        _ = harness.stop()
        #expect(Date().timeIntervalSince(start) < 30)
        for _ in 0..<3000 where access(output, F_OK) != 0 { usleep(10_000) }
        #expect(access(output, F_OK) == 0)
    }

    @Test func `A token's outcome decides its response, for as many requests as it says`() throws {
        let harness = try harness()
        let set = try ask(harness, "/outcome/\(Self.token)/Unregistered?times=1", post: true)
        #expect(set.status == 200 && set.object["status"] as? Int == 410)
        #expect(try push(harness) == 410 && push(harness) == 200)
        #expect(
            try ask(harness, "/outcome/\(Self.token)/TooManyRequests?retry-after=3", post: true)
                .status
                == 200)
        let refused = try harness.curl(authorization: try harness.providerToken())
        #expect(refused.status == 429 && refused.headers["retry-after"] == "3")
        // Other mistakes come first.
        #expect(try harness.curl(authorization: nil).status == 403)
        #expect(try ask(harness, "/status").object["outcomes"] as? Int == 1)
        #expect(try ask(harness, "/outcome/\(Self.token)/none", post: true).status == 200)
        #expect(try push(harness) == 200)
        #expect(try ask(harness, "/outcome/\(Self.token)/BadDeviceToken", post: true).status == 200)
        #expect(try push(harness) == 400)
        #expect(try ask(harness, "/reset", post: true).status == 200)
        #expect(try push(harness) == 200)
    }

    @Test func `Used provider tokens expire, and new ones are accepted`() throws {
        let harness = try harness()
        let first = try harness.providerToken(issued: -60)
        func status(_ token: String) throws -> String {
            let response = try harness.curl(authorization: token)
            return "\(response.status ?? 0) \(response.body)"
        }
        #expect(try status(first).hasPrefix("200"))
        #expect(try ask(harness, "/expire-token", post: true).object["expired"] as? Int == 1)
        #expect(try status(first).contains("ExpiredProviderToken"))
        #expect(try status(harness.providerToken()).hasPrefix("200"))
        #expect(try ask(harness, "/reset", post: true).status == 200)
        #expect(try status(first).hasPrefix("200"))
    }

    @Test(
        .enabled(if: IndependentClient.isThere, "python3-h2 is not installed"),
        arguments: ["goaway", "close", "reset"])
    func `Dropping ends each connection in its manner`(_ manner: String) throws {
        let harness = try harness { $0.threads = 2 }
        let words = try IndependentClient.words(
            harness,
            [
                .request(
                    IndependentClient.fields(harness, bearer: try harness.providerToken()),
                    body: "{}"), .read(seconds: 60),
            ])
        let (output, done) = (harness.folder.file("events"), harness.folder.file("done"))
        let command = words.map { "'\($0)'" }.joined(separator: " ")
        _ = try run([
            "bash", "-c",
            "(\(ConnectionEndTests.closeInherited); "
                + "\(command) >'\(output)' 2>&1; touch '\(done)') &",
        ])
        // The client starts late if the machine is busy.
        for _ in 0..<12_000 where harness.endpoint.requestCount == 0 { usleep(10_000) }
        let dropped = try ask(harness, "/drop/\(manner)", post: true)
        #expect(dropped.status == 200 && dropped.object["dropped"] as? Int == 1)
        for _ in 0..<12_000 where access(done, F_OK) != 0 { usleep(10_000) }
        let text = try String(contentsOfFile: output, encoding: .utf8)
        let events = try IndependentClient.events(
            of: CommandResult(status: 0, output: text, errors: text))
        #expect(events.contains { $0.status == 200 } && events.last?.kind == "end", "\(text)")
        let goAway = events.first { $0.kind == "goaway" }
        #expect((goAway != nil) == (manner == "goaway"))
        if let goAway { #expect(goAway.code == 0 && goAway.debug == "{\"reason\":\"Shutdown\"}") }
        // None is left.
        #expect(try ask(harness, "/drop", post: true).object["dropped"] as? Int == 0)
        #expect(harness.stop().connections == 1)
    }

    @Test
    func `A reset restores scenario, devices, channels and counts, but the totals keep all`()
        throws
    {
        let folder = Folder()
        let offline = try folder.write("offline", "00ff\n")
        let harness = try harness {
            $0.offline = offline
            $0.scenario = "none-such"
            $0.scenario = nil
        }
        #expect(try push(harness, "00ff") == 200)
        #expect(try ask(harness, "/status").object["stored"] as? Int == 1)
        #expect(try ask(harness, "/online/00ff", post: true).object["delivered"] as? Int == 1)
        #expect(try ask(harness, "/scenario/goaway", post: true).status == 200)
        #expect(try ask(harness, "/status").object["scenario"] as? String == "goaway")
        #expect(try ask(harness, "/reset", post: true).status == 200)
        let status = try ask(harness, "/status").object
        #expect(status["scenario"] is NSNull && status["delivered"] as? Int == 0)
        for name in ["connections", "requests", "accepted"] {
            #expect(status[name] as? Int == 0, "\(name)")
        }
        #expect(try push(harness, "00ff") == 200)
        #expect(try ask(harness, "/status").object["stored"] as? Int == 1)
        let totals = harness.stop()
        #expect(totals.requests == 2)
        #expect(totals.devices == DeviceStore.Counts(stored: 1, delivered: 1))
    }

    @Test(
        arguments: [
            ("GET", "/nonsense", 404, "unknown command"), ("GET", "/reset", 405, "POST"),
            ("POST", "/status", 405, "GET"), ("POST", "/outcome/00ff", 400, "needs reason"),
            ("POST", "/outcome/0/Unregistered", 400, "not a device token"),
            ("POST", "/outcome/00ff/Timeout", 400, "reason 'Timeout' is unknown"),
            ("POST", "/outcome/00ff/Unregistered?times=0", 400, "times '0' is not a number"),
            ("POST", "/outcome/00ff/Unregistered?time=1", 400, "'time' is unknown"),
            ("POST", "/outcome/00ff/Unregistered?token=00ff", 400, "token is given twice"),
            ("POST", "/online/00ff/00ff", 400, "too many"), ("POST", "/online", 400, "needs token"),
            ("POST", "/scenario?name=none-such", 400, "none-such"),
            ("POST", "/drop/softly", 400, "goaway, close, reset"),
            ("GET", "/wait/0", 400, "count '0' is not a number"),
            ("GET", "/wait/1?timeout=2m", 400, "timeout '2m' is not"),
            ("GET", "/received?limit=0", 400, "limit '0'"),
            ("GET", "/received?token=xyz", 400, "not a device token"),
        ])
    func `A wrong request is refused with its remedy as JSON`(
        _ method: String, path: String, status: Int, message: String
    ) throws {
        let harness = try harness()
        let answer = try ask(harness, path, post: method == "POST")
        #expect(answer.status == status && answer.object["ok"] as? Bool == false)
        let error = try #require(answer.object["error"] as? String)
        #expect(error.contains(message) && !error.contains("\n"), "\(error)")
    }

    /// A browser on this machine runs pages of anyone.
    @Test func `Requests of web pages of other sites are refused, and change nothing`() throws {
        let harness = try harness()
        let address = try #require(harness.endpoint.controlAddress)
        for header in [
            "Origin: http://evil.example", "Origin: null", "Host: evil.example",
            "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://\(address)",
        ] {
            for post in [true, false] {
                let path = post ? "/outcome/00ff/Unregistered" : "/received"
                let answer = try ask(harness, path, post: post, ["-H", header])
                #expect(answer.status == 403 && answer.object["error"] is String, "\(header)")
            }
        }
        for header in ["Origin: http://\(address)", "Sec-Fetch-Site: none", "Host: localhost:80"] {
            #expect(try ask(harness, "/status", post: false, ["-H", header]).status == 200)
        }
        #expect(try ask(harness, "/status").object["outcomes"] as? Int == 0)
    }

    @Test func `A simulator that keeps no requests says how to keep them`() throws {
        let harness = try harness { $0.keptRequests = 0 }
        #expect(try push(harness) == 200)
        let answer = try ask(harness, "/received")
        #expect(answer.status == 400)
        #expect((answer.object["error"] as? String)?.contains("--keep-requests") == true)
        // The same command by the call that tests in Swift use.
        #expect(harness.endpoint.control("received").contains("--keep-requests"))
    }

    @Test func `A request without apns-topic has the topic of the certificate`() throws {
        let harness = try harness()
        for (name, topic) in [("client-single", nil), ("client", nil), ("client", "com.example.x")]
            as [(String, String?)]
        {
            let certificate = harness.state.file("\(name).pem")
            _ = try harness.curl(
                authorization: nil, topic: topic,
                more: ["--cert", certificate, "--key", harness.state.file("\(name).key")])
        }
        let received = rows(try ask(harness, "/received").object)
        let topics = received.map { $0["topic"] as? String }
        #expect(topics == [harness.state.topic, nil, "com.example.x"])
        let selected = try ask(harness, "/received?topic=\(harness.state.topic)").object
        #expect(rows(selected).count == 1)
    }

    @Test func `A channel's ID may be copied into a query as it is, with its plus signs`() throws {
        let harness = try harness()
        let authorization = try harness.providerToken()
        // Each ID is random, and more than a quarter of them have a plus sign.
        var channel = ""
        for _ in 0..<300 where !channel.contains("+") {
            let created = try harness.curl(
                "/1/apps/\(harness.state.topic)/channels", authorization: authorization, topic: nil,
                body: "{\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}")
            channel = try #require(created.headers["apns-channel-id"])
        }
        #expect(channel.contains("+"))
        for command in ["subscribe", "unsubscribe"] {
            let asked = try ask(harness, "/\(command)?channel=\(channel)&token=00fe", post: true)
            #expect(asked.status == 200, "\(channel): \(asked.object)")
        }
    }

    /// The form of a channel's ID: Base64, which has slashes and equals signs.
    @Test func `A channel's ID may be a word of a line and a parameter of a query`() throws {
        let harness = try harness()
        let created = try harness.curl(
            "/1/apps/\(harness.state.topic)/channels", authorization: try harness.providerToken(),
            topic: nil, body: "{\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}")
        let channel = try #require(created.headers["apns-channel-id"])
        #expect(channel.hasSuffix("=="))
        #expect(harness.endpoint.control("subscribe \(channel) 00ff") == "{\"ok\":true}")
        let encoded = try #require(
            channel.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
        let path = "/subscribe?channel=\(encoded)&token=00fe"
        #expect(try ask(harness, path, post: true).status == 200)
        #expect(try ask(harness, "/status").object["subscriptions"] as? Int == 2)
        #expect(try ask(harness, "/reset", post: true).status == 200)
        #expect(try ask(harness, "/status").object["channels"] as? Int == 0)
    }
}
