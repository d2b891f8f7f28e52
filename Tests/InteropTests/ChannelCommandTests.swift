import BroadsideTestSupport
import Foundation
import Testing

/// `channel` and `broadcast` against `Tests/Servers/channels.py`, which holds each request against
/// Apple's tables, and against the simulator.
@Suite(.timeLimit(.minutes(60)))
struct ChannelCommandTests {
    static let channel = "dGVzdC1jaGFubmVsLTE="
    /// Less than an hour ahead, so that no command warns of it for nearly two hours.
    private static let timestamp = Int(Date.now.timeIntervalSince1970) + 3000
    static let update = """
        {"aps": {"timestamp": \(timestamp), "event": "update",
            "content-state": {"home": 2, "away": 1, "minute": 74}}}
        """
    /// The same as it is sent: 97 bytes in Apple's form.
    static let minified =
        #"{"aps":{"timestamp":\#(timestamp),"event":"update","content-state":{"home":2,"away":1,"minute":74}}}"#

    /// A request as the server saw it.
    struct Seen: Decodable {
        var operation: String?
        var problems: [String]
        var answer: String
        var body: String
        var fields: [String: String]
    }

    /// Starts a broadcast, and waits until a server has its request, which never gets a response.
    private static func startBroadcastWithoutResponse(
        _ caller: ChannelCaller
    ) throws -> (started: Subprocess, silent: RecordingServer) {
        let silent = try server("silent-channel")
        let started = try Broadside.start(
            [
                "broadcast", "--channel", channel, "--payload", caller.payload, "--ledger",
                caller.ledger,
            ] + caller.credential(silent.endpoint), in: caller.directory)
        for _ in 0..<3000 where try seen(silent).isEmpty { usleep(10_000) }
        return (started, silent)
    }

    static func server(_ responses: String, _ more: [String] = []) throws -> RecordingServer {
        try RecordingServer(responses, more, script: "channels.py", python: "/usr/bin/python3")
    }

    static func seen(_ server: RecordingServer) throws -> [Seen] {
        try Data(contentsOf: URL(filePath: server.recordPath)).split(separator: 0x0a).map {
            try JSONDecoder().decode(Seen.self, from: $0)
        }
    }

    static func object(_ text: String) throws -> [String: Any] {
        try #require(
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
    }

    // MARK: channel

