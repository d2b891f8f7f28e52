import BroadsideTestSupport
import Foundation
import Testing

/// SIGHUP in mid-run: credentials are read again, connections replaced one after the other.
@Suite(.timeLimit(.minutes(60)))
struct ReloadTests {
    /// Waits until a run says something.
    private func wait(_ sending: Subprocess, for text: String) throws {
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains(text)
        }
    }

    /// Waits until a run with `--log json` has opened so many connections.
    private func wait(_ sending: Subprocess, forConnections count: Int) throws {
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8)
                .ranges(of: "\"connection-open\"").count >= count
        }
    }

    @Test func `SIGHUP with a signing key loses and repeats no row`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 12_000)
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--rate", "400", "--connections", "4", "--log", "json"]),
            in: campaign.directory)
        try campaign.waitForRows(sending)
        try wait(sending, forConnections: 4)
        sending.send(signal: SIGHUP)
        try wait(sending, forConnections: 8)
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("credentials were read again"), "\(sent.errors)")
        let journal = try server.finish()
        #expect(journal.count == 12_000)
        #expect(Set(journal.map { $0[4] }).count == 12_000)
        #expect(journal.allSatisfy { $0[5] == "200" })
        // Four before and their successors. At a slow rate, some of those before may have had no row.
        let connections = Set(journal.map { $0[1] }).count
        #expect(connections > 4 && connections <= 8)
        #expect(try campaign.statistics().accepted == 12_000)
    }

    @Test func `SIGHUP shows a replaced certificate to new connections`() throws {
        let server = try Nginx(requestsPerConnection: 1_000_000, asksForCertificates: true)
        let campaign = try Campaign(rows: 4000)
        let directory = campaign.directory
        func make(_ name: String) throws -> ServerIdentity {
            try campaign.authority.clientCertificate(
                userID: "com.example.\(name)", topics: [Campaign.topic], in: directory, name: name)
        }
        let first = try make("first")
        let second = try make("second")
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--certificate", first.certificate, "--private-key", first.key, "--rate",
                    "300", "--connections", "3", "--log", "json",
                ], without: ["auth-key", "key-id", "team-id"]), in: directory)
        try campaign.waitForRows(sending)
        try wait(sending, forConnections: 3)
        // Half of it first, which has to be passed over: key and certificate don't fit.
        #expect(rename(second.certificate, first.certificate) == 0)
        sending.send(signal: SIGHUP)
        try wait(sending, for: "stays in use")
        #expect(rename(second.key, first.key) == 0)
        sending.send(signal: SIGHUP)
        try wait(sending, forConnections: 6)
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("credentials were read again"), "\(sent.errors)")
        let clients = try server.clients()
        #expect(clients.count == 4000)
        #expect(Set(clients).count == 2)
        #expect(clients.first?.contains("com.example.first") == true)
        #expect(clients.last?.contains("com.example.second") == true)
        let tally = try server.tally(campaign.tokens)
        #expect(tally.isExact, "missing \(tally.missing), repeated \(tally.repeated)")
    }

    @Test func `SIGHUP with another key under the same ID keeps the key that APNs accepted`()
        throws
    {
        let server = try RecordingServer(
            "plain", ["--detail", (1...2000).map(String.init).joined(separator: ",")])
        let campaign = try Campaign(rows: 1200)
        let directory = campaign.directory
        let key = "\(directory.path)/key.p8"
        try FileManager.default.copyItem(atPath: campaign.authority.authKey, toPath: key)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--auth-key", key, "--rate", "100"]),
            in: directory, environment: FakeTime.inWindow(600))
        try sending.wait { try server.answerCount() > 30 }
        try Subprocess.run(
            "openssl",
            [
                "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                key + ".new",
            ], in: directory)
        #expect(rename(key + ".new", key) == 0)
        sending.send(signal: SIGHUP)
        try wait(sending, for: "the previous credential stays in use")
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let requests = try server.events().compactMap(\.fields)
        #expect(requests.count == 1200)
        #expect(Set(requests.map { $0.first { $0.name == ":path" }?.value }).count == 1200)
        let used = requests.compactMap { $0.first { $0.name == "authorization" }?.value }
        #expect(used.count == 1200 && Set(used).count == 1)
        #expect(sent.errors.contains("--auth-key gives another key now"), "\(sent.errors)")
        #expect(sent.errors.contains("the previous credential stays in use"), "\(sent.errors)")
        #expect(!sent.errors.contains("credentials were read again"), "\(sent.errors)")
    }

    @Test func `SIGHUP with the same key keeps the token`() throws {
        let server = try RecordingServer(
            "plain", ["--detail", (1...2000).map(String.init).joined(separator: ",")])
        let campaign = try Campaign(rows: 1200)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "100"]), in: campaign.directory,
            environment: FakeTime.inWindow(600))
        try sending.wait { try server.answerCount() > 30 }
        sending.send(signal: SIGHUP)
        try wait(sending, for: "credentials were read again")
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("credentials were read again"), "\(sent.errors)")
        #expect(!sent.errors.contains("systemd"), "\(sent.errors)")
        let used = try server.events().compactMap(\.fields)
            .compactMap { $0.first { $0.name == "authorization" }?.value }
        #expect(used.count == 1200 && Set(used).count == 1)
    }

    @Test func `SIGHUP with a key that systemd copied says that it did not change`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 12_000)
        let copy = "\(campaign.directory.path)/auth-key"
        try FileManager.default.copyItem(atPath: campaign.authority.authKey, toPath: copy)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--auth-key", copy, "--rate", "400"]),
            in: campaign.directory, environment: ["CREDENTIALS_DIRECTORY": campaign.directory.path])
        try campaign.waitForRows(sending)
        sending.send(signal: SIGHUP)
        try wait(sending, for: "restart the unit")
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(
            sent.errors.contains("warning: --auth-key is the copy that systemd made"),
            "\(sent.errors)")
        #expect(sent.errors.contains("restart the unit"), "\(sent.errors)")
        #expect(try server.finish().count == 12_000)
    }

    /// Starts a run with a provider token from a file, and waits until it sends.
    private func startWithTokenFile(
        _ campaign: Campaign, _ server: LocalAPNs
    ) throws -> (sending: Subprocess, file: String) {
        let file = try campaign.directory.write(
            try campaign.authority.providerToken(in: campaign.directory), to: "token")
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--auth-token-file", file, "--rate", "200"],
                without: ["auth-key", "key-id", "team-id"]), in: campaign.directory)
        try campaign.waitForRows(sending)
        return (sending, file)
    }

    @Test func `SIGHUP without the token's file keeps the token and says that the file is gone`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let (sending, file) = try startWithTokenFile(campaign, server)
        #expect(unlink(file) == 0)
        sending.send(signal: SIGHUP)
        try wait(sending, for: "stays in use")
        sending.send(signal: SIGTERM)
        let stopped = try sending.wait(limit: 120)
        #expect(
            stopped.errors.contains(
                "--auth-token-file \(file): No such file or directory: put the file back"),
            "\(stopped.errors)")
    }

    /// A run whose credential's file is a pipe, or becomes one: once SIGHUP or the watch has come upon it, a
    /// signal stops the run.
    private func meetPipe(_ campaign: Campaign, _ sending: Subprocess, hangsUp: Bool) throws {
        try campaign.waitForRows(sending)
        if hangsUp { sending.send(signal: SIGHUP) }
        try wait(sending, for: "is a pipe, which is read at the start only")
        sending.send(signal: SIGTERM)
        let stopped = try sending.wait(limit: 120)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(stopped.errors.contains("stays in use"), "\(stopped.errors)")
    }

    @Test func `SIGHUP does not wait for a key that came from a pipe`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let pipe = "\(campaign.directory.path)/key"
        #expect(mkfifo(pipe, 0o600) == 0)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--auth-key", pipe, "--rate", "200"]),
            in: campaign.directory)
        let writing = try #require(FileHandle(forWritingAtPath: pipe))
        try writing.write(contentsOf: Data(contentsOf: URL(filePath: campaign.authority.authKey)))
        try writing.close()
        try meetPipe(campaign, sending, hangsUp: true)
    }

    @Test func `SIGHUP does not wait for a token file that became a pipe`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let (sending, file) = try startWithTokenFile(campaign, server)
        #expect(mkfifo(file + ".new", 0o600) == 0 && rename(file + ".new", file) == 0)
        try meetPipe(campaign, sending, hangsUp: false)
    }
}
