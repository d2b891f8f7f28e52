import BroadsideTestSupport
import Foundation
import Testing

/// Campaigns that are sent with a client certificate.
@Suite(.timeLimit(.minutes(60)))
struct ClientCertificateTests {
    private static let keyOptions: Set<String> = ["auth-key", "key-id", "team-id"]

    private func send(
        _ campaign: Campaign, to endpoint: String, _ more: [String],
        without: Set<String> = keyOptions
    ) throws -> Finished {
        try Broadside.run(
            campaign.arguments(to: endpoint, more, without: without), in: campaign.directory)
    }

    private func certificate(_ identity: ServerIdentity) -> [String] {
        ["--certificate", identity.certificate, "--private-key", identity.key]
    }

    @Test
    func `A certificate of several topics sends a campaign over several connections`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let identity = try campaign.authority.clientCertificate(
            topics: [Campaign.topic, Campaign.topic + ".voip"], in: campaign.directory)
        let sent = try send(
            campaign, to: server.endpoint, certificate(identity) + ["--connections", "4"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let journal = try server.finish()
        #expect(journal.count == 20_000)
        #expect(Set(journal.map { $0[4] }).count == 20_000)
        #expect(journal.allSatisfy { $0[5] == "200" })
        // Never a provider token: none was made.
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger + "/provider-token"))
    }

    @Test
    func `A certificate of one topic needs no --topic, and requests carry no authorization`() throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 10_000)
        let identity = try campaign.authority.clientCertificate(in: campaign.directory)
        let sent = try send(
            campaign, to: server.endpoint, certificate(identity),
            without: Self.keyOptions.union(["topic"]))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.finish().count { $0[5] == "200" } == 10_000)

        let recorder = try RecordingServer("plain", ["--detail", "1,2,3"])
        let second = try Campaign(rows: 3)
        let recorded = try send(
            second, to: recorder.endpoint, certificate(identity) + ["--connections", "1"])
        #expect(recorded.exitCode == 0, "\(recorded.errors)")
        let requests = try recorder.events().compactMap(\.fields)
        #expect(requests.count == 3)
        for request in requests {
            #expect(!request.contains { $0.name == "authorization" })
        }
    }

    @Test(arguments: ["", "-legacy"])
    func `A PKCS#12 file with modern or old ciphers sends a campaign`(_ cipher: String) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 10_000)
        let directory = campaign.directory
        let identity = try campaign.authority.clientCertificate(in: directory)
        let bundle = try identity.bundle(
            passphrase: "marked-word", cipher.isEmpty ? [] : [cipher], in: directory)
        let word = try directory.write("marked-word\n", to: "word")
        let wrong = try directory.write("marked-wrong\n", to: "wrong")

        let refused = try send(
            campaign, to: server.endpoint, ["--certificate", bundle, "--passphrase-file", wrong])
        #expect(refused.exitCode == 2)
        #expect(refused.errors.contains("passphrase"), "\(refused.errors)")
        let closed = try send(campaign, to: server.endpoint, ["--certificate", bundle])
        #expect(closed.exitCode == 2)
        #expect(closed.errors.contains("--passphrase-file"), "\(closed.errors)")
        let sent = try send(
            campaign, to: server.endpoint, ["--certificate", bundle, "--passphrase-file", word])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let journal = try server.finish()
        #expect(journal.count == 10_000)
        #expect(Set(journal.map { $0[4] }).count == 10_000)
        for finished in [refused, closed, sent] {
            #expect(!(finished.errors + finished.output).contains("marked-w"))
        }
    }

    @Test func `A PKCS#12 file with old ciphers and no legacy provider says what to do`() throws {
        let campaign = try Campaign(rows: 1)
        let directory = campaign.directory
        let identity = try campaign.authority.clientCertificate(in: directory)
        let bundle = try identity.bundle(passphrase: "x", ["-legacy"], in: directory)
        let word = try directory.write("x", to: "word")
        let process = try Subprocess(
            Broadside.path(),
            campaign.arguments(
                to: "localhost:1",
                ["--certificate", bundle, "--passphrase-file", word, "--dry-run"],
                without: Self.keyOptions),
            in: directory, environment: ["OPENSSL_MODULES": "/nonexistent"])
        let finished = try process.wait()
        #expect(finished.exitCode == 2)
        #expect(finished.errors.contains("openssl pkcs12 -legacy"), "\(finished.errors)")
    }

    @Test(arguments: [["pkcs8", "-topk8", "-v2", "rc2"], ["ec", "-des"]])
    func `A key with an old cipher and no legacy provider says what to do`(command: [String])
        throws
    {
        let campaign = try Campaign(rows: 1)
        let directory = campaign.directory
        let identity = try campaign.authority.clientCertificate(in: directory)
        let locked = "\(directory.path)/locked.key"
        try Subprocess.run(
            "openssl",
            command + [
                "-provider", "legacy", "-provider", "default", "-in", identity.key, "-passout",
                "pass:word", "-out", locked,
            ], in: directory)
        let word = try directory.write("word", to: "word")
        func dryRun(modules: String?) throws -> Finished {
            try Subprocess(
                Broadside.path(),
                campaign.arguments(
                    to: "localhost:1",
                    [
                        "--certificate", identity.certificate, "--private-key", locked,
                        "--passphrase-file", word, "--dry-run",
                    ], without: Self.keyOptions),
                in: directory, environment: modules.map { ["OPENSSL_MODULES": $0] } ?? [:]
            ).wait()
        }
        #expect(try dryRun(modules: nil).exitCode == 0)
        let refused = try dryRun(modules: "/nonexistent")
        #expect(refused.exitCode == 2)
        #expect(
            refused.errors.contains("openssl pkcs8 -topk8 -provider legacy"), "\(refused.errors)")
    }

    @Test func `A protected PEM key in one file with its certificate sends a campaign`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 10)
        let directory = campaign.directory
        let identity = try campaign.authority.clientCertificate(in: directory)
        let locked = "\(directory.path)/locked.key"
        try Subprocess.run(
            "openssl",
            ["pkcs8", "-topk8", "-in", identity.key, "-passout", "pass:word", "-out", locked],
            in: directory)
        let both = try directory.write(
            String(contentsOfFile: identity.certificate, encoding: .utf8)
                + String(contentsOfFile: locked, encoding: .utf8), to: "both.pem")
        let word = try directory.write("word", to: "word")
        let closed = try send(campaign, to: server.endpoint, ["--certificate", both])
        #expect(closed.exitCode == 2)
        #expect(closed.errors.contains("add --passphrase-file"), "\(closed.errors)")
        let sent = try send(
            campaign, to: server.endpoint, ["--certificate", both, "--passphrase-file", word])
        #expect(sent.exitCode == 0, "\(sent.errors)")
    }
}
