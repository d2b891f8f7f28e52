import BroadsideTestSupport
import Foundation
import Testing

/// Opt-outs and later copies of a token: never sent, whatever happens to the run.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SkippedRowsTests {
    @Test
    func `A list that suppresses everybody is reported, and the campaign's own list is refused`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 300)
        let link = campaign.directory.path + "/link.txt"
        #expect(symlink(campaign.list, link) == 0)
        for (tokens, input) in [(campaign.list, nil), (link, nil), ("-", campaign.list)] {
            let refused = try Broadside.run(
                campaign.arguments(
                    to: server.endpoint, ["--tokens", tokens, "--suppress", campaign.list]),
                in: campaign.directory, input: input)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(refused.errors.contains("--suppress"), "\(refused.errors)")
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
        let copy = try campaign.directory.write(campaign.tokens.list() + [], to: "copy.txt")
        for more in [[], ["--resume"]] {
            let sent = try campaign.send(
                to: server.endpoint, ["--suppress", copy, "--summary", "-"] + more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            #expect(sent.errors.contains("warning: no row was left to send"), "\(sent.errors)")
            #expect(sent.errors.contains("300 Suppressed"), "\(sent.errors)")
            #expect(try SendSummary(json: sent.output).skipped == 300)
        }
        // Where somebody got it, nothing is said.
        let most = try campaign.directory.write(
            Array(campaign.tokens.list().dropLast(65)), to: "most.txt")
        let sent = try campaign.send(
            to: server.endpoint, ["--suppress", most, "--ledger", campaign.ledger + "2"])
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        #expect(try server.finish().count == 1)
    }

    /// A list of the campaign's tokens with copies and broken rows, and what each row must become.
    private struct Night {
        let campaign: Campaign
        let list: String
        let optOuts: String
        let reasons: [String]

        init(rows: Int) throws {
            campaign = try Campaign(rows: rows)
            let tokens = campaign.tokens
            let optedOut = Set(stride(from: 5, to: rows, by: 9))
            var seen: Set<Int> = []
            var text = ""
            var reasons: [String] = []
            func add(_ row: Int, isCapital: Bool) {
                text += (isCapital ? tokens.token(row).uppercased() : tokens.token(row)) + "\n"
                let isCopy = !seen.insert(row).inserted
                reasons.append(optedOut.contains(row) ? "Suppressed" : isCopy ? "Duplicate" : "")
            }
            for row in 0..<rows {
                add(row, isCapital: false)
                if row % 4 == 3 { add(.random(in: 0...row), isCapital: true) }
                if row % 50 == 0 {
                    text += "none\n"
                    reasons.append("MalformedToken")
                }
            }
            self.reasons = reasons
            list = try campaign.directory.write(text, to: "night.txt")
            // Some that are in no list, some twice, in another format, packed.
            let others = DeviceTokens(count: 500)
            let lines = optedOut.map { "mail,\(tokens.token($0).uppercased())\n" }
            let csv =
                "why,token\n" + (lines + lines[..<20]).joined()
                + (0..<500).map { "mail,\(others.token($0))\n" }.joined()
            optOuts = try Packing.zstd.write(Array(csv.utf8), to: "out.csv", in: campaign.directory)
        }

        func arguments(_ server: any LoggingServer, _ more: [String]) -> [String] {
            campaign.arguments(
                to: server.endpoint,
                [
                    "--tokens", list, "--suppress", optOuts, "--duplicates", "skip", "--summary",
                    "-",
                ] + more)
        }

        /// The export names each row as it has to be, and the server got each other token once.
        func judge(_ server: any LoggingServer) throws {
            let rows = try campaign.export()
            #expect(rows.map(\.reason) == reasons)
            for row in rows {
                let state =
                    ["": "accepted", "MalformedToken": "invalid"][row.reason] ?? "skipped"
                #expect(row.state == state && (state == "accepted") == (row.status == 200))
                if state == "skipped" { #expect(row.attempts == 0 && row.token.count == 64) }
            }
            let tally = try server.tally(campaign.tokens)
            let skipped = Set(stride(from: 5, to: tally.counts.count, by: 9))
            #expect(
                tally.counts == tally.counts.indices.map { skipped.contains($0) ? 0 : 1 })
            #expect(tally.strangers == 0)
            #expect(try campaign.ledger("verify").output.contains("finished"))
        }
    }

    @Test func `Suppressed rows and duplicates end as skipped over several runs`() throws {
        let server = try Nghttpd()
        let night = try Night(rows: 3_000)
        for more in [["--limit", "1000"], ["--limit", "2500", "--resume"], ["--resume"]] {
            let sent = try Broadside.run(
                night.arguments(server, more), in: night.campaign.directory)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let summary = try SendSummary(json: sent.output)
            let own = night.reasons[
                ..<(more.contains("--limit") ? Int(more[1])! : night.reasons.count)]
            #expect(summary.rows == own.count && summary.remaining == 0)
            #expect(summary.skipped == own.count { $0 == "Suppressed" || $0 == "Duplicate" })
            for reason in ["Suppressed", "Duplicate", "MalformedToken"] {
                #expect(summary.reasons[reason] == own.count { $0 == reason })
            }
        }
        try night.judge(server)
    }

    @Test func `A signal and a kill leave no skipped row in doubt`() throws {
        let server = try Nghttpd()
        let night = try Night(rows: 3_000)
        for (run, signal) in [(0, SIGTERM), (1, SIGKILL)] {
            let before = server.logCount
            let process = try Broadside.start(
                night.arguments(
                    server, ["--rate", "200", "--resume-or-begin", "--on-lost", "resend"]),
                in: night.campaign.directory)
            try process.wait { server.logCount > before + 300_000 }
            process.send(signal: signal)
            let ended = try process.wait()
            #expect(ended.exitCode == (run == 0 ? 3 : -SIGKILL), "\(ended.errors)")
            server.settle()
            if run == 0 {
                let doubtful = try night.campaign.ledger("export", ["--state", "in-doubt"])
                #expect(doubtful.output.split(separator: "\n").count == 1)
            }
        }
        let sent = try Broadside.run(
            night.arguments(server, ["--resume"]), in: night.campaign.directory)
        // Rows that were under way when it was killed are unknown; skipped ones never are.
        let unknown = try SendSummary(json: sent.output).unknown
        #expect(sent.exitCode == (unknown == 0 ? 0 : 6), "\(sent.errors)")
        let rows = try night.campaign.export()
        for (row, reason) in zip(rows, night.reasons) {
            if row.state == "unknown" {
                #expect(reason == "" && row.reason == "ConnectionLost")
            } else {
                #expect(row.reason == reason)
            }
        }
        #expect(rows.count == night.reasons.count)
        let tally = try server.tally(night.campaign.tokens)
        #expect(tally.repeated == 0 && tally.strangers == 0)
        for row in stride(from: 5, to: 3_000, by: 9) { #expect(tally.counts[row] == 0) }
    }

    @Test
    func `A dry run counts skipped rows, and another suppression list is another campaign`() throws
    {
        let server = try Nghttpd()
        let night = try Night(rows: 400)
        let directory = night.campaign.directory
        let dry = try Broadside.run(night.arguments(server, ["--dry-run"]), in: directory)
        let suppressed = night.reasons.count { $0 == "Suppressed" }
        let duplicates = night.reasons.count { $0 == "Duplicate" }
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect(
            dry.output.contains(
                "skipped      \(suppressed + duplicates): Suppressed \(suppressed), "
                    + "Duplicate \(duplicates)\n"), "\(dry.output)")
        #expect(dry.output.contains("to send      \(night.reasons.count { $0 == "" })\n"))
        #expect(access(night.campaign.ledger, F_OK) != 0)

        let first = try Broadside.run(night.arguments(server, ["--limit", "50"]), in: directory)
        #expect(first.exitCode == 0, "\(first.errors)")
        let other = try directory.write("aabb\nzz\n", to: "other")
        for (more, says) in [
            (["--suppress", other], "suppression list"), (["--duplicates", "send"], "duplicates"),
        ] {
            let arguments = night.arguments(server, ["--resume"])
            let place = try #require(arguments.firstIndex(of: more[0]))
            let refused = try Broadside.run(
                Array(arguments[..<place]) + more + arguments[(place + 2)...], in: directory)
            #expect(refused.exitCode == 2 && refused.errors.contains(says), "\(refused.errors)")
        }
    }
}
