import BroadsideTestSupport
import Foundation
import Testing

/// Signing keys that stay in a PKCS#11 token.
@Suite(.timeLimit(.minutes(60)), .needs(.softHSM))
struct TokenKeyTests {
    private let campaign: Campaign
    private let environment: [String: String]
    private static let pin = "87654321"

    /// A token of SoftHSM with the campaign's key.
    init() throws {
        campaign = try Campaign(rows: 500)
        let path = campaign.directory.path
        try FileManager.default.createDirectory(
            atPath: path + "/tokens", withIntermediateDirectories: true)
        let settings = try campaign.directory.write(
            "directories.tokendir = \(path)/tokens\n", to: "softhsm2.conf")
        let library =
            ProcessInfo.processInfo.environment["PKCS11_MODULE_PATH"]
            ?? "/usr/lib/softhsm/libsofthsm2.so"
        environment = ["SOFTHSM2_CONF": settings, "PKCS11_MODULE_PATH": library]
        for arguments in [
            [
                "--init-token", "--free", "--label", "apns", "--so-pin", "12345678", "--pin",
                Self.pin,
            ],
            [
                "--import", campaign.authority.authKey, "--token", "apns", "--label", "push",
                "--id", "01", "--pin", Self.pin,
            ],
        ] {
            let made = try Subprocess(
                "softhsm2-util", ["--module", library] + arguments, in: campaign.directory,
                environment: environment
            ).wait(limit: 60)
            guard made.exitCode == 0 else { throw TestFailure("softhsm2-util: \(made.errors)") }
        }
        try campaign.directory.write(Self.pin + "\n", to: "pin")
        try campaign.directory.write("11111111", to: "wrong")
        for name in ["pin", "wrong"] { #expect(chmod("\(path)/\(name)", 0o600) == 0) }
    }

    private func uri(_ query: String, object: String = "push") -> String {
        "pkcs11:token=apns;object=\(object)?\(query)"
    }

    private var good: String { uri("pin-source=\(campaign.directory.path)/pin") }

    @Test
    func `A key in a token carries a campaign with one provider token that APNs verifies`() throws {
        let server = try LocalAPNs()
        let sent = try campaign.send(
            to: server.endpoint, ["--auth-key", good, "--connections", "3"],
            environment: environment)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.finish().count { $0[5] == "200" } == 500)
        for name in try campaign.directory.names(in: campaign.ledger) {
            let bytes = try Data(contentsOf: URL(filePath: "\(campaign.ledger)/\(name)"))
            #expect(bytes.range(of: Data(Self.pin.utf8)) == nil, "\(name)")
        }
    }

    @Test
    func `The plan says that other processes have other provider tokens, and SIGHUP changes none`()
        throws
    {
        let dry = try campaign.send(
            to: "localhost:1", ["--auth-key", good, "--dry-run"], environment: environment)
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect(
            (dry.output + dry.errors).split(whereSeparator: \.isWhitespace).joined(separator: " ")
                .contains("in a PKCS#11 token (each process signs different provider tokens)"))
        let server = try RecordingServer(
            "plain", ["--detail", (1...600).map(String.init).joined(separator: ",")])
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--auth-key", good, "--rate", "20", "--progress", "none"]),
            in: campaign.directory,
            environment: FakeTime.inWindow(600).merging(environment) { $1 })
        try sending.wait { try server.answerCount() > 10 }
        sending.send(signal: SIGHUP)
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains("read again")
        }
        let control = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "1000"], in: campaign.directory)
        #expect(control.exitCode == 0, "\(control.errors)")
        let sent = try sending.wait()
        #expect(sent.exitCode == 0 && sent.errors.contains("read again"), "\(sent.errors)")
        let used = try server.events().compactMap(\.fields).compactMap { fields in
            fields.first { $0.name == "authorization" }?.value
        }
        #expect(used.count == 500 && Set(used).count == 1)
    }

    @Test
    func
        `A wrong PIN, another object, a PIN in the URI and a lacking file are named without the PIN`()
        throws
    {
        let folder = campaign.directory.path
        for (uri, says) in [
            (uri("pin-source=\(folder)/wrong"), "pkcs11:token=apns;object=push: no private key"),
            (uri("pin-source=\(folder)/pin", object: "other"), "object=other: no private key"),
            (uri("pin-value=\(Self.pin)"), "contains a pin-value (it is not shown here)"),
            (
                uri("pin-source=\(folder)/nothing.txt"),
                "the file of pin-source can't be read: No such file"
            ),
            (uri("pin-source=%zz"), "percent-encoded"),
        ] {
            let refused = try campaign.send(
                to: "localhost:1", ["--auth-key", uri, "--dry-run"], environment: environment)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errors.contains("--auth-key "), "\(refused.errors)")
            #expect(refused.errors.contains(says), "\(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(!refused.errors.contains(Self.pin) && !refused.errors.contains("11111111"))
        }
        let printed = try campaign.send(
            to: "localhost:1",
            ["--auth-key", uri("pin-value=\(Self.pin)"), "--print-campaign"],
            environment: environment)
        #expect(printed.exitCode == 2 && !printed.output.contains(Self.pin))
    }
}
