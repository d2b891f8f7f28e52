import BroadsideTestSupport
import Foundation
import Testing

/// `doctor --survey` and `--compare`: how an endpoint responds to requests that reach no device.
@Suite(.timeLimit(.minutes(60)))
struct SurveyTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private struct Survey: Decodable {
        struct Entry: Decodable {
            var request: String
            var status: Int?
            var reason: String?
            var headers: [String: String]
            var body: String?
        }
        var format: Int
        var responses: [String: Entry]
    }

    /// The simulator's survey, which the repository has.
    private static var known: String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return root.appending(path: "docs/simulator-responses.json").path(percentEncoded: false)
    }

    private func doctor(
        _ simulation: Simulation, _ more: [String], credentials: [String]? = nil
    ) throws -> Finished {
        let credentials = try credentials ?? simulation.credentials()
        return try Broadside.run(
            ["doctor", "--endpoint", simulation.endpoint] + credentials + more, in: directory,
            limit: 120)
    }

    private func survey(_ text: String) throws -> Survey {
        try JSONDecoder().decode(Survey.self, from: Data(text.utf8))
    }

    /// To write it again: `broadside simulate --issue-tokens 1`, and in the line that it prints
    /// `doctor --survey docs/simulator-responses.json` in place of `send`, up to the topic.
    @Test func `The simulator's survey in the repository is how the simulator responds`() throws {
        let simulation = try Simulation(["--issue-tokens", "1"])
        let output = directory.path + "/survey.json"
        let ended = try doctor(simulation, ["--survey", output, "--compare", Self.known])
        #expect(ended.exitCode == 0, "\(ended.output)\(ended.errors)")
        let written = try String(contentsOfFile: output, encoding: .utf8)
        #expect(try written == String(contentsOfFile: Self.known, encoding: .utf8))
        #expect(ended.output == "no differences in 60 requests\n")
        // Neither secrets nor what leads to them.
        for option in ["topic", "key-id", "team-id"] {
            #expect(!written.contains(try simulation.options([option])[1]))
        }
        #expect(!written.contains("127.0.0.1") && !written.contains("eyJ"))
    }

    /// By curl, which knows nothing of the survey.
    @Test func `The survey has what curl gets`() throws {
        let simulation = try Simulation(["--issue-tokens", "1"])
        let known = try survey(String(contentsOfFile: Self.known, encoding: .utf8)).responses
        let token = try doctor(simulation, ["--print-token"]).output
            .trimmingCharacters(in: .newlines)
        let topic = try simulation.options(["topic"])[1]
        let zeros = "/3/device/" + String(repeating: "0", count: 64)
        for (name, path, fields) in [
            ("impossible-token", zeros, ["apns-topic: \(topic)", "apns-push-type: alert"]),
            ("topic-missing", zeros, ["apns-push-type: alert"]),
            ("topic-foreign", zeros, ["apns-topic: invalid.broadside.survey"]),
            ("path-wrong", "/3/devices/0", ["apns-topic: \(topic)"]),
            ("token-missing", "/3/device/", ["apns-topic: \(topic)"]),
            ("priority-3", zeros, ["apns-topic: \(topic)", "apns-priority: 3"]),
            ("id-malformed", zeros, ["apns-topic: \(topic)", "apns-id: 1"]),
        ] {
            let answer = try Subprocess(
                "curl",
                [
                    "-sS", "--http2", "--cacert", try simulation.options(["ca-file"])[1], "-H",
                    "authorization: bearer \(token)", "--data", "{\"aps\":{}}", "-w",
                    " %{http_code} %{content_type}",
                ] + fields.flatMap { ["-H", $0] } + ["https://\(simulation.endpoint)\(path)"],
                in: directory
            ).wait(limit: 30)
            let entry = try #require(known[name], "\(name)")
            #expect(
                answer.output
                    == "\(entry.body ?? "") \(entry.status ?? 0) \(entry.headers["content-type"] ?? "")",
                "\(name)")
            #expect(entry.body == "{\"reason\":\"\(entry.reason ?? "")\"}")
        }
    }

    @Test func `Differences of an endpoint from a survey, and of two surveys, are named`() throws {
        let simulation = try Simulation()
        // Without issued tokens the token of zeros is one like any other.
        let ended = try doctor(simulation, ["--compare", Self.known])
        #expect(ended.exitCode == 1 && ended.errors.isEmpty, "\(ended.errors)")
        #expect(
            ended.output.hasPrefix("left: \(simulation.endpoint), right: \(Self.known)\n"))
        #expect(ended.output.contains("\nimpossible-token: status: 200 | 400\n"))
        #expect(ended.output.contains("\nimpossible-token: reason: none | BadDeviceToken\n"))
        #expect(
            ended.output.contains(
                "\nimpossible-token: header content-type: none | application/json\n"))
        #expect(!ended.output.contains("topic-missing"))

        let changed = try directory.write(
            String(contentsOfFile: Self.known, encoding: .utf8)
                .replacing("\"status\":413", with: "\"status\":414")
                .replacing("\"path-root\"", with: "\"path-other\"")
                .replacing("\"production\"", with: "\"development\""), to: "changed.json")
        let two = try Broadside.run(
            ["doctor", "--compare", Self.known, "--compare", changed, "--json"], in: directory)
        #expect(two.exitCode == 1)
        struct Compared: Decodable {
            struct Difference: Decodable {
                var request: String?
                var what: String
                var left: String
                var right: String
            }
            var requests: Int
            var differences: [Difference]
        }
        let compared = try JSONDecoder().decode(Compared.self, from: Data(two.output.utf8))
        #expect(compared.requests == 60)
        #expect(
            compared.differences.map {
                "\($0.request ?? "all") \($0.what) \($0.left) \($0.right)"
            } == [
                "all environment production development", "path-root request sent not sent",
                "payload-4097 status 413 414", "payload-10000 status 413 414",
                "path-other request not sent sent",
            ])
    }

    /// With a certificate there is no provider token to refuse.
    @Test func `The survey with a certificate has the same responses but those of tokens`() throws {
        let simulation = try Simulation(["--issue-tokens", "1"])
        func file(_ kind: String) -> String { "\(simulation.state)/client.\(kind)" }
        let ended = try doctor(
            simulation, ["--compare", Self.known],
            credentials: simulation.options(["ca-file", "topic"])
                + ["--certificate", file("pem"), "--private-key", file("key")])
        #expect(ended.exitCode == 1, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n").dropFirst().dropLast()
        #expect(lines.first == "credential: certificate | provider token")
        #expect(lines.count == 7)
        #expect(lines.dropFirst().allSatisfy { $0.hasSuffix(": request: not sent | sent") })
    }

    @Test(
        arguments: [
            (["--compare", "/missing.json", "--compare", "/x"], "--compare /missing.json"),
            (["--compare", "list.txt", "--compare", "list.txt"], "list.txt is not a survey"),
            (["--compare", "old.json", "--compare", "old.json"], "old.json has format 0"),
            (Array(repeating: ["--compare", "a"], count: 3).flatMap { $0 }, "given 3 times"),
            (["--compare", "a", "--compare", "b", "--survey", "c"], "--survey needs an endpoint"),
            (["--compare", "list.txt"], "--topic and --auth-key are missing"),
        ])
    func `A survey that can't be compared is exit code 2 before anything is sent`(
        _ options: [String], message: String
    ) throws {
        try directory.write("00ff\n", to: "list.txt")
        try directory.write(
            "{\"format\":0,\"environment\":\"\",\"credential\":\"\",\"responses\":{}}",
            to: "old.json")
        let words = options.map { word in
            word.contains(".") && !word.hasPrefix("/") ? "\(directory.path)/\(word)" : word
        }
        let ended = try Broadside.run(["doctor"] + words, in: directory)
        #expect(ended.exitCode == 2 && ended.output.isEmpty)
        #expect(ended.errors.contains(message), "\(ended.errors)")
    }
}
