import BroadsideTestSupport
import Foundation
import Testing

/// Provider tokens that a command prints.
@Suite(.timeLimit(.minutes(60)))
struct TokenCommandTests {
    private static let keyOptions: Set<String> = ["auth-key", "key-id", "team-id"]

    private static let rowCount = 400

    private let campaign: Campaign

    init() throws { campaign = try Campaign(rows: Self.rowCount) }

    /// A command that notes each call, and runs `first` at the first one and `then` at the others.
    private func command(first: String, then: String) -> String {
        let calls = "\(campaign.directory.path)/calls"
        return
            "echo >> '\(calls)'; if [ $(wc -l < '\(calls)') = 1 ]; then \(first); else \(then); fi"
    }

    private var calls: Int {
        let text = try? String(
            contentsOfFile: "\(campaign.directory.path)/calls", encoding: .utf8)
        return text?.count ?? 0
    }

    private func token(issuedAt offset: Int, team: String = Campaign.teamID) throws -> String {
        try campaign.authority.providerToken(
            issuedAt: Int(Date().timeIntervalSince1970) + offset, teamID: team,
            in: campaign.directory)
    }

    /// A command that prints a token: no argument holds it.
    private func cat(_ token: String) throws -> String {
        let name = "token-\(token.utf8.reduce(0) { ($0 * 31 + Int($1)) % 1_000_003 })"
        return "cat '\(try campaign.directory.write(token + "\n", to: name))'"
    }

    private func arguments(_ endpoint: String, _ command: String, _ more: [String] = [])
        -> [String]
    {
        campaign.arguments(
            to: endpoint, ["--auth-token-command", command] + more, without: Self.keyOptions)
    }

    private func used(_ server: RecordingServer) throws -> [String] {
        try server.events().compactMap(\.fields).compactMap { fields in
            fields.first { $0.name == "authorization" }?.value
        }
    }

    /// Sends the rows that are left at another rate.
    private func setRate(_ rate: Int) throws {
        let control = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "\(rate)"], in: campaign.directory)
        #expect(control.exitCode == 0, "\(control.errors)")
    }

    private func recordingServer() throws -> RecordingServer {
        try RecordingServer(
            "plain",
            ["--detail", (1...Self.rowCount + 100).map(String.init).joined(separator: ",")])
    }

    @Test
    func `A command is run once for a run that ends before its token is old`() throws {
        let server = try recordingServer()
        let fresh = try token(issuedAt: -60)
        let sent = try Broadside.run(
            arguments(
                server.endpoint,
                command(first: "echo '  '; \(try cat(fresh))", then: "echo; exit 1"),
                ["--rate", "100"]), in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(calls == 1)
        let found = try used(server)
        #expect(found.count == Self.rowCount && Set(found) == ["bearer \(fresh)"])
        #expect(!(sent.errors + sent.output).contains(fresh.suffix(20)))
    }

    @Test
    func
        `A token of 50 minutes is replaced while sending goes on, and the command is run once for it`()
        throws
    {
        let server = try recordingServer()
        let (old, fresh) = (try token(issuedAt: -2998), try token(issuedAt: -10))
        let awaited = "\(campaign.directory.path)/awaited"
        let sending = try Broadside.start(
            arguments(
                server.endpoint,
                command(
                    first: cat(old),
                    then: "until [ -e '\(awaited)' ]; do sleep 0.1; done; \(cat(fresh))"),
                ["--rate", "50"]), in: campaign.directory)
        try sending.wait { calls == 2 }
        let before = try server.answerCount()
        try sending.wait { try server.answerCount() >= before + 35 }
        try campaign.directory.write("", to: "awaited")
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(calls == 2, "the new token is young")
        let found = try used(server)
        #expect(found.count == Self.rowCount)
        let change = try #require(found.firstIndex(of: "bearer \(fresh)"))
        // While the command waited requests had the token before.
        #expect(change >= before + 25, "\(before) \(change)")
        #expect(found[..<change].allSatisfy { $0 == "bearer \(old)" })
    }

    @Test(arguments: [
        "echo 'no network' >&2; exit 7", "echo nonsense", "true", "OTHER",
    ])
    func `A command that fails later leaves the token in use`(_ failing: String) throws {
        let server = try recordingServer()
        let old = try token(issuedAt: -3000)
        let other = try token(issuedAt: -10, team: "ZZZ123GHIJ")
        let sending = try Broadside.start(
            arguments(
                server.endpoint,
                command(
                    first: cat(old), then: failing == "OTHER" ? cat(other) : failing),
                ["--rate", "20"]), in: campaign.directory)
        let words = "; the previous token stays in use"
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains(words)
        }
        try setRate(1_000)
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(
            sent.errors.contains("--auth-token-command ") && sent.errors.contains(words),
            "\(sent.errors)")
        #expect(calls == 2, "it is tried again after a minute")
        #expect(Set(try used(server)) == ["bearer \(old)"])
    }

    @Test
    func `A token that APNs calls expired is replaced by the command's next, and no row is lost`()
        throws
    {
        let server = try LocalAPNs(clock: "+1h")
        let (old, fresh) = (try token(issuedAt: -1800), try token(issuedAt: 3500))
        let sent = try Broadside.run(
            arguments(
                server.endpoint, command(first: cat(old), then: cat(fresh)),
                ["--summary", "-"]), in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(calls == 2)
        #expect(try SendSummary(json: sent.output).accepted == Self.rowCount)
    }

    @Test
    func `A command that keeps printing an expired token ends the run with what to do`() throws {
        let server = try LocalAPNs(clock: "+2h")
        let old = try token(issuedAt: -1800)
        let sent = try Broadside.run(
            arguments(server.endpoint, command(first: cat(old), then: cat(old))),
            in: campaign.directory)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(
            sent.errors.contains("the provider token of --auth-token-command or "), "\(sent.errors)"
        )
        #expect(calls == 4, "once at the start, and three tries")
    }

    @Test
    func `SIGHUP runs the command again, and a key's command as well`() throws {
        let server = try recordingServer()
        let (old, fresh) = (try token(issuedAt: -1500), try token(issuedAt: -10))
        let sending = try Broadside.start(
            arguments(
                server.endpoint, command(first: cat(old), then: cat(fresh)),
                ["--rate", "20"]), in: campaign.directory)
        try sending.wait { try server.answerCount() >= 10 }
        sending.send(signal: SIGHUP)
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8)
                .contains("credentials were read again")
        }
        try setRate(1_000)
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("credentials were read again"), "\(sent.errors)")
        #expect(calls == 2)
        #expect(try Set(used(server)) == ["bearer \(old)", "bearer \(fresh)"])
    }

    @Test(arguments: ["echo", "echo a.b.c", "echo 'bearer x.y.z'", "cat KEY"])
    func `What a command prints that is not a provider token is refused unseen`(_ command: String)
        throws
    {
        let key = campaign.authority.authKey
        let refused = try Broadside.run(
            arguments(
                "localhost:1", command.replacing("KEY", with: "'\(key)'"), ["--dry-run"]),
            in: campaign.directory)
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("--auth-token-command printed no"), "\(refused.errors)")
        let body = try String(contentsOfFile: key, encoding: .utf8).split(separator: "\n")[1]
        #expect(!refused.errors.contains(body.prefix(16)))
    }
}
