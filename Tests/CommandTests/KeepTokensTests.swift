import BroadsideTestSupport
import Foundation
import Testing

/// `send --keep-tokens no`: a ledger without anything of a token.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct KeepTokensTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let option = ["--keep-tokens", "no"]

    init() throws {
        server = try LocalAPNs(["--unregistered", "0.3", "--bad-token", "0.1", "--seed", "5"])
        campaign = try Campaign(rows: 300)
    }

    /// Searches all bytes of the ledger for the tokens, in all forms.
    private func judge(_ tokens: String) throws {
        let judged = try campaign.judgeAbsence(of: tokens)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(2_000))\(judged.errors)")
    }

    @Test func `The ledger has no token in any form, and a resume and exports work with the list`()
        throws
    {
        // Suppressed, malformed and rejected rows have tokens in other ledgers.
        let suppressed = try campaign.directory.write(
            campaign.tokens.token(7) + "\n", to: "suppress.txt")
        let list = try campaign.directory.write(
            String(decoding: campaign.tokens.list(), as: UTF8.self)
                + "\(campaign.tokens.token(8))a\n", to: "list.txt")
        let more = option + ["--suppress", suppressed, "--tokens", list]
        let first = try campaign.send(to: server.endpoint, more + ["--limit", "100"])
        #expect(first.exitCode == 0, "\(first.errors)")
        let second = try campaign.send(to: server.endpoint, more + ["--resume"])
        #expect(second.exitCode == 0, "\(second.errors)")
        try judge(campaign.list)
        #expect(try campaign.ledger("verify").exitCode == 0)
        let rows = try campaign.export()
        #expect(rows.count == 301)
        #expect(rows[..<300].enumerated().allSatisfy { $1.token == campaign.tokens.token($0) })
        #expect(Set(rows.map(\.state)) == ["accepted", "rejected", "skipped", "invalid"])
        for row in [0, 7, 299] {
            let found = try campaign.ledger("find", ["--token", campaign.tokens.token(row)])
            #expect(found.exitCode == 0 && found.output.contains("row \(row) "), "\(found.errors)")
        }
        func expectUnknown() throws {
            let finished = try campaign.ledger("find", ["--token", campaign.tokens.token(7)])
            #expect(finished.exitCode == 2 && finished.output.isEmpty, "\(finished)")
            #expect(finished.errorLines.count == 1, "\(finished.errors)")
            #expect(
                finished.errors.contains(
                    "\(campaign.ledger) keeps no tokens (--keep-tokens no): use --tokens to name "
                        + "the list that was sent"), "\(finished.errors)")
        }
        let original = try Data(contentsOf: URL(filePath: list))
        try Data(original.reversed()).write(to: URL(filePath: list))
        try expectUnknown()
        try FileManager.default.removeItem(atPath: list)
        try expectUnknown()
        let unnamed = try campaign.export()
        #expect(unnamed.allSatisfy { $0.token.isEmpty })
        // A row's number is all that an apns-id needs.
        let byID = try campaign.ledger("find", ["--apns-id", unnamed[7].identifier])
        #expect(byID.exitCode == 0 && byID.output.contains("row 7 skipped"), "\(byID)")
        let named = try campaign.directory.write(
            String(decoding: original, as: UTF8.self), to: "original.txt")
        let found = try campaign.ledger(
            "find", ["--token", campaign.tokens.token(7), "--tokens", named])
        #expect(found.exitCode == 0 && found.output.contains("row 7 skipped"), "\(found)")
        let missing = try campaign.ledger("find", ["--token", "abcd", "--tokens", named])
        #expect(missing.exitCode == 1, "\(missing)")
    }

    @Test func `A single device leaves neither its token nor a hash of it`() throws {
        let arguments = campaign.arguments(
            to: server.endpoint, option + ["--to", campaign.tokens.token(3)], without: ["tokens"])
        let finished = try Broadside.run(arguments, in: campaign.directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let one = try campaign.directory.write(campaign.tokens.token(3) + "\n", to: "one.txt")
        try judge(one)
        let again = try Broadside.run(arguments + ["--resume"], in: campaign.directory)
        #expect(again.exitCode == 0, "\(again.errors)")
        let manifest = try String(
            contentsOfFile: "\(campaign.ledger)/manifest.json", encoding: .utf8)
        #expect(!manifest.contains("listHash") && manifest.contains("keepTokens"))
    }

    @Test func `A repair writes no hash of a chunk that has one row`() throws {
        let one = try campaign.directory.write(campaign.tokens.token(3) + "\n", to: "one.txt")
        let sent = try campaign.send(
            to: server.endpoint, option + ["--tokens", one, "--reactors", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/segment-0001-00")
        let repaired = "\(campaign.ledger)-repaired"
        let done = try campaign.ledger("repair", ["--output", repaired])
        #expect(done.exitCode == 0, "\(done.errors)")
        // The only record after the clock is the reservation, which ends with the hash.
        let segment = try Data(contentsOf: URL(filePath: "\(repaired)/segment-0001-01"))
        #expect(segment.count == 104 && segment.suffix(8).allSatisfy { $0 == 0xFF })
    }

    @Test(arguments: ["100 later rows", "the ledger of a cap"])
    func `A resume notices a changed list, and skips the rows that the first start skipped`(
        change: String
    ) throws {
        let history = "\(campaign.directory.path)/history"
        let half = try campaign.directory.write(
            (150..<300).map { campaign.tokens.token($0) + "\n" }.joined(), to: "half.txt")
        let accepting = try LocalAPNs()
        let earlier = try campaign.send(
            to: accepting.endpoint, ["--tokens", half, "--ledger", history])
        #expect(earlier.exitCode == 0, "\(earlier.errors)")
        let more = option + ["--cap", "1/7d", "--history", history]
        let first = try campaign.send(to: accepting.endpoint, more + ["--limit", "100"])
        #expect(first.exitCode == 0, "\(first.errors)")
        if change == "100 later rows" {
            let rows = (0..<300).map { campaign.tokens.token($0 < 200 ? $0 : 499 - $0) + "\n" }
            try rows.joined().write(toFile: campaign.list, atomically: true, encoding: .utf8)
            let refused = try campaign.send(to: accepting.endpoint, more + ["--resume"])
            #expect(
                refused.exitCode == 2 && refused.errors.contains("the list's content differs"),
                "\(refused.errors)")
            return
        }
        // The accepted rows are gone from the folder of earlier ledgers.
        try FileManager.default.removeItem(atPath: history)
        let empty = try Broadside.run(
            campaign.arguments(
                to: accepting.endpoint, ["--ledger", history, "--to", campaign.tokens.token(0)],
                without: ["tokens"]), in: campaign.directory)
        #expect(empty.exitCode == 0, "\(empty.errors)")
        let second = try campaign.send(to: accepting.endpoint, more + ["--resume"])
        #expect(second.exitCode == 0, "\(second.errors)")
        let rows = try campaign.export()
        #expect(rows[..<150].allSatisfy { $0.state == "accepted" })
        #expect(rows[150...].allSatisfy { $0.state == "skipped" })
    }

    @Test
    func `prune, --skip-dead and --history refuse such a ledger, and a resume needs the option`()
        throws
    {
        #expect(try campaign.send(to: server.endpoint, option).exitCode == 0)
        let prune = try Broadside.run(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", campaign.list, "--output",
                "\(campaign.directory.path)/out",
            ], in: campaign.directory)
        #expect(prune.exitCode == 2 && prune.errors.contains("keeps no tokens"), "\(prune.errors)")
        for (words, name) in [
            (["--skip-dead", campaign.ledger], "--skip-dead"),
            (["--cap", "1/30d", "--history", campaign.ledger], "--history"),
        ] {
            let next = try campaign.send(
                to: server.endpoint, words + ["--ledger", "\(campaign.directory.path)/next"])
            #expect(
                next.exitCode == 2 && next.errors.contains("keeps no tokens")
                    && next.errors.contains(name), "\(next.errors)")
        }
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 2, "\(resumed.errors)")
        #expect(resumed.errors.contains("--keep-tokens was no, now it is yes"), "\(resumed.errors)")
    }

    @Test func `Receipts are joined with a ledger without tokens by apns-ids, but not by tokens`()
        throws
    {
        #expect(try campaign.send(to: server.endpoint, option).exitCode == 0)
        let rows = try campaign.export().filter { $0.state == "accepted" }
        let lines = rows.map { "\($0.identifier),\($0.token),\($0.settledAt)\n" }
        let receipts = try campaign.directory.write(
            "apns_id,token,time\n" + lines.joined(), to: "receipts.csv")
        func report(_ more: [String] = []) throws -> Finished {
            try Broadside.run(
                ["report", "--ledger", campaign.ledger, "--receipts", receipts, "--json"] + more,
                in: campaign.directory)
        }
        let joined = try report()
        #expect(joined.exitCode == 0, "\(joined.errors)")
        #expect(
            joined.output.contains("\"devices\":\(rows.count),\"opened\":\(rows.count),"),
            "\(joined.output)")
        let refused = try report(["--token-column", "token"])
        #expect(refused.exitCode == 2 && refused.output.isEmpty, "\(refused.output)")
        #expect(
            refused.errors.contains("no tokens (--keep-tokens no): name a column of apns-ids"),
            "\(refused.errors)")
    }

    @Test
    func `Standard input and a condition on the token are refused, and the plan names the rule`()
        throws
    {
        let piped = try Broadside.run(
            campaign.arguments(to: server.endpoint, option + ["--tokens", "-"]),
            in: campaign.directory, input: campaign.list)
        #expect(piped.exitCode == 2 && piped.errors.contains("--keep-tokens no"), "\(piped.errors)")
        let token = campaign.tokens.token(1)
        let list = try campaign.directory.write(
            "token,previous\n\(token),\(token)\n", to: "list.csv")
        for condition in ["token = \(token)", "previous != x,\(token.uppercased())"] {
            let filtered = try campaign.send(
                to: server.endpoint, option + ["--tokens", list, "--where", condition])
            #expect(filtered.exitCode == 2, "\(condition): \(filtered.errors)")
            #expect(filtered.errors.contains("--where"), "\(condition): \(filtered.errors)")
        }
        let other = try campaign.send(
            to: server.endpoint,
            option + ["--tokens", list, "--where", "previous != 1234", "--dry-run"])
        #expect(other.exitCode == 0, "\(other.errors)")
        let plan = try campaign.send(to: server.endpoint, option + ["--dry-run"])
        #expect(
            plan.exitCode == 0
                && (plan.output + plan.errors).contains("tokens       not kept in the ledger"),
            "\(plan.output)\(plan.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }
}
