import BroadsideTestSupport
import Foundation
import Testing

/// `--topic '{{column}}'`: each row names its topic, and each topic has guards of its own.
@Suite(.timeLimit(.minutes(60)))
struct RowTopicTests {
    private struct Totals: Decodable {
        struct Topic: Decodable, Equatable {
            var accepted: Int
            var refused: Int
            var stopped: String?
        }

        var accepted: Int
        var rejected: Int
        var invalid: Int
        var remaining: Int
        var reasons: [String: Int]
        var topics: [String: Topic]?
    }

    private let campaign: Campaign
    private let apps: [String]
    /// The app of each row.
    private let appOfRow: [String]
    private let list: String

    init() throws {
        let campaign = try Campaign(rows: 600)
        let apps = ["com.example.app", "com.example.other", "com.example.third"]
        let appOfRow = (0..<600).map { apps[$0 % 3] }
        let rows = zip(0..., appOfRow).map { "\(campaign.tokens.token($0)),\($1)\n" }
        (self.campaign, self.apps, self.appOfRow) = (campaign, apps, appOfRow)
        list = try campaign.directory.write("token,app\n" + rows.joined(), to: "apps.csv")
    }

    private func send(
        to endpoint: String, _ more: [String] = [], without: Set<String> = []
    ) throws -> Finished {
        try Broadside.run(
            campaign.arguments(
                to: endpoint,
                (more.contains("--tokens") ? [] : ["--tokens", list])
                    + (more.contains("--topic") ? [] : ["--topic", "{{app}}"])
                    + ["--summary", "-"] + more, without: without), in: campaign.directory)
    }

    private func totals(_ finished: Finished) throws -> Totals {
        try JSONDecoder().decode(Totals.self, from: Data(finished.output.utf8))
    }

    /// Each answer: the row, its topic and the status.
    private func answers(_ server: RecordingServer) throws -> [(
        row: Int, topic: String, status: Int
    )] {
        let rows = Dictionary(
            uniqueKeysWithValues: (0..<600).map { ("/3/device/\(campaign.tokens.token($0))", $0) })
        return try server.events().filter { $0.event == "answer" }.map { event in
            let words = try #require(event.action).split(separator: " ")
            return (
                try #require(rows[event.path ?? ""]), String(words[0]), try #require(Int(words[1]))
            )
        }
    }

    @Test(arguments: ["strict", "compact", "current"])
    func `A topic that APNs refuses stops, the others are sent, and a resume sends its rows`(
        hpack: String
    ) throws {
        let refused = "com.example.third"
        let count = hpack == "strict" ? 600 : 300
        let rows = (0..<count).map { "\(campaign.tokens.token($0)),\(appOfRow[$0])\n" }
        let list = try campaign.directory.write("token,app\n" + rows.joined(), to: "some.csv")
        let server = try RecordingServer(
            "topics", ["--refuse", "\(refused)=400:TopicDisallowed"], script: "topics.py")
        let options = [
            "--tokens", list, "--abort-after", "5", "--connections", "1", "--max-streams", "4",
            "--hpack", hpack,
        ]
        let stopped = try send(to: server.endpoint, options)
        #expect(stopped.exitCode == 4, "\(stopped.errors)")
        #expect(stopped.errorLines.count == 1 && stopped.errors.contains(refused))
        #expect(stopped.errors.contains("400 TopicDisallowed"), "\(stopped.errors)")
        #expect(stopped.errors.contains("--state remaining"), "\(stopped.errors)")
        let first = try totals(stopped)
        #expect(first.accepted == count / 3 * 2 && first.remaining == count / 3)
        #expect(first.rejected == 0)
        let topic = try #require(first.topics?[refused])
        #expect(topic.accepted == 0 && (5...9).contains(topic.refused))
        #expect(topic.stopped?.contains("400 TopicDisallowed") == true)
        for app in apps where app != refused {
            #expect(first.topics?[app] == .init(accepted: count / 3, refused: 0, stopped: nil))
        }
        let answers = try answers(server)
        #expect(answers.count == count / 3 * 2 + topic.refused)
        #expect(answers.allSatisfy { $0.topic == appOfRow[$0.row] })
        #expect(answers.allSatisfy { ($0.status == 400) == ($0.topic == refused) })

        let export = try Broadside.run(
            ["ledger", "export", "--ledger", campaign.ledger, "--state", "remaining"],
            in: campaign.directory)
        let lines = export.output.split(separator: "\n").dropFirst().compactMap {
            $0.split(separator: ",").first.flatMap { Int($0) }
        }
        #expect(lines == (0..<count).filter { appOfRow[$0] == refused }.map { $0 + 2 })

        let fine = try RecordingServer("topics", script: "topics.py")
        let resumed = try send(to: fine.endpoint, options + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try totals(resumed).accepted == count)
        let again = try self.answers(fine)
        #expect(again.count == count / 3 && again.allSatisfy { $0.topic == refused })
    }

