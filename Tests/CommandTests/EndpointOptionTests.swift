import BroadsideTestSupport
import Testing

/// Which server each command goes to, by options and campaign file. Nothing is connected.
@Suite(.timeLimit(.minutes(60)))
struct EndpointOptionTests {
    private let campaign: Campaign
    private let credential: [String]

    /// Payload of a broadcast.
    private let update: String

    init() throws {
        campaign = try Campaign(rows: 3)
        update = try campaign.directory.write(
            #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{}}}"#,
            to: "update.json")
        credential = [
            "--auth-key", campaign.authority.authKey, "--key-id", Campaign.keyID, "--team-id",
            Campaign.teamID,
        ]
    }

    private func run(_ words: [String], _ more: [String]) throws -> Finished {
        try Broadside.run(words + more, in: campaign.directory, limit: 60)
    }

    /// Calls of all commands that connect, each so that it connects to nothing.
    private var calls: [[String]] {
        let list = ["--tokens", campaign.list, "--topic", Campaign.topic]
        let app = ["--app", Campaign.topic]
        let broadcast = ["--channel", "YQ==", "--payload", update]
        return [
            ["send", "--payload", campaign.payloadFile, "--dry-run"] + list,
            ["probe", "--dry-run"] + list, ["doctor", "--topic", Campaign.topic],
            ["channel", "list", "--dry-run"] + app, ["broadcast", "--dry-run"] + app + broadcast,
        ]
    }

