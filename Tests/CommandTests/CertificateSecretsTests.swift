import BroadsideTestSupport
import Foundation
import Testing

/// The key of a certificate and its passphrase stay where they belong.
@Suite(.timeLimit(.minutes(60)))
struct CertificateSecretsTests {
    @Test
    func `Neither the certificate's key nor its passphrase appears in any output or in the ledger`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 50)
        let directory = campaign.directory
        let identity = try campaign.authority.clientCertificate(in: directory)
        let bundle = try identity.bundle(passphrase: "marked-passphrase", in: directory)
        let word = try directory.write("marked-passphrase\n", to: "word")
        let options = ["--certificate", bundle, "--passphrase-file", word]
        let without: Set<String> = ["auth-key", "key-id", "team-id"]
        var outputs: [String] = []
        for more in [["--dry-run"], ["--progress", "json", "--summary", "-"]] {
            let sent = try Broadside.run(
                campaign.arguments(to: server.endpoint, options + more, without: without),
                in: directory)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            outputs += [sent.output, sent.errors]
        }
        let examined = try Broadside.run(
            [
                "doctor", "--endpoint", server.endpoint, "--ca-file", campaign.authority.caFile,
            ] + options, in: directory)
        #expect(examined.exitCode == 0, "\(examined.output)")
        outputs += [examined.output, examined.errors]

        let key = try String(contentsOfFile: identity.key, encoding: .utf8)
            .split(separator: "\n")[1]
        for secret in [String(key.prefix(40)), "marked-passphrase"] {
            #expect(outputs.allSatisfy { !$0.contains(secret) })
            for name in try directory.names(in: campaign.ledger) {
                let bytes = try Data(contentsOf: URL(filePath: "\(campaign.ledger)/\(name)"))
                #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(name)")
            }
        }
    }

    @Test(arguments: ["secret", "secret\r\n", "\u{FEFF}secret\r\n", "secret\nnot this\n"])
    func `A passphrase is the first line of its file, without marks of an editor`(text: String)
        throws
    {
        let campaign = try Campaign(rows: 5)
        let directory = campaign.directory
        let identity = try campaign.authority.clientCertificate(in: directory)
        let bundle = try identity.bundle(passphrase: "secret", in: directory)
        let word = try directory.write(text, to: "word")
        let read = try Broadside.run(
            campaign.arguments(
                to: "localhost:1",
                ["--certificate", bundle, "--passphrase-file", word, "--dry-run"],
                without: ["auth-key", "key-id", "team-id"]), in: directory)
        #expect(read.exitCode == 0, "\(read.errors)")
    }
}
