import BroadsideTestSupport
import Foundation
import Testing

/// What the doctor tells apart beyond what `DoctorTests` shows: clocks, environments, ports.
@Suite(.timeLimit(.minutes(60)))
struct DoctorFindingsTests {
    private let campaign: Campaign

    init() throws { campaign = try Campaign(rows: 1) }

    private func doctor(
        _ endpoint: String, _ more: [String] = [], without: Set<String> = [],
        environment: [String: String] = [:]
    ) throws -> Finished {
        let options = campaign.arguments(
            to: endpoint, more,
            without: without.union(["payload", "tokens", "ledger", "progress"]))
        return try Broadside.run(
            ["doctor"] + options.dropFirst(), in: campaign.directory, limit: 60,
            environment: environment)
    }

    /// The line of the one check that failed, and what it advises.
    private func failure(_ finished: Finished) throws -> String {
        let lines = finished.output.split(separator: "\n").map(String.init)
        let failed = lines.indices.filter { lines[$0].dropFirst(13).hasPrefix("failed") }
        #expect(failed.count == 1, "\(finished.output)")
        return lines[try #require(failed.first, "\(finished.output)")...].joined(separator: " ")
    }

    private static let keyOptions: Set<String> = ["auth-key", "key-id", "team-id"]

    @Test(arguments: ["+2h", "-2h"])
    func `doctor reports a clock that is two hours off`(_ offset: String) throws {
        let server = try LocalAPNs(clock: offset)
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 4, "\(found.output)\(found.errors)")
        let words = try failure(found)
        #expect(words.hasPrefix("clock"))
        #expect(words.contains(offset == "+2h" ? "minutes slow" : "one to three hours fast"))
    }

    @Test(arguments: [(-18_000, "ahead of"), (18_000, "behind"), (30, nil as String?)])
    func `doctor compares the server's time with the clock`(_ offset: Int, _ word: String?) throws {
        let server = try RecordingServer(
            "reason", ["--reason", "InvalidProviderToken", "--date", "\(offset)"])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 4)
        let words = try failure(found)
        #expect(words.hasPrefix(word == nil ? "credential" : "clock"), "\(words)")
        if let word { #expect(words.contains("minutes \(word) the server's date"), "\(words)") }
    }

