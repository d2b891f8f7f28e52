import BroadsideTestSupport
import Foundation
import Testing

/// One rule for client certificates at the provider API, the legacy gateway and the feedback
/// service.
@Suite(.timeLimit(.minutes(60)))
struct CertificateRuleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var certificate: String
        var environment: String
        var reason: String?

        var testDescription: String { "\(certificate) in \(environment)" }
    }

    static let cases = [
        Case(certificate: "client", environment: "production"),
        Case(certificate: "client", environment: "development"),
        Case(certificate: "client-single", environment: "production"),
        Case(certificate: "other/client-production", environment: "production"),
        Case(certificate: "other/client-development", environment: "development"),
        Case(certificate: "other/client-development-by-name", environment: "development"),
        Case(
            certificate: "other/client-revoked", environment: "production", reason: "BadCertificate"
        ),
        Case(
            certificate: "other/client-development", environment: "production",
            reason: "BadCertificateEnvironment"),
        Case(
            certificate: "other/client-production", environment: "development",
            reason: "BadCertificateEnvironment"),
        Case(
            certificate: "other/client-development-by-name", environment: "production",
            reason: "BadCertificateEnvironment"),
    ]

    /// What the provider of the documents hears.
    ///
    /// - Parameter staysOpen: The service is not expected to end the connection: it is not waited for.
    private func provide(
        _ api: SimulatedAPI, _ certificate: String, port: Int, _ more: [String],
        staysOpen: Bool = false
    ) throws -> GatewayReply {
        let state = api.simulation.state
        let finished = try Subprocess(
            "python3",
            [
                "-B", "\(Tool.packageRoot)/Tests/Servers/legacy_provider.py", "--port", "\(port)",
                "--ca", "\(state)/ca.pem", "--certificate", "\(state)/\(certificate).pem",
                "--key", "\(state)/\(certificate).key", "--wait",
                staysOpen ? "1" : "60",
            ] + more, in: api.directory
        ).wait()
        guard finished.exitCode == 0 else { throw TestFailure(finished.errors) }
        return try JSONDecoder().decode(GatewayReply.self, from: Data(finished.output.utf8))
    }

    @Test(arguments: cases)
    func `All three services of the simulator refuse the same certificates`(_ one: Case) throws {
        let (gateway, feedback) = (try Ports.free(), try Ports.free())
        let api = try SimulatedAPI([
            "--environment", one.environment, "--binary-listen", "127.0.0.1:\(gateway)",
            "--feedback-listen", "127.0.0.1:\(feedback)", "--unregistered", "1",
        ])
        let isAccepted = one.reason == nil
        let response = try api.curl(certificate: one.certificate)
        #expect(response.status == (isAccepted ? 410 : 0))

        let notification = gatewayNotification(1, 7, api.token)
        let reply = try provide(
            api, one.certificate, port: gateway, [notification], staysOpen: isAccepted)
        #expect(reply.packet == nil && reply.closed == !isAccepted)
        // What the gateway learned is told to those whom it speaks to, and stays for them.
        _ = try provide(api, "client", port: gateway, [notification], staysOpen: true)
        let told = try provide(api, one.certificate, port: feedback, ["--feedback"])
        #expect(told.tuples?.map(\.token) == (isAccepted ? [api.token] : []))
        let state = api.simulation.state
        let read = try Broadside.run(
            [
                "feedback", "--endpoint", "localhost:\(feedback)", "--ca-file", "\(state)/ca.pem",
                "--certificate", "\(state)/\(one.certificate).pem", "--private-key",
                "\(state)/\(one.certificate).key", "--ledger", "\(state)/read",
            ], in: api.directory)
        #expect(read.exitCode == 0, "\(read.errors)")
        #expect(
            read.errors.contains("may refuse the certificate") == !isAccepted, "\(read.errors)")
        let left = try provide(api, "client", port: feedback, ["--feedback"])
        #expect(left.tuples?.map(\.token) == (isAccepted ? [] : [api.token]))

        let said = try api.simulation.stop()
        let line = "client certificates refused: \(one.reason ?? ""): 4"
        #expect(said.contains(line) == !isAccepted, "\(said)")
        #expect(said.contains("gateway: \(isAccepted ? 2 : 1) accepted"), "\(said)")
    }

    @Test(arguments: cases)
    func `simulate --fast refuses the same certificates`(_ one: Case) throws {
        let api = try SimulatedAPI(["--environment", one.environment, "--fast"])
        let response = try api.curl(certificate: one.certificate)
        #expect(response.status == (one.reason == nil ? 200 : 0))
    }

    @Test(arguments: ["revoked", "development"])
    func `A campaign to the legacy gateway with a refused certificate is not accepted by silence`(
        _ name: String
    ) throws {
        let gateway = try Ports.free()
        let api = try SimulatedAPI(["--binary-listen", "127.0.0.1:\(gateway)"])
        let campaign = try Campaign(rows: 20)
        let path = "\(api.simulation.state)/other/client-\(name)"
        let sent = try Broadside.run(
            campaign.arguments(
                to: "localhost:\(gateway)",
                [
                    "--protocol", "binary", "--certificate", "\(path).pem", "--private-key",
                    "\(path).key", "--ca-file", "\(api.simulation.state)/ca.pem",
                    "--give-up-after", "7s", "--request-timeout", "36s", "--summary", "-",
                    "--log", "text",
                ], without: ["auth-key", "key-id", "team-id", "topic", "ca-file"]),
            in: campaign.directory)
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 0, "\(sent.output) \(sent.errors)")
        #expect(sent.exitCode != 0, "\(sent.errors)")
        #expect(sent.errors.contains("may refuse the client certificate"), "\(sent.errors)")
    }
}
