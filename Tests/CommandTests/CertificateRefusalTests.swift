import BroadsideTestSupport
import Foundation
import Testing

/// What a certificate is not for is said before anything is connected.
@Suite(.timeLimit(.minutes(60)))
struct CertificateRefusalTests {
    private let campaign: Campaign

    init() throws { campaign = try Campaign(rows: 3) }

    /// A dry run against Apple's hosts, which connects nowhere.
    private func dryRun(
        _ more: [String], without: Set<String> = []
    ) throws -> Finished {
        try Broadside.run(
            campaign.arguments(
                to: "", more + ["--dry-run"],
                without: without.union(["auth-key", "key-id", "team-id", "endpoint", "ca-file"])),
            in: campaign.directory)
    }

    private func make(
        topics: [String] = [], environments: [Int] = [1, 2], days: Int = 90
    ) throws -> [String] {
        let identity = try campaign.authority.clientCertificate(
            topics: topics, environments: environments, days: days, in: campaign.directory,
            name: "client\(topics.count)-\(environments.count)-\(days)")
        return ["--certificate", identity.certificate, "--private-key", identity.key]
    }

    private func expectRefusal(_ finished: Finished, says words: [String]) {
        #expect(finished.exitCode == 2, "\(finished.errors)")
        #expect(finished.errorLines.count == 1)
        for word in words { #expect(finished.errors.contains(word), "\(finished.errors)") }
    }

    @Test
    func `A certificate without the topic is refused, and one with several needs --topic`() throws {
        let one = try make()
        let several = try make(topics: [Campaign.topic, "com.example.app.voip"])
        #expect(try dryRun(one).exitCode == 0)
        #expect(try dryRun(one, without: ["topic"]).exitCode == 0)
        #expect(try dryRun(several + ["--topic", "com.example.app.voip"]).exitCode == 0)
        expectRefusal(
            try dryRun(one + ["--topic", "com.example.other"]),
            says: ["--topic", "com.example.other", Campaign.topic])
        expectRefusal(
            try dryRun(several, without: ["topic"]), says: ["--topic is missing", "voip"])
        expectRefusal(
            try dryRun(one + ["--push-type", "voip"], without: ["topic"]),
            says: ["--topic is missing", ".voip"])
    }

    @Test func `A certificate for device management without --push-type mdm is refused`() throws {
        let topic = "com.apple.mgmt.External.x"
        let identity = try campaign.authority.clientCertificate(
            userID: topic, in: campaign.directory)
        let payload = try campaign.directory.write(#"{"mdm":"magic"}"#, to: "mdm.json")
        let files = ["--certificate", identity.certificate, "--private-key", identity.key]
        for topic in [["--topic", topic], []] {
            let without = Set(topic.isEmpty ? ["topic"] : [])
            expectRefusal(
                try dryRun(files + topic, without: without),
                says: ["--topic", "device management", "add --push-type mdm"])
            expectRefusal(
                try dryRun(files + topic + ["--payload", payload], without: without),
                says: ["has 'mdm' and no 'aps'", "add --push-type mdm"])
            let right = try dryRun(
                files + topic + ["--payload", payload, "--push-type", "mdm"], without: without)
            #expect(right.exitCode == 0, "\(right.errors)")
        }
    }

    @Test func `A certificate of another environment is refused`() throws {
        let development = try make(environments: [1])
        expectRefusal(try dryRun(development), says: ["--environment", "development"])
        #expect(try dryRun(development + ["--environment", "development"]).exitCode == 0)
        let production = try make(environments: [2])
        #expect(try dryRun(production).exitCode == 0)
        expectRefusal(
            try dryRun(production + ["--environment", "development"]), says: ["production"])
    }

    @Test
    func `An expired certificate is refused, and one that expires within 30 days is a warning`()
        throws
    {
        expectRefusal(try dryRun(make(days: -1)), says: ["--certificate", "expired"])
        let soon = try dryRun(make(days: 20))
        #expect(soon.exitCode == 0)
        #expect(soon.errors.contains("warning: --certificate"), "\(soon.errors)")
        #expect(soon.errors.contains("expires on"))
        let later = try dryRun(make(days: 40))
        #expect(!later.errors.contains("expires on"), "\(later.errors)")
    }

    @Test func `A certificate that signs apps is refused`() throws {
        let identity = try campaign.authority.clientCertificate(
            environments: [], commonName: "iPhone Distribution: ACME (DEF123GHIJ)",
            in: campaign.directory)
        expectRefusal(
            try dryRun([
                "--certificate", identity.certificate, "--private-key", identity.key,
            ]), says: ["'iPhone Distribution: ACME (DEF123GHIJ)' signs apps", "for push"])
    }

    @Test func `A file with the certificates of two identities is refused, whichever comes first`()
        throws
    {
        let (old, new) = (try make(days: -1), try make())
        let other = try make(topics: ["com.example.other", "com.example.other.voip"])
        func text(_ path: String) throws -> String {
            try String(contentsOfFile: path, encoding: .utf8)
        }
        for pair in [[old, new], [new, old], [other, new], [new, other]] {
            let file = try campaign.directory.write(
                pair.map { try text($0[1]) + text($0[3]) }.joined(), to: "both.pem")
            expectRefusal(
                try dryRun(["--certificate", file]),
                says: ["several identities", "export only the one for this campaign"])
        }
        // The same certificate twice is one identity.
        let twice = try campaign.directory.write(
            try text(new[3]) + text(new[1]) + text(new[1]), to: "twice.pem")
        #expect(try dryRun(["--certificate", twice]).exitCode == 0)
    }

    @Test func `Two credentials, none, or an option of the other credential are refused`() throws {
        let one = try make()
        expectRefusal(
            try dryRun(one + ["--auth-key", campaign.authority.authKey]),
            says: ["--auth-key and --certificate exclude"])
        expectRefusal(try dryRun([]), says: ["--auth-key is missing", "--certificate"])
        expectRefusal(try dryRun(one + ["--key-id", Campaign.keyID]), says: ["--key-id"])
        expectRefusal(
            try dryRun(["--certificate", one[1]]), says: ["--private-key", "no private key"])
        expectRefusal(
            try dryRun([
                "--certificate", one[1], "--private-key", campaign.authority.authKey,
            ]), says: ["does not belong"])
    }

    @Test func `A private key that others can read is a warning with the chmod command`() throws {
        let one = try make()
        #expect(!(try dryRun(one).errors.contains("chmod")))
        #expect(chmod(one[3], 0o644) == 0)
        let warned = try dryRun(one)
        #expect(warned.exitCode == 0)
        #expect(warned.errors.contains("chmod 600 \(one[3])"), "\(warned.errors)")
    }
}
