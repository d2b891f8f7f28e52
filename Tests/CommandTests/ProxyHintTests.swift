import BroadsideTestSupport
import Testing

/// Where a connection fails, the option that is to blame is named: `--proxy`, and not `--endpoint`.
@Suite(.timeLimit(.minutes(60)))
struct ProxyHintTests {
    private func run(
        _ more: [String], environment: [String: String] = [:]
    ) throws -> (send: String, doctor: String) {
        let campaign = try Campaign(rows: 3)
        let sent = try Broadside.run(
            campaign.arguments(to: "127.0.0.1:\(Ports.free())", more + ["--give-up-after", "1s"]),
            in: campaign.directory, environment: environment)
        #expect(sent.exitCode == 1, "\(sent.errors)")
        let options = [
            "--topic", Campaign.topic, "--auth-key", campaign.authority.authKey, "--key-id",
            Campaign.keyID, "--team-id", Campaign.teamID, "--endpoint",
            "127.0.0.1:\(try Ports.free())",
        ]
        let examined = try Broadside.run(
            ["doctor"] + options + more, in: campaign.directory, environment: environment)
        #expect(examined.exitCode == 1, "\(examined.output)")
        return (sent.errors, examined.output)
    }

    @Test func `A refusing proxy leads to a check of --proxy`() throws {
        let said = try run(
            ["--proxy", "http://127.0.0.1:\(Ports.free())"],
            environment: ["HTTPS_PROXY": "http://127.0.0.1:9"])
        #expect(said.send.contains("check --proxy") && !said.send.contains("check --endpoint"))
        #expect(said.doctor.contains("check --proxy"), "\(said.doctor)")
        #expect(!(said.send + said.doctor).contains("HTTPS_PROXY"))
    }

    @Test(arguments: ["HTTPS_PROXY", "https_proxy"])
    func `A proxy in the environment is named and not used`(name: String) throws {
        let server = try RecordingServer()
        let said = try run([], environment: [name: "http://user:sesame@\(server.endpoint)"])
        for text in [said.send, said.doctor] {
            #expect(text.contains(name) && text.contains("--proxy"), "\(text)")
            #expect(!text.contains("sesame") && !text.contains(server.endpoint))
        }
        #expect(try !run([], environment: [name: ""]).send.contains(name))
    }
}