    @Test func `Each command refuses an environment that contradicts Apple's host`() throws {
        for call in calls {
            for (host, environment) in [
                ("api.push.apple.com", "development"),
                ("api.sandbox.push.apple.com", "production"),
            ] {
                let refused = try run(
                    call + credential, ["--endpoint", host, "--environment", environment])
                #expect(refused.exitCode == 2, "\(call): \(refused.errors)")
                #expect(
                    refused.errors.contains(
                        "--environment \(environment) contradicts --endpoint \(host)"),
                    "\(call): \(refused.errors)")
            }
        }
    }

    @Test func `Each command refuses the legacy gateway that Apple switched off`() throws {
        for call in calls {
            let refused = try run(
                call + credential, ["--endpoint", "gateway.push.apple.com:2195"])
            #expect(refused.exitCode == 2, "\(call): \(refused.errors)")
            #expect(refused.errors.contains("switched off in 2021"), "\(call): \(refused.errors)")
        }
    }

    @Test func `A certificate is held against the environment of Apple's host`() throws {
        let development = try campaign.authority.clientCertificate(
            environments: [1], in: campaign.directory)
        let certificate = ["--certificate", development.certificate]
        for call in calls {
            let refused = try run(
                call + certificate + ["--private-key", development.key],
                ["--endpoint", "api.push.apple.com"])
            #expect(refused.exitCode == 2, "\(call): \(refused.errors)")
            #expect(
                refused.errors.contains("the certificate is for development only"),
                "\(call): \(refused.errors)")
        }
    }

    @Test func `An endpoint on the command line replaces the port of the campaign file`() throws {
        let file = try campaign.directory.write("{ port: 2197 }", to: "c.json5")
        for (more, endpoint) in [
            ([], "api.push.apple.com:2197"),
            (["--endpoint", "127.0.0.1:8443"], "127.0.0.1:8443"),
            (["--endpoint", "127.0.0.1", "--port", "2197"], "127.0.0.1:2197"),
        ] as [([String], String)] {
            let planned = try run(calls[0] + credential, ["--campaign", file] + more)
            #expect(planned.exitCode == 0, "\(planned.errors)")
            #expect(planned.output.contains("endpoint     \(endpoint)"), "\(planned.output)")
        }
        let refused = try run(
            calls[0] + credential, ["--endpoint", "127.0.0.1:8443", "--port", "2197"])
        #expect(refused.exitCode == 2 && refused.errors.contains("--port 2197 contradicts"))
    }

    @Test func `A server on the command line replaces what contradicts it in the campaign file`()
        throws
    {
        let (production, sandbox) = ("api.push.apple.com", "api.sandbox.push.apple.com")
        for (text, more, endpoint) in [
            ("environment: 'development'", ["--endpoint", production], "\(production):443"),
            ("environment: 'sandbox'", ["--endpoint", "\(production):2197"], "\(production):2197"),
            ("endpoint: '\(production)'", ["--environment", "development"], "\(sandbox):443"),
            ("endpoint: '\(sandbox)'", ["--environment", "development"], "\(sandbox):443"),
            ("endpoint: '[::1]:8443'", ["--environment", "development"], "[::1]:8443"),
            ("endpoint: '[::1]:8443'", ["--port", "2197"], "[::1]:2197"),
            ("endpoint: '\(sandbox)', port: 443", ["--port", "2197"], "\(sandbox):2197"),
        ] as [(String, [String], String)] {
            let file = try campaign.directory.write("{ \(text) }", to: "c.json5")
            let planned = try run(calls[0] + credential, ["--campaign", file] + more)
            #expect(planned.exitCode == 0, "\(text) \(more): \(planned.errors)")
            #expect(planned.output.contains("endpoint     \(endpoint)"), "\(planned.output)")
        }
        for text in [
            "endpoint: '\(production)', environment: 'development'",
            "endpoint: '127.0.0.1:8443', port: 2197",
        ] {
            let file = try campaign.directory.write("{ \(text) }", to: "c.json5")
            let refused = try run(calls[0] + credential, ["--campaign", file])
            #expect(refused.exitCode == 2 && refused.errors.contains("contradicts"), "\(text)")
        }
    }

    /// The proxy is a closed port, so that nothing is sent.
    @Test func `A campaign for one of Apple's servers is not continued on the other one`() throws {
        let (production, sandbox) = ("api.push.apple.com", "api.sandbox.push.apple.com")
        let options =
            calls[0].filter { $0 != "--dry-run" } + credential
            + ["--ledger", campaign.ledger, "--proxy", "http://127.0.0.1:1"]
            + ["--give-up-after", "1s"]
        let begun = try run(options, ["--endpoint", sandbox, "--resume-or-begin"])
        #expect(begun.exitCode == 1, "\(begun.errors)")
        for more in [[], ["--endpoint", production], ["--environment", "production"]] {
            let refused = try run(options, more + ["--resume"])
            #expect(
                refused.exitCode == 2
                    && refused.errors.contains(
                        "the environment was development, now it is production"),
                "\(more): \(refused.errors)")
        }
        let same = try run(options, ["--environment", "development", "--resume"])
        #expect(
            same.exitCode == 1 && same.errors.contains("gave up on \(sandbox)"), "\(same.errors)")
    }

    @Test
    func `channel and broadcast go to the server of the campaign file, or to its environment`()
        throws
    {
        for call in calls.suffix(2) {
            let host = call[0] == "channel" ? "api-manage-broadcast" : "api-broadcast"
            for (text, says) in [
                ("endpoint: 'localhost:2197'", "localhost:2197"),
                ("endpoint: 'api.sandbox.push.apple.com:2197'", "\(host).sandbox.push.apple.com:"),
                ("endpoint: 'api.push.apple.com'", "\(host).push.apple.com:"),
                ("environment: 'development'", "\(host).sandbox.push.apple.com:"),
            ] {
                let file = try campaign.directory.write("{ \(text) }", to: "c.json5")
                let planned = try run(call + credential, ["--campaign", file])
                #expect(planned.exitCode == 0, "\(planned.errors)")
                #expect(planned.output.contains(says), "\(text): \(planned.output)")
                let chosen = try run(
                    call + credential, ["--campaign", file, "--endpoint", "localhost:9"])
                #expect(chosen.output.contains("localhost:9"), "\(text): \(chosen.output)")
            }
            let file = try campaign.directory.write(
                "{ endpoint: 'api.push.apple.com', environment: 'development' }", to: "c.json5")
            let refused = try run(call + credential, ["--campaign", file])
            #expect(refused.exitCode == 2 && refused.errors.contains("contradicts"))
        }
    }
}