    @Test func `A few refused rows of a topic are named, and a resume sends them`() throws {
        let refused = ["com.example.other", "com.example.third"]
        let server = try RecordingServer(
            "topics", refused.flatMap { ["--refuse", "\($0)=400:TopicDisallowed"] },
            script: "topics.py")
        // The second topic has more rows than --abort-after, the third has fewer.
        let rows = (0..<70).map { row in
            let app = row < 20 ? apps[0] : row < 66 ? refused[0] : refused[1]
            return "\(campaign.tokens.token(row)),\(app)\n"
        }
        let list = try campaign.directory.write("token,app\n" + rows.joined(), to: "few.csv")
        let options = ["--tokens", list, "--abort-after", "30", "--connections", "1"]
        let stopped = try send(to: server.endpoint, options)
        #expect(stopped.exitCode == 4, "\(stopped.errors)")
        for word in [
            "\(refused[0]) (one refusal after another: 400 TopicDisallowed)",
            "\(refused[1]) (4 rows: 400 TopicDisallowed)", "--state remaining",
        ] { #expect(stopped.errors.contains(word), "\(stopped.errors)") }
        #expect(!stopped.errors.contains("begin a new ledger"), "\(stopped.errors)")
        #expect(try totals(stopped).topics?[refused[1]]?.stopped == nil)
        let fine = try RecordingServer("topics", script: "topics.py")
        let resumed = try send(to: fine.endpoint, options + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try answers(fine).count == 50)
    }

    @Test func `First tokens of another app stop their topic alone`() throws {
        let server = try RecordingServer(
            "topics", ["--refuse", "com.example.other=400:DeviceTokenNotForTopic"],
            script: "topics.py")
        let finished = try send(
            to: server.endpoint,
            ["--abort-after", "5", "--connections", "1", "--max-streams", "4", "--reactors", "1"])
        #expect(finished.exitCode == 4, "\(finished.errors)")
        let totals = try totals(finished)
        #expect(totals.accepted == 400 && (5...9).contains(totals.rejected))
        #expect(totals.remaining == 200 - totals.rejected)
        #expect(totals.reasons == ["DeviceTokenNotForTopic": totals.rejected])
        #expect(finished.errors.contains("com.example.other"))
        #expect(!finished.errors.contains("com.example.third"))
    }

    @Test func `A refused credential is the run's, whatever the topics`() throws {
        let server = try RecordingServer(
            "topics", apps.flatMap { ["--refuse", "\($0)=403:InvalidProviderToken"] },
            script: "topics.py")
        let finished = try send(to: server.endpoint, ["--abort-after", "5"])
        #expect(finished.exitCode == 4 && finished.errors.contains("InvalidProviderToken"))
        #expect(try totals(finished).remaining == 600)
        #expect(try answers(server).count <= 10)
    }

    @Test func `The simulator judges each row by its own topic, and each topic ends by itself`()
        throws
    {
        let deliveries = "\(campaign.directory.path)/deliveries.csv"
        let server = try LocalAPNs(["--deliveries", deliveries])
        let finished = try send(to: server.endpoint, ["--reactors", "2", "--connections", "4"])
        #expect(finished.exitCode == 4, "\(finished.errors)")
        let totals = try totals(finished)
        // Its key is for two topics, and all tokens that it did not issue are the first one's.
        #expect(totals.accepted == 200 && totals.rejected >= 50)
        #expect(totals.remaining == 400 - totals.rejected)
        #expect(totals.topics?["com.example.app"]?.stopped == nil)
        #expect(
            totals.topics?["com.example.other"]?.stopped
                == "none of its first tokens was accepted: 400 DeviceTokenNotForTopic")
        #expect(
            totals.topics?["com.example.third"]?.stopped
                == "one refusal after another: 400 TopicDisallowed")
        _ = try server.finish()
        let rows = Dictionary(
            uniqueKeysWithValues: (0..<600).map { (campaign.tokens.token($0), appOfRow[$0]) })
        let delivered = try String(contentsOfFile: deliveries, encoding: .utf8)
            .split(separator: "\n").dropFirst().map { $0.split(separator: ",").map(String.init) }
        #expect(delivered.count == 200)
        #expect(delivered.allSatisfy { rows[$0[1]] == $0[2] })
    }

    @Test func `Rows without a topic, with a wrong one and with one too many are invalid`() throws {
        let server = try RecordingServer("topics", script: "topics.py")
        var text = "token,app\n"
        for row in 0..<300 { text += "\(campaign.tokens.token(row)),com.example.a\(row % 258)\n" }
        for (row, app) in zip(300..., ["", "com example", "a.push-type.liveactivity", "  "]) {
            text += "\(campaign.tokens.token(row)),\(app)\n"
        }
        let list = try campaign.directory.write(text, to: "wrong.csv")
        let finished = try send(to: server.endpoint, ["--tokens", list, "--max-invalid", "50"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let totals = try totals(finished)
        #expect(totals.accepted == 298 && totals.invalid == 6)
        #expect(totals.reasons == ["MissingColumn": 1, "BadValue": 5])
        #expect(totals.topics?.count == 256)
        #expect(Set(try answers(server).map(\.topic)).count == 256)
    }

    @Test func `Topics of skipped rows do not count, and repeated tokens are found`() throws {
        let server = try RecordingServer("topics", script: "topics.py")
        let tokens = (0..<300).map { campaign.tokens.token($0) }
        // The last row's token is also in the row before it.
        let rows = zip(0..., tokens + [tokens[299]]).map { "\($1),com.example.a\($0)\n" }
        let list = try campaign.directory.write("token,app\n" + rows.joined(), to: "many.csv")
        let optOuts = try campaign.directory.write(
            tokens.prefix(290).joined(separator: "\n") + "\n", to: "opt-outs.txt")
        let finished = try send(
            to: server.endpoint,
            ["--tokens", list, "--suppress", optOuts, "--duplicates", "skip"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let totals = try totals(finished)
        #expect(totals.accepted == 10 && totals.invalid == 0)
        #expect(totals.topics?.count == 10)
    }

    @Test func `A topic with another push type's suffix is sent with a warning`() throws {
        let server = try RecordingServer("topics", script: "topics.py")
        let text = zip(0..., ["com.example.app", "com.example.app.voip"]).map {
            "\(campaign.tokens.token($0)),\($1)\n"
        }.joined()
        let list = try campaign.directory.write("token,app\n" + text, to: "voip.csv")
        for more in [["--dry-run"], []] {
            let finished = try send(to: server.endpoint, ["--tokens", list] + more)
            #expect(finished.exitCode == 0, "\(finished.errors)")
            let warning = "'com.example.app.voip' has the suffix of push type voip"
            #expect(finished.errors.ranges(of: warning).count == 1, "\(finished.errors)")
        }
        #expect(try answers(server).map(\.topic).sorted().last == "com.example.app.voip")
    }

    @Test func `A column with a topic for each row is refused before anything is sent`() throws {
        let server = try RecordingServer("topics", script: "topics.py")
        for (topic, words) in [
            ("com.example.{{token}}", ["more than the 256"]),
            ("{{nothing}}", ["--topic", "'nothing'"]), ("{{app}}!", ["does not make a topic"]),
        ] {
            let finished = try send(to: server.endpoint, ["--topic", topic])
            #expect(finished.exitCode == 2, "\(finished.errors)")
            for word in words { #expect(finished.errors.contains(word), "\(finished.errors)") }
        }
        let client = try campaign.authority.clientCertificate(in: campaign.directory)
        let certificate = try send(
            to: server.endpoint,
            ["--certificate", client.certificate, "--private-key", client.key],
            without: ["auth-key", "key-id", "team-id"])
        #expect(certificate.exitCode == 2)
        #expect(certificate.errors.contains("provider token only"), "\(certificate.errors)")
        let label = try send(to: server.endpoint, ["--label", "topic=x"])
        #expect(label.exitCode == 2 && label.errors.contains("--label"), "\(label.errors)")
        #expect(try answers(server).isEmpty)
    }

    @Test
    func
        `Preview shows requests of each topic, the plan names the column, and another one is another campaign`()
        throws
    {
        let server = try RecordingServer("topics", script: "topics.py")
        let preview = try send(to: server.endpoint, ["--preview", "1"])
        let shown = preview.output.split(separator: "\n").filter { $0.contains("apns-topic: ") }
        let topics: [String] = shown.map { String($0.split(separator: " ").last ?? "") }
        #expect(topics == apps)
        let dry = try send(to: server.endpoint, ["--dry-run"])
        #expect(dry.exitCode == 0 && dry.output.contains("topic        {{app}} (each row's own"))
        #expect(try answers(server).isEmpty)
        let sent = try send(to: server.endpoint, ["--metrics", "\(campaign.directory.path)/m"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let metrics = try String(contentsOfFile: "\(campaign.directory.path)/m", encoding: .utf8)
        #expect(metrics.contains(#"topic="com.example.app""#))
        let other = try send(to: server.endpoint, ["--resume", "--topic", "com.{{app}}"])
        #expect(other.exitCode == 2 && other.errors.contains("topic"), "\(other.errors)")
    }
}
