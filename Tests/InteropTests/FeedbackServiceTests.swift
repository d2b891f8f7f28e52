import BroadsideTestSupport
import Foundation
import Testing

/// `feedback` against a service that was written from the document's table.
@Suite(.timeLimit(.minutes(60)))
struct FeedbackServiceTests {
    /// Reads a service that sends these bytes.
    private func read(
        _ bytes: [UInt8], _ campaign: Campaign, _ more: [String] = []
    ) throws -> Finished {
        let directory = campaign.directory
        let client = try campaign.authority.clientCertificate(in: directory)
        let identity = campaign.authority.localhost
        let list = try directory.write(bytes, to: "feedback")
        let server = try PythonServer(
            "gateway.py",
            [
                "--certificate", identity.certificate, "--key", identity.key, "--record",
                "\(directory.path)/record", "--feedback", list, "--client-ca",
                campaign.authority.caFile,
            ] + more, in: directory)
        return try Broadside.run(
            [
                "feedback", "--endpoint", "localhost:\(server.port)", "--ca-file",
                campaign.authority.caFile, "--certificate", client.certificate, "--private-key",
                client.key, "--ledger", campaign.ledger,
            ], in: directory)
    }

    private func tuple(_ token: String, at seconds: UInt32) -> [UInt8] {
        var bytes = withUnsafeBytes(of: seconds.bigEndian, Array.init)
        bytes += [0, UInt8(token.utf8.count / 2)]
        for place in stride(from: 0, to: token.utf8.count, by: 2) {
            bytes.append(UInt8(token.dropFirst(place).prefix(2), radix: 16)!)
        }
        return bytes
    }

    @Test func `feedback records each tuple with its time, and prune removes by it`() throws {
        let campaign = try Campaign(rows: 5000)
        let dead = (0..<1000).map { campaign.tokens.token($0 * 5) }
        let bytes = dead.enumerated().flatMap { tuple($1, at: 1_700_000_000 + UInt32($0)) }
        let finished = try read(bytes, campaign)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        let rows = try campaign.export(["--state", "rejected"])
        #expect(rows.map(\.token) == dead)
        #expect(rows.allSatisfy { $0.status == 410 && $0.reason == "Unregistered" })
        #expect(rows.map(\.timestamp) == (0..<1000).map { "\(1_700_000_000_000 + $0 * 1000)" })

        // One device came back, and its app has told so since.
        let now = Int(Date().timeIntervalSince1970)
        var csv = "token,registered\n"
        for row in 0..<5000 {
            csv += "\(campaign.tokens.token(row)),\(row == 10 ? now : 1_600_000_000)\n"
        }
        let list = try campaign.directory.write(csv, to: "list.csv")
        let output = "\(campaign.directory.path)/clean.csv"
        let pruned = try Broadside.run(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", list, "--output", output,
                "--registered-column", "registered",
            ], in: campaign.directory)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        let kept = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        #expect(kept.count == 1 + 4000 + 1)
        #expect(kept.contains { $0.hasPrefix(campaign.tokens.token(10)) })
    }

    @Test func `feedback of a torn tuple is exit 1 and keeps the tuples before it`() throws {
        let campaign = try Campaign(rows: 3)
        let bytes = (0..<3).flatMap { tuple(campaign.tokens.token($0), at: 1_700_000_000) }
        let finished = try read(bytes.dropLast(7), campaign)
        #expect(finished.exitCode == 1)
        #expect(finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.contains("31 bytes"), "\(finished.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        #expect(
            try campaign.export(["--state", "rejected"]).map(\.token)
                == (0..<2).map { campaign.tokens.token($0) })
    }

    /// Such an end may be the service's own, or a cut connection.
    @Test(arguments: [0, 2])
    func `feedback keeps a list that ends without close_notify, and warns`(count: Int) throws {
        let campaign = try Campaign(rows: 3)
        let tokens = (0..<count).map { campaign.tokens.token($0) }
        let finished = try read(
            tokens.flatMap { tuple($0, at: 1_700_000_000) }, campaign, ["--cut"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.contains("without a TLS close_notify"), "\(finished.errors)")
        #expect(
            finished.errors.contains(
                count == 0 ? "may refuse the certificate" : "may be incomplete: read it again"),
            "\(finished.errors)")
        #expect(try campaign.export(["--state", "rejected"]).map(\.token) == tokens)
    }

    @Test func `feedback with a refused certificate gives advice about it only`() throws {
        let campaign = try Campaign(rows: 1)
        // The authority of another certificate.
        let other = campaign.authority.localhost.certificate
        let finished = try read([], campaign, ["--client-ca", other])
        #expect(finished.exitCode == 1 && finished.errorLines.count == 1, "\(finished.errors)")
        #expect(
            finished.errors.contains("does not accept the client certificate"),
            "\(finished.errors)")
        #expect(!finished.errors.contains("--endpoint"), "\(finished.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }

    @Test func `feedback accepts an empty list and refuses a service of another kind`() throws {
        let empty = try Campaign(rows: 1)
        #expect(try read([], empty).exitCode == 0)
        #expect(try empty.export(["--state", "rejected"]).isEmpty)

        let other = try Campaign(rows: 1)
        let finished = try read(Array("HTTP/1.1 400 Bad Request\r\n".utf8), other)
        #expect(finished.exitCode == 1)
        #expect(finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.contains("is this a feedback service? check --endpoint"))
        #expect(!finished.errors.contains("prune"), "\(finished.errors)")
        #expect(!FileManager.default.fileExists(atPath: other.ledger))
    }
}
