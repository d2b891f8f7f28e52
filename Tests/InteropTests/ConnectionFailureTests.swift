import BroadsideTestSupport
import Foundation
import Testing

/// Servers that can't be talked to: one clear line, the documented exit code, nothing sent, soon.
@Suite(.timeLimit(.minutes(60)))
struct ConnectionFailureTests {
    /// A guard against hanging, no measure of speed.
    static let hangGuard = 90.0

    /// Sends ten rows to a place where that can't work.
    @discardableResult
    func expectFailure(
        _ endpoint: String, caFile: String? = nil, _ more: [String] = [], words: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Campaign {
        let campaign = try Campaign(rows: 10)
        let sent = try campaign.send(
            to: endpoint,
            ["--ca-file", caFile ?? campaign.authority.caFile, "--summary", "-"] + more, limit: 120)
        #expect(sent.exitCode == 1, "\(sent.errors)", sourceLocation: sourceLocation)
        #expect(sent.seconds < Self.hangGuard, sourceLocation: sourceLocation)
        #expect(sent.errorLines.count == 1, "\(sent.errors)", sourceLocation: sourceLocation)
        let line = sent.errorLines.first ?? ""
        #expect(line.hasPrefix("broadside: "), sourceLocation: sourceLocation)
        for word in words {
            #expect(
                line.lowercased().contains(word.lowercased()), "\(line)",
                sourceLocation: sourceLocation)
        }
        let summary = try SendSummary(json: sent.output)
        #expect(summary.outcome == "error", sourceLocation: sourceLocation)
        #expect(
            summary.remaining == 10 && summary.rows == 10 && summary.unknown == 0,
            sourceLocation: sourceLocation)
        return campaign
    }

    @Test func `A server certificate for another name fails the run`() throws {
        let server = try RecordingServer(identity: TestAuthority.shared().otherName)
        try expectFailure(server.endpoint, words: ["localhost", "name"])
        try expectFailure("127.0.0.1:\(server.port)", words: ["127.0.0.1"])
        #expect(try server.answers().isEmpty)
        let good = try RecordingServer()
        let campaign = try Campaign(rows: 1)
        #expect(try campaign.send(to: "127.0.0.1:\(good.port)").exitCode == 0)
    }

    @Test func `A server certificate of an unknown authority fails the run`() throws {
        let server = try RecordingServer()
        let other = try TestAuthority.shared().otherCAFile
        try expectFailure(server.endpoint, caFile: other, words: ["certificate"])
        #expect(try server.answers().isEmpty)
    }

    @Test func `A server certificate of a private authority fails without --ca-file`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 10)
        let sent = try Broadside.run(
            campaign.arguments(to: server.endpoint, without: ["ca-file"]), in: campaign.directory)
        #expect(sent.exitCode == 1)
        #expect(sent.errorLines.count == 1 && sent.errors.contains("certificate"), "\(sent.errors)")
        #expect(try server.answers().isEmpty)
    }

    @Test func `An expired server certificate fails the run`() throws {
        let server = try RecordingServer(identity: TestAuthority.shared().expired)
        try expectFailure(server.endpoint, words: ["expired"])
        #expect(try server.answers().isEmpty)
    }

    @Test func `A server that speaks no TLS fails the run`() throws {
        let server = try RecordingServer("plain", ["--answer", "text"])
        try expectFailure(server.endpoint, words: ["TLS"])
        #expect(try server.answers().isEmpty)
    }

    @Test func `A server that speaks HTTP/1.1 only fails the run`() throws {
        let server = try RecordingServer("plain", ["--protocol", "http/1.1"])
        try expectFailure(server.endpoint, words: ["h2"])
        #expect(try server.answers().isEmpty)
    }

    @Test func `A server that selects no protocol fails the run`() throws {
        let server = try RecordingServer("plain", ["--protocol", "none"])
        try expectFailure(server.endpoint, words: ["h2"])
        #expect(try server.answers().isEmpty)
    }

    @Test func `A port without listener fails the run`() throws {
        let port = try Ports.free()
        try expectFailure("127.0.0.1:\(port)", words: ["127.0.0.1:\(port)", "refused"])
        try expectFailure("localhost:\(port)", words: ["localhost:\(port)", "refused"])
    }

    @Test func `An unknown host name fails the run`() throws {
        // RFC 6761, section 6.4: names under .invalid never exist. A label of more than 63 bytes
        // can't (RFC 1035, section 2.3.4), so that no name server is asked, which may be slow.
        let name = String(repeating: "x", count: 64) + ".invalid"
        try expectFailure("\(name):2197", words: [name])
    }

    @Test
    func `A server that accepts and sends nothing fails the run after --give-up-after`() throws {
        let server = try RecordingServer("plain", ["--answer", "silence"])
        try expectFailure(server.endpoint, ["--give-up-after", "2s"], words: ["2 s"])
        // A ClientHello is all it got.
        let bytes = try server.events().filter { $0.event == "bytes" }
        #expect(bytes.count <= 12)
    }

    @Test
    func `A run that reached no server leaves no ledger, so the corrected command works`() throws {
        let port = try Ports.free()
        let campaign = try expectFailure("127.0.0.1:\(port)", words: ["refused"])
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let server = try RecordingServer()
        let sent = try campaign.send(to: server.endpoint)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A resume that reaches no server keeps the ledger of the runs before it`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 400)
        let first = try campaign.send(
            to: server.endpoint, ["--rate", "200", "--deadline", "500ms"])
        #expect(first.exitCode == 3, "\(first.errors)")
        let before = try campaign.statistics()
        let failed = try campaign.send(
            to: "127.0.0.1:\(try Ports.free())", ["--resume", "--give-up-after", "2s"])
        #expect(failed.exitCode == 1, "\(failed.errors)")
        #expect(try campaign.statistics().accepted == before.accepted)
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test(arguments: ["a list from standard input", "--resume-or-begin", "a part"])
    func `A ledger that others continue from is kept although no server was reached`(_ kind: String)
        throws
    {
        let campaign = try Campaign(rows: 50)
        var more: [String] = []
        switch kind {
        case "a part": more = ["--part", "1/2", "--campaign-id", "0123456789abcdef"]
        case "--resume-or-begin": more = ["--resume-or-begin"]
        default: more = ["--tokens", "-"]
        }
        let sent = try Broadside.run(
            campaign.arguments(
                to: "127.0.0.1:\(try Ports.free())", more + ["--give-up-after", "2s"]),
            in: campaign.directory, input: campaign.list)
        #expect(sent.exitCode == 1, "\(sent.errors)")
        let server = try RecordingServer()
        more.removeAll { $0 == "--resume-or-begin" }
        let resumed = try Broadside.run(
            campaign.arguments(to: server.endpoint, more + ["--resume"]), in: campaign.directory)
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }
}