    @Test func `Each operation sends the documented request and prints what the response says`()
        throws
    {
        let server = try Self.server("check")
        let caller = try ChannelCaller()
        let named = ["--channel", Self.channel]
        let created = try caller.channel(server.endpoint, ["create", "--storage", "newest"])
        #expect(created.exitCode == 0 && created.output == Self.channel + "\n", "\(created.errors)")
        let plain = try caller.channel(server.endpoint, ["create", "--json"])
        let object = try Self.object(plain.output)
        #expect(
            object["channel"] as? String == Self.channel && object["storage"] as? String == "none")
        #expect(object["request_id"] as? String == "ABCDEF00-0000-4000-8000-000000000000")
        let read = try caller.channel(server.endpoint, ["read"] + named)
        #expect(read.output == "storage    newest\npush type  LiveActivity\n", "\(read.errors)")
        let list = try caller.channel(server.endpoint, ["list"])
        #expect(list.output == "\(Self.channel)\ncmFjZS0wMDE=\n", "\(list.errors)")
        let lines = try Self.object(caller.channel(server.endpoint, ["list", "--json"]).output)
        #expect(lines["channels"] as? [String] == [Self.channel, "cmFjZS0wMDE="])
        let deleted = try caller.channel(server.endpoint, ["delete", "--yes"] + named)
        #expect(deleted.exitCode == 0 && deleted.output == "deleted \(Self.channel)\n")
        let seen = try Self.seen(server)
        #expect(seen.flatMap(\.problems) == [])
        #expect(
            seen.map(\.operation) == ["create", "create", "read", "list", "list", "delete"])
        #expect(seen[0].body == #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        #expect(seen[1].body == #"{"message-storage-policy":0,"push-type":"LiveActivity"}"#)
        #expect(seen[0].fields[":path"] == "/1/apps/\(Campaign.topic)/channels")
        #expect(seen[2].fields["apns-channel-id"] == Self.channel)
        #expect(seen.allSatisfy { $0.fields["apns-topic"] == nil })
    }

    @Test func `Dry run, preview and a delete without --yes connect to nothing`() throws {
        let server = try Self.server("check")
        let caller = try ChannelCaller()
        let plan = try caller.channel(server.endpoint, ["create", "--dry-run"])
        #expect(plan.exitCode == 0 && plan.output.contains("create of app \(Campaign.topic)"))
        let shown = try caller.channel(
            server.endpoint, ["delete", "--channel", Self.channel, "--preview", "1"])
        #expect(shown.exitCode == 0 && shown.output.contains(":method: DELETE"), "\(shown.errors)")
        #expect(shown.output.contains("apns-channel-id: \(Self.channel)"))
        #expect(!shown.output.contains("eyJ"), "a preview shows no provider token")
        let asked = try caller.channel(server.endpoint, ["delete", "--channel", Self.channel])
        #expect(asked.exitCode == 2 && asked.errors.contains("--yes"))
        let preview = try caller.broadcast(server.endpoint, ["--preview", "1"])
        #expect(preview.exitCode == 0 && preview.output.contains("apns-push-type: liveactivity"))
        #expect(preview.output.contains(Self.minified))
        let dry = try caller.broadcast(server.endpoint, ["--dry-run"])
        #expect(dry.exitCode == 0 && dry.output.contains("97 bytes"), "\(dry.output)")
        #expect(dry.output.hasSuffix("dry run: nothing was sent, nothing was written\n"))
        let nowhere = try caller.broadcast(
            server.endpoint, ["--dry-run", "--ledger", "\(caller.directory.path)/none/ledger"])
        #expect(
            nowhere.exitCode == 2 && nowhere.errors.contains("name a place to write to"),
            "\(nowhere.errors)")
        #expect(!FileManager.default.fileExists(atPath: caller.ledger))
        #expect(try Self.seen(server).isEmpty)
    }

    @Test(
        arguments: [
            ("api-manage-broadcast.push.apple.com", [], 2196),
            ("api-manage-broadcast.sandbox.push.apple.com", [], 2195),
            ("api-manage-broadcast.sandbox.push.apple.com:443", [], 443),
            ("relay.example.com", [], 2196),
            ("relay.example.com", ["--environment", "development"], 2195),
        ] as [(String, [String], Int)])
    func `The default port of channel belongs to the environment of the host`(
        endpoint: String, more: [String], port: Int
    ) throws {
        let plan = try ChannelCaller().channel(endpoint, ["list", "--dry-run"] + more)
        #expect(plan.exitCode == 0, "\(plan.errors)")
        #expect(plan.output.contains(":\(port)\n"), "\(plan.output)")
    }

    /// A server that gives each call of a table its own responses, the last one to as many requests as the call has to
    /// make.
    static func server(for rows: [(responses: String, requests: Int)]) throws -> RecordingServer {
        let responses = rows.flatMap { row in
            let own = row.responses.split(separator: ",")
            return own + Array(repeating: own[own.count - 1], count: row.requests - own.count)
        }
        return try server(responses.joined(separator: ","))
    }

    private static let delete = ["delete", "--yes", "--channel", channel]

    /// Responses, the call, its exit code, words on stderr, and the requests that were sent.
    private static let calls: [(String, [String], Int32, String, Int)] =
        [
            ("400:CannotCreateChannelConfig", ["create"], 4, "10,000 channels", 1),
            ("403:TopicMismatch", ["list"], 4, "check the bundle ID", 1),
            ("400:FeatureNotEnabled", ["list"], 4, "developer portal", 1),
            ("400:ChannelNotRegistered", ["read", "--channel", channel], 4, "--environment", 1),
            ("400:NewReason", ["list"], 4, "APNs refused the list: 400 NewReason", 1),
            ("302", ["list"], 4, "refused the list: 302 without a reason", 1),
            ("404", ["create"], 4, "is this APNs? check --endpoint", 1),
            ("503:ServiceUnavailable,check", ["list"], 0, "", 2),
            ("close,check", ["list"], 0, "", 2),
            ("refuse,check", ["create"], 0, "", 2),
            ("429:TooManyRequests,check", ["create"], 0, "", 2),
            ("503/retry-after=600", ["list"], 1, "try again later", 1),
            ("close,list:3", ["create"], 6, "3 channels now", 2),
            (
                "202", delete, 6,
                "the response to the delete is 202 without a reason, which does not say whether", 3
            ),
            (
                "close", delete, 6,
                "; broadside channel list shows whether the channel still exists", 3
            ),
            ("502,503", delete, 6, "503", 3), ("429", delete, 1, "refused the delete", 3),
            ("204", ["list"], 1, "the response to the list is 204 without a reason", 3),
            ("502", ["create"], 6, "orphan", 2), ("524", ["create"], 6, "orphan", 2),
            ("close,400:ChannelNotRegistered", delete, 0, "", 2),
            ("close,404:BadPath", delete, 0, "", 2),
            ("500:InternalServerError,400:ChannelNotRegistered", delete, 0, "", 2),
            ("429:TooManyRequests,400:ChannelNotRegistered", delete, 4, "no such channel", 2),
            ("400:ChannelNotRegistered", delete, 4, "no such channel", 1),
            ("404:BadPath", delete, 4, "APNs' host", 1),
            ("201", ["create"], 6, "names no channel", 1),
            ("raw:[]", ["list"], 1, "APNs' format", 1),
            ("list:10000", ["list"], 0, "", 1),
            ("list:200000", ["list"], 1, "is this APNs?", 1),
        ]

    @Test
    func `A response or a lost one leads to its exit code, and only safe requests are repeated`()
        throws
    {
        let server = try Self.server(for: Self.calls.map { ($0.0, $0.4) })
        let caller = try ChannelCaller()
        var before = 0
        for (responses, words, code, text, requests) in Self.calls {
            let ended = try caller.channel(server.endpoint, words)
            let name: Comment = "\(responses) to \(words): \(ended.errors)"
            #expect(ended.exitCode == code, name)
            #expect(text.isEmpty || ended.errors.contains(text), name)
            #expect(code != 0 || ended.errors.isEmpty, name)
            let seen = try Self.seen(server).dropFirst(before)
            // The next call would get the responses of this one.
            try #require(seen.count == requests, name)
            #expect(seen.flatMap(\.problems) == [], name)
            #expect(seen.count { $0.operation == "create" && $0.answer == "close" } <= 1, name)
            before += requests
        }
    }

    @Test func `A wrong call of channel or broadcast is exit 2 and names the option`() throws {
        let caller = try ChannelCaller()
        let port = "localhost:9"
        for (words, text) in [
            (["read"], "--channel is missing"), (["list", "--channel", "x"], "--channel"),
            (["read", "--channel", "a b"], "is not a channel ID"),
            (["list", "--storage", "newest"], "--storage"), (["lst"], "did you mean list"),
            (["list", "--yes"], "--yes"),
        ] {
            let ended = try caller.channel(port, words)
            #expect(ended.exitCode == 2 && ended.errors.contains(text), "\(ended.errors)")
        }
        let suffixed = try Broadside.run(
            ["channel", "list"]
                + caller.credential(port).map {
                    $0 == Campaign.topic ? "\($0).push-type.liveactivity" : $0
                }, in: caller.directory)
        #expect(suffixed.exitCode == 2 && suffixed.errors.contains("write \(Campaign.topic)"))
        for (more, text) in [
            (["--expiration", "soon"], "--expiration"), (["--expiration", "1700000000"], "passed"),
            (["--priority", "7"], "--priority"), (["--retry", "all"], "--retry"),
            (["--expiration", "+0s"], "to deliver at once or never, write 0"),
            (["--expiration", "4000000000000"], "did you mean 4000000000?"),
        ] {
            let ended = try caller.broadcast(port, more)
            #expect(ended.exitCode == 2 && ended.errors.contains(text), "\(ended.errors)")
        }
        let planned = try caller.broadcast(
            port, ["--expiration", "2037-01-01T12:00Z", "--dry-run"])
        #expect(
            planned.exitCode == 0 && planned.errors.contains("at most 8 hours"), "\(planned.errors)"
        )
        let start = try ChannelCaller(payload: #"{"aps":{"timestamp":1,"event":"start"}}"#)
        let refused = try start.broadcast(port)
        #expect(refused.exitCode == 2 && refused.errors.contains("can't start an activity"))
        let unreachable = try caller.broadcast(port)
        #expect(unreachable.exitCode == 1 && unreachable.errors.contains("can't be reached"))
        #expect(!FileManager.default.fileExists(atPath: caller.ledger))
    }

    // MARK: broadcast

    @Test func `A broadcast is one documented request, and a second start sends nothing`() throws {
        let server = try Self.server("check")
        let caller = try ChannelCaller()
        let more = ["--priority", "5", "--expiration", "+2h", "--json", "--name", "goal"]
        let before = UInt64(Date().timeIntervalSince1970)
        let sent = try caller.broadcast(server.endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let seen = try Self.seen(server)
        #expect(seen.count == 1 && seen.flatMap(\.problems) == [])
        #expect(seen[0].body == Self.minified && seen[0].body.utf8.count == 97)
        let fields = seen[0].fields
        #expect(fields[":path"] == "/4/broadcasts/apps/\(Campaign.topic)")
        #expect(fields["apns-channel-id"] == Self.channel && fields["apns-priority"] == "5")
        let expiration = try #require(fields["apns-expiration"].flatMap { UInt64($0) })
        #expect((before + 7200...before + 7260).contains(expiration))
        let outcome = try Self.object(sent.output)
        #expect(outcome["state"] as? String == "accepted" && outcome["status"] as? Int == 200)
        let identifier = try #require(outcome["request_id"] as? String)
        #expect(fields["apns-request-id"] == identifier)
        let unique = "11111111-2222-3333-4444-555555555555"
        #expect(outcome["unique_id"] as? String == unique)
        let again = try caller.broadcast(server.endpoint, more)
        #expect(again.exitCode == 0 && again.output == sent.output, "\(again.errors)")
        // A dry run checks the ledger, too.
        for (channel, code) in [(Self.channel, 0), ("cmFjZS0wMDE=", 2)] as [(String, Int32)] {
            let dry = try caller.broadcast(
                server.endpoint, more + ["--dry-run"], channel: channel)
            #expect(dry.exitCode == code, "\(dry.errors)")
            #expect(dry.errors.contains("belongs to another campaign") == (code == 2))
        }
        #expect(try Self.seen(server).count == 1, "nothing was sent again")
        #expect(sent.errors.isEmpty && again.errors.contains("nothing was sent now"))
        #expect(again.errors.contains("as accepted; to send it again, name another --ledger"))

        func ledger(_ words: [String]) throws -> String {
            let ended = try Broadside.run(words, in: caller.directory)
            #expect(ended.exitCode == 0, "\(words): \(ended.errors)")
            return ended.output
        }
        let stats = try ledger(["ledger", "stats", "--ledger", caller.ledger])
        let digest = try Subprocess(
            "sh", ["-c", "printf %s '\(Self.minified)' | sha256sum"], in: caller.directory
        ).wait(limit: 60).output.prefix(64)
        for text in [identifier, unique, Self.channel, String(digest), "accepted    1"] {
            #expect(stats.contains(text), "\(stats)")
        }
        #expect(outcome["payload_sha256"] as? String == String(digest))
        let json = try Self.object(
            ledger(["ledger", "stats", "--ledger", caller.ledger, "--json"]))
        #expect(
            json["channel"] as? String == Self.channel && json["outcome"] as? String == "complete")
        for key in ["request_id", "unique_id", "payload_sha256"] {
            #expect(json[key] as? String == outcome[key] as? String, "\(key): \(json)")
        }
        let found = try ledger(
            ["ledger", "find", "--ledger", caller.ledger, "--apns-id", identifier])
        #expect(found.contains("accepted status 200"), "\(found)")
        let status = try ledger(["status", caller.ledger, "--json"])
        let run = try Self.object(status)
        #expect(run["state"] as? String == "complete" && run["name"] as? String == "goal")
        #expect(run["rows"] as? Int == 1 && run["settled"] as? Int == 1, "\(status)")
        let page = "\(caller.directory.path)/page.html"
        _ = try ledger(["report", "--ledger", caller.ledger, "--output", page])
        #expect(try String(contentsOfFile: page, encoding: .utf8).contains("goal"))
        #expect(try ledger(["ledger", "verify", "--ledger", caller.ledger]).contains("finished"))
        #expect(
            try ledger(["ledger", "export", "--ledger", caller.ledger]).contains(identifier))
    }

    @Test func `A ledger of another broadcast or of a send is exit 2, and nothing is sent`() throws
    {
        let server = try Self.server("check")
        let caller = try ChannelCaller()
        #expect(try caller.broadcast(server.endpoint).exitCode == 0)
        let other = try caller.broadcast(server.endpoint, channel: "b3RoZXI=")
        #expect(other.exitCode == 2 && other.errors.contains("the channel was \(Self.channel)"))
        let later = try caller.broadcast(server.endpoint, ["--priority", "1"])
        #expect(later.exitCode == 2 && later.errors.contains("the priority was 10"))
        let campaign = try Campaign(rows: 1)
        let resumed = try Broadside.run(
            campaign.arguments(to: server.endpoint, ["--ledger", caller.ledger, "--resume"]),
            in: campaign.directory)
        #expect(resumed.exitCode == 2, "\(resumed.errors)")
        #expect(try Self.seen(server).count == 1)
    }

    @Test func `A refused broadcast says what to fix and that it needs another --ledger`() throws {
        let server = try Self.server("400:FeatureNotEnabled,check")
        let caller = try ChannelCaller()
        let words = "400 FeatureNotEnabled: in Apple's developer portal"
        let refused = try caller.broadcast(server.endpoint)
        #expect(refused.errors.contains("APNs refused the broadcast: \(words)"))
        let status = try Broadside.run(["status", caller.ledger, "--json"], in: caller.directory)
        #expect(try Self.object(status.output)["state"] as? String == "aborted")
        let again = try caller.broadcast(server.endpoint)
        #expect(again.errors.contains("APNs refused the broadcast in an earlier start: \(words)"))
        for ended in [refused, again] {
            #expect(ended.exitCode == 4, "\(ended.errors)")
            #expect(ended.errors.contains("; then name another --ledger"), "\(ended.errors)")
        }
        #expect(try Self.seen(server).count == 1)
        let other = try caller.broadcast(server.endpoint, ["--ledger", caller.ledger + "2"])
        #expect(other.exitCode == 0, "\(other.errors)")
    }

    @Test func `A broadcast whose response is not from APNs is sent at the right endpoint`() throws
    {
        let wrong = try Self.server("302")
        let caller = try ChannelCaller()
        let refused = try caller.broadcast(wrong.endpoint)
        #expect(refused.exitCode == 4, "\(refused.errors)")
        #expect(
            refused.errors.contains(
                "\(wrong.endpoint) refused the broadcast: 302 without a reason"),
            "\(refused.errors)")
        let next = "check --endpoint; then start again with the same --ledger"
        #expect(refused.errors.contains(next), "\(refused.errors)")
        let right = try Self.server("check")
        let sent = try caller.broadcast(right.endpoint)
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        #expect(try Self.seen(right).count == 1)
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `A second signal before the response says how to continue, and so does the ledger`(
        signal: Int32
    ) throws {
        let caller = try ChannelCaller()
        let (started, silent) = try Self.startBroadcastWithoutResponse(caller)
        defer { withExtendedLifetime(silent) {} }
        let ended = try InterruptedRequestTests.stopAtOnce(started, with: signal)
        #expect(ended.exitCode == 6 && ended.errorLines.count == 2, "\(ended.errors)")
        #expect(ended.errors.contains("stopped by a signal: the broadcast may have been sent"))
        for words in [["ledger", "stats"], ["report"]] {
            let finished = try Broadside.run(
                words + ["--ledger", caller.ledger], in: caller.directory)
            #expect(finished.exitCode == 0, "\(words): \(finished.errors)")
            // A page marks options.
            let text = finished.output.replacing(/<\/?span[^>]*>/, with: "")
            #expect(text.contains("--retry unknown"), "\(text)")
            #expect(!text.contains("--resume") && !text.contains("--on-lost"), "\(text)")
        }
        let server = try Self.server("check")
        #expect(try caller.broadcast(server.endpoint).exitCode == 6)
        let sent = try caller.broadcast(server.endpoint, ["--retry", "unknown"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
    }

    @Test
    func `A start that is killed before the response leaves unknown, and nothing is repeated`()
        throws
    {
        let caller = try ChannelCaller()
        let (started, silent) = try Self.startBroadcastWithoutResponse(caller)
        defer { withExtendedLifetime(silent) {} }
        started.send(signal: SIGKILL)
        _ = try started.wait(limit: 60)
        let server = try Self.server("check")
        for _ in 0..<2 {
            let again = try caller.broadcast(server.endpoint, ["--json"])
            #expect(again.exitCode == 6, "\(again.errors)")
            #expect(try Self.object(again.output)["state"] as? String == "unknown")
            #expect(again.errors.contains("--retry unknown"))
        }
        #expect(try Self.seen(server).isEmpty)
    }

    // MARK: The simulator

    @Test func `channel and broadcast reach a subscribed device of the simulator`() throws {
        let caller = try ChannelCaller()
        let folder = caller.directory.path
        let control = folder + "/socket"
        let deliveries = folder + "/deliveries"
        let server = try LocalAPNs([
            "--control", control, "--deliveries", deliveries,
        ])
        let created = try caller.channel(server.endpoint, ["create", "--storage", "newest"])
        #expect(created.exitCode == 0, "\(created.errors)")
        let channel = created.output.trimmingCharacters(in: .newlines)
        let (near, far) = (String(repeating: "ab", count: 32), String(repeating: "cd", count: 32))
        let responses = try ControlSocket.ask(
            control,
            [
                "subscribe \(channel) \(near)", "subscribe \(channel) \(far)", "offline \(far)",
                "subscribe AAAA \(near)",
            ], in: caller.directory)
        #expect(
            try responses.map { try Self.object($0)["ok"] as? Bool } == [true, true, true, false])
        let sent = try caller.broadcast(
            server.endpoint, ["--expiration", "+1h", "--json"], channel: channel)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let identifier = try #require(try Self.object(sent.output)["request_id"] as? String)
        let online = try ControlSocket.ask(
            control, ["online \(far)", "online \(far)", "status"], in: caller.directory)
        #expect(
            try online.prefix(2).map { try Self.object($0)["delivered"] as? Int } == [1, 0])
        let status = try Self.object(online[2])
        #expect(status["channels"] as? Int == 1 && status["subscriptions"] as? Int == 2)
        let rows = try String(contentsOfFile: deliveries, encoding: .utf8)
            .split(separator: "\n").dropFirst().map { $0.split(separator: ",") }
        #expect(rows.map { String($0[1]) } == [near, far])
        #expect(rows.allSatisfy { $0[2] == Campaign.topic && $0[3] == identifier })
        let deleted = try caller.channel(
            server.endpoint, ["delete", "--yes", "--channel", channel])
        #expect(deleted.exitCode == 0, "\(deleted.errors)")
        #expect(try caller.channel(server.endpoint, ["list"]).output.isEmpty)
    }

    @Test
    func `Requests go to the host and port of Apple's that belong to operation and environment`()
        throws
    {
        let caller = try ChannelCaller()
        let options = caller.credential("x")
        func preview(_ more: [String]) throws -> String {
            let at = try #require(options.firstIndex(of: "--endpoint"))
            var words = options
            words.removeSubrange(at..<at + 4)
            return try Broadside.run(
                more + words + ["--preview", "1"], in: caller.directory
            ).output
        }
        let send = ["broadcast", "--channel", Self.channel, "--payload", caller.payload]
        let development = ["--environment", "development"]
        for (words, authority) in [
            (["channel", "list"], "api-manage-broadcast.push.apple.com:2196"),
            (
                ["channel", "list"] + development,
                "api-manage-broadcast.sandbox.push.apple.com:2195"
            ),
            (send, "api-broadcast.push.apple.com\n"),
            (send + development, "api-broadcast.sandbox.push.apple.com\n"),
        ] {
            let shown = try preview(words)
            #expect(shown.contains(":authority: \(authority)"), "\(shown)")
        }
    }
}