    @Test func `doctor reports a clock that is a few minutes off once, as a warning`() throws {
        let server = try RecordingServer(
            "reason", ["--status", "400", "--reason", "BadDeviceToken", "--date", "-1500"])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 0, "\(found.output)\(found.errors)")
        let clocks = found.output.split(separator: "\n").filter { $0.hasPrefix("clock ") }
        #expect(clocks.count == 1, "\(found.output)")
        #expect(clocks.first?.contains("warning  25 minutes ahead of") == true, "\(clocks)")
    }

    @Test(arguments: [(403, "credential"), (400, "request")])
    func `doctor names a reason that this version does not know`(
        status: Int, check: String
    ) throws {
        let server = try RecordingServer(
            "reason", ["--status", "\(status)", "--reason", "KeyRevoked"])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 4, "\(found.output)\(found.errors)")
        let words = try failure(found)
        #expect(words.hasPrefix(check) && words.contains("\(status) KeyRevoked"), "\(words)")
        #expect(words.contains("look up this reason"), "\(words)")
    }

    @Test func `doctor says that a request was sent if the server then closes the connection`()
        throws
    {
        let server = try RecordingServer("lost")
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 1, "\(found.output)")
        let words = try failure(found)
        #expect(words.hasPrefix("connection"), "\(words)")
        #expect(words.contains("after the request was sent"), "\(words)")
    }

    @Test func `doctor names the rule that a malformed response breaks`() throws {
        let server = try RecordingServer("status-twice", script: "hostile.py")
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 1, "\(found.output)")
        let words = try failure(found)
        #expect(
            words.contains("the response is malformed: it has more than one :status"), "\(words)")
        #expect(!words.contains("the server reset"), "\(words)")
    }

    @Test
    func `doctor reports provider tokens that change too often, and not an overload`() throws {
        let server = try RecordingServer(
            "reason", ["--status", "429", "--reason", "TooManyProviderTokenUpdates"])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 1, "\(found.output)")
        #expect(found.output.contains("use each token for at least 20 minutes"), "\(found.output)")
        #expect(!found.output.contains("overloaded"))
    }

    @Test(
        arguments: [
            ("notice: '500ms'", 0, "accepted by APNs"), ("abrupt: true", 1, "GOAWAY Shutdown"),
        ] as [(String, Int32, String)])
    func `doctor waits for the response after a GOAWAY, unless the connection ends first`(
        fault: String, code: Int32, says: String
    ) throws {
        let scenario = try campaign.directory.write(
            "{latency: '300ms', faults: [{do: 'goaway', at: 1, reason: 'Shutdown', \(fault)}]}",
            to: "scenario.json5")
        let server = try LocalAPNs(["--scenario", scenario])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == code, "\(found.output)")
        #expect(found.output.contains(says), "\(found.output)")
        #expect(found.output.contains("before it responded") == (code == 1), "\(found.output)")
    }

    @Test(
        arguments: [
            (408, "", 1, "the server did not process the request"),
            (421, "", 1, "the server did not process the request"),
            (425, "", 1, "the server did not process the request"),
            (429, "TooManyRequests", 1, "too many requests"),
            (400, "ExpiredToken", 0, "accepted by APNs"),
        ] as [(Int, String, Int32, String)])
    func `doctor reports a response that does not refuse the request as such`(
        status: Int, reason: String, code: Int32, says: String
    ) throws {
        let server = try RecordingServer(
            "reason", ["--status", "\(status)", "--reason", reason])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == code, "\(found.output)")
        #expect(found.output.contains(says), "\(found.output)")
        #expect(!found.output.contains("is this APNs?"), "\(found.output)")
    }

    @Test func `doctor names a refused stream, and windows without room for the payload`() throws {
        let scenario = try campaign.directory.write(
            "{faults: [{do: 'refuse', at: 1}]}", to: "scenario.json5")
        let server = try LocalAPNs(["--scenario", scenario])
        let refused = try doctor(server.endpoint)
        #expect(refused.exitCode == 1, "\(refused.output)")
        #expect(
            refused.output.contains("request      warning  the server refused the stream"),
            "\(refused.output)")
        #expect(!refused.output.contains("is this APNs?"), "\(refused.output)")

        let closed = try RecordingServer("plain", ["--setting", "4=0"])
        let words = try failure(doctor(closed.endpoint))
        #expect(words.contains("the server's windows leave no room for the payload"), "\(words)")
    }

    @Test func `doctor reports a provider token that did not arrive`() throws {
        let server = try RecordingServer("reason", ["--reason", "MissingProviderToken"])
        let found = try doctor(server.endpoint)
        #expect(found.exitCode == 4, "\(found.output)")
        let words = try failure(found)
        #expect(words.contains("removes the header authorization"), "\(words)")
        #expect(!words.contains("certificate"), "\(words)")
    }

    @Test func `doctor reports a key file named after another key ID`() throws {
        let server = try LocalAPNs()
        let key = "\(campaign.directory.path)/AuthKey_ABC123DEFX.p8"
        try FileManager.default.copyItem(atPath: campaign.authority.authKey, toPath: key)
        #expect(chmod(key, 0o600) == 0)
        let found = try doctor(server.endpoint, ["--auth-key", key, "--key-id", "ABC123DEFY"])
        #expect(found.exitCode == 4)
        #expect(found.output.contains("says key ID ABC123DEFX"), "\(found.output)")
        #expect(try failure(found).hasPrefix("credential"))
    }

    @Test(arguments: [
        ("SubscriptionKey_ABC123DEFG.p8", "in-app purchases"),
        ("ApiKey_ABC123DEFG.p8", "App Store Connect"),
    ])
    func `doctor reports a key file that Apple names for another use`(name: String, use: String)
        throws
    {
        let server = try LocalAPNs()
        let key = "\(campaign.directory.path)/\(name)"
        try FileManager.default.copyItem(atPath: campaign.authority.authKey, toPath: key)
        #expect(chmod(key, 0o600) == 0)
        let found = try doctor(server.endpoint, ["--auth-key", key])
        #expect(found.output.contains("is a key for \(use)"), "\(found.output)")
    }

    @Test func `doctor reports a key or certificate of the other environment`() throws {
        let byKey = try RecordingServer("reason", ["--reason", "BadEnvironmentKeyIdInToken"])
        let key = try doctor(byKey.endpoint)
        #expect(key.exitCode == 4)
        #expect(try failure(key).contains("the key is for the other environment"))

        let identity = try campaign.authority.clientCertificate(
            environments: [1], in: campaign.directory)
        let options = ["--certificate", identity.certificate, "--private-key", identity.key]
        let byCertificate = try RecordingServer(
            "goaway-reason", ["--reason", "BadCertificateEnvironment"])
        let certificate = try doctor(
            byCertificate.endpoint, options, without: Self.keyOptions)
        #expect(certificate.exitCode == 4, "\(certificate.output)")
        #expect(
            try failure(certificate).contains("the certificate is for the other environment"))

        // Where the certificate says so itself nothing has to be asked.
        let own = try doctor("x", options, without: Self.keyOptions.union(["endpoint", "ca-file"]))
        #expect(own.exitCode == 2)
        #expect(try failure(own).contains("--environment development"))
        #expect(own.errorLines.count == 1)
    }

    @Test
    func `doctor reports a certificate that is expired, expires soon or has other topics`() throws {
        let directory = campaign.directory
        func examine(_ identity: ServerIdentity, _ more: [String] = []) throws -> Finished {
            try doctor(
                "localhost:1",
                ["--certificate", identity.certificate, "--private-key", identity.key] + more,
                without: Self.keyOptions)
        }
        let expired = try examine(
            campaign.authority.clientCertificate(days: -1, in: directory, name: "expired"))
        #expect(expired.exitCode == 2)
        #expect(try failure(expired).contains("expired on"))
        let other = try examine(
            campaign.authority.clientCertificate(
                userID: "com.example.stranger", in: directory, name: "other"))
        #expect(other.exitCode == 2)
        #expect(try failure(other).contains("com.example.stranger"))
        let soon = try examine(
            campaign.authority.clientCertificate(days: 9, in: directory, name: "soon"))
        #expect(soon.exitCode == 1)
        #expect(soon.output.contains("renew it"), "\(soon.output)")
        let several = try doctor(
            "localhost:1",
            [
                "--certificate",
                campaign.authority.clientCertificate(
                    topics: ["com.example.app", "com.example.app.voip"], in: directory,
                    name: "several"
                ).certificate, "--private-key", "\(directory.path)/several.key",
            ], without: Self.keyOptions.union(["topic"]))
        #expect(several.exitCode == 2)
        #expect(try failure(several).contains("has several topics: name one of"))
    }

    @Test func `doctor distinguishes a closed port from a firewall`() throws {
        let closed = try doctor("127.0.0.1:\(try Ports.free())")
        #expect(closed.exitCode == 1)
        #expect(try failure(closed).contains("nothing listens there"))
        let silent = try SilentPort()
        let swallowed = try doctor("127.0.0.1:\(silent.port)")
        #expect(swallowed.exitCode == 1)
        let words = try failure(swallowed)
        #expect(words.hasPrefix("connect"))
        #expect(words.contains("a firewall drops the packets"), "\(words)")
    }

    @Test func `doctor --json reports a wrong request as JSON`() throws {
        let wrong = try doctor(
            "localhost:1", ["--auth-key", "/nonexistent", "--json"])
        #expect(wrong.exitCode == 2)
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(wrong.output.utf8)) as? [String: Any])
        #expect(object["outcome"] as? String == "failed")
        #expect(wrong.errors.contains("--auth-key /nonexistent"))
    }
}
