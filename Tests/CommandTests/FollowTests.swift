import BroadsideTestSupport
import Foundation
import Testing

/// `ledger export --follow`: rows as they settle, each once, whatever ends a follower.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct FollowTests {
    private func follow(_ campaign: Campaign, _ more: [String]) throws -> Finished {
        try campaign.ledger("export", ["--follow"] + more)
    }

    private func follower(_ campaign: Campaign, _ more: [String]) throws -> Subprocess {
        try Broadside.start(
            ["ledger", "export", "--follow", "--ledger", campaign.ledger] + more,
            in: campaign.directory)
    }

    /// Lets a slow run send the rest soon.
    private func hurry(_ campaign: Campaign) throws {
        let told = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "1000"], in: campaign.directory)
        #expect(told.exitCode == 0, "\(told.errors)")
    }

    /// The output and the cursor of a campaign.
    private func files(_ campaign: Campaign) -> (output: String, more: [String]) {
        let (output, cursor) = (
            "\(campaign.directory.path)/rows.csv", "\(campaign.directory.path)/cursor"
        )
        return (output, ["--output", output, "--cursor", cursor])
    }

    /// Holds the output against segments and list, by code that is not ours.
    private func judge(_ campaign: Campaign, _ output: String) throws {
        let script = Tool.packageRoot + "/Tests/Reference/settled_rows.py"
        let judged = try Subprocess.run(
            "python3", [script, campaign.ledger, campaign.list, output], in: campaign.directory)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(1_000))\(judged.errors)")
    }

    @Test(arguments: ["plain", "gzip"])
    func `Followers and senders that are killed at any instant write each row once`(
        form: String
    ) throws {
        let server = try LocalAPNs(["--unregistered", "0.1", "--seed", "3"])
        let campaign = try Campaign(rows: 6_000)
        let list =
            form == "plain"
            ? campaign.list
            : try Packing.gzip.write(
                campaign.tokens.list(), to: "list.gz", in: campaign.directory)
        let options = [
            "--tokens", list, "--reactors", "2", "--connections", "4", "--resume-or-begin",
        ]
        let (output, more) = files(campaign)
        var random = SeededRandom(seed: form == "plain" ? 1 : 2)
        var kills = 0
        for run in 0..<4 {
            // All rows would take 15 seconds; the last run sends the rest soon.
            let rate = ["--rate", run < 3 ? "400" : "4000"]
            let sending = try Broadside.start(
                campaign.arguments(to: server.endpoint, options + rate), in: campaign.directory)
            try sending.wait {
                FileManager.default.fileExists(atPath: campaign.ledger + "/manifest.json")
            }
            let end = Date(timeIntervalSinceNow: 0.9)
            while sending.isRunning, run == 3 || Date() < end || kills < 2 * (run + 1) {
                let following = try follower(campaign, more)
                usleep(.random(in: 10_000...400_000, using: &random))
                if following.isRunning { kills += 1 }
                following.send(signal: SIGKILL)
                _ = try following.wait()
            }
            if run < 3 { sending.send(signal: SIGKILL) }
            let ended = try sending.wait()
            #expect([0, 6, -SIGKILL].contains(ended.exitCode), "\(ended.errors)")
        }
        #expect(kills > 5)
        let last = try follow(campaign, more)
        #expect(last.exitCode == 0 && last.output.isEmpty && last.errors.isEmpty, "\(last.errors)")
        try judge(campaign, output)
        let rows = try ExportedRow.read(String(contentsOfFile: output, encoding: .utf8))
        #expect(rows.count == 6_000 && Set(rows.map(\.token)).count == 6_000)
    }

    @Test func `A row is written while its run goes on, and the follower ends with the run`() throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 300)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "5"]), in: campaign.directory)
        try sending.wait {
            FileManager.default.fileExists(atPath: campaign.ledger + "/manifest.json")
        }
        let following = try follower(campaign, [])
        var isEarly = false
        try following.wait {
            let text = try String(contentsOfFile: following.outputPath, encoding: .utf8)
            isEarly = text.split(separator: "\n").count > 1 && sending.isRunning
            return isEarly || !sending.isRunning
        }
        #expect(isEarly)
        try hurry(campaign)
        #expect(try sending.wait().exitCode == 0)
        let followed = try following.wait()
        #expect(followed.exitCode == 0 && followed.errors.isEmpty, "\(followed.errors)")
        let output = try campaign.directory.write(followed.output, to: "rows.csv")
        try judge(campaign, output)
    }

    @Test func `A follower of a ledger with a damaged block ends with exit code 5`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 30_000)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "1000", "--reactors", "1"]),
            in: campaign.directory)
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 >= 200 }
        sending.send(signal: SIGKILL)
        _ = try sending.wait()
        // Elsewhere, no claim knows how many bytes of the segment were on disk.
        let folder = "\(campaign.directory.path)/elsewhere"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let ledger = "\(folder)/ledger"
        try FileManager.default.moveItem(atPath: campaign.ledger, toPath: ledger)
        let segment = URL(filePath: "\(ledger)/segment-0001-00")
        var bytes = try Data(contentsOf: segment)
        bytes[40] ^= 1
        try bytes.write(to: segment)
        let followed = try Broadside.run(
            ["ledger", "export", "--follow", "--ledger", ledger], in: campaign.directory)
        #expect(followed.exitCode == 5 && followed.output.isEmpty, "\(followed.errors)")
        #expect(
            followed.errors.contains("segment-0001-00 at byte 32: a block is damaged")
                && followed.errors.contains("broadside ledger repair --ledger \(ledger)"),
            "\(followed.errors)")
    }

    @Test func `A resume's rows follow those of the run before in the same file`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 900)
        let (output, more) = files(campaign)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "20"]), in: campaign.directory)
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        sending.send(signal: SIGTERM)
        let stopped = try sending.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let first = try follow(campaign, more)
        #expect(first.exitCode == 0)
        #expect(first.errors.contains("rows remain") && first.errors.contains("same --cursor"))
        let count = try String(contentsOfFile: output, encoding: .utf8).count
        #expect(count > 0)
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        for _ in 0..<2 { #expect(try follow(campaign, more).exitCode == 0) }
        #expect(try String(contentsOfFile: output, encoding: .utf8).count > count)
        try judge(campaign, output)
    }

    @Test(arguments: [
        [], ["--format", "jsonl"], ["--state", "rejected"], ["--reason", "Unregistered"],
        ["--state", "accepted", "--state", "invalid", "--format", "jsonl"],
    ])
    func `Followed rows of a finished ledger are those of an export, in another order`(
        more: [String]
    ) throws {
        let server = try LocalAPNs(["--unregistered", "0.2", "--bad-token", "0.1"])
        let campaign = try Campaign(rows: 400)
        let list = String(decoding: campaign.tokens.list(), as: UTF8.self) + "not a token\n"
        let file = try campaign.directory.write(list, to: "list.txt")
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", file, "--abort-after", "1000", "--reactors", "2"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        func lines(_ finished: Finished) -> [Substring] {
            #expect(finished.exitCode == 0, "\(finished.errors)")
            return finished.output.split(separator: "\n")
        }
        let (followed, exported) = (
            lines(try follow(campaign, more)), lines(try campaign.ledger("export", more))
        )
        #expect(followed.first == exported.first || more.contains("jsonl"))
        #expect(followed.sorted() == exported.sorted() && exported.count > 20)
    }

    @Test func `A follower refuses what does not belong to its ledger, in one line`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 40)
        let other = try Campaign(rows: 40)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        #expect(try other.send(to: server.endpoint).exitCode == 0)
        let (output, more) = files(campaign)
        #expect(try follow(campaign, more).exitCode == 0)
        let cursor = more[3]
        let whole = try Data(contentsOf: URL(filePath: output))
        let foreign = try campaign.directory.write("my own rows\n", to: "foreign.csv")
        let text = try campaign.directory.write("{}", to: "text")
        func expect(_ arguments: [String], _ says: String, of campaign: Campaign) throws {
            let refused = try campaign.ledger("export", arguments)
            #expect(refused.exitCode == 2 && refused.output.isEmpty, "\(arguments)")
            #expect(refused.errorLines.count == 1 && refused.errors.contains(says), "\(refused)")
        }
        let isFollowed = ["--follow", "--output", output, "--cursor"]
        try expect(isFollowed + [cursor], "another ledger", of: other)
        try expect(isFollowed + [cursor, "--format", "jsonl"], "--format csv", of: campaign)
        try expect(isFollowed + [cursor, "--state", "failed"], "neither --state", of: campaign)
        try expect(isFollowed + [text], "not a cursor", of: campaign)
        try expect(isFollowed + [output], "name the same file", of: campaign)
        try expect(isFollowed + ["\(cursor)-2"], "not empty", of: campaign)
        try expect(["--follow", "--cursor", cursor], "belongs to an output file", of: campaign)
        try expect(
            ["--follow", "--output", foreign, "--cursor", cursor], "shorter than", of: campaign)
        try expect(["--follow", "--output", "x.csv.gz"], "not compressed", of: campaign)
        let place = "\(campaign.directory.path)/nowhere/cursor"
        try expect(
            ["--follow", "--output", "x.csv", "--cursor", place],
            "--cursor \(place): No such file or directory: name a place to write to", of: campaign)
        #expect(
            !FileManager.default.fileExists(atPath: "\(campaign.directory.path)/x.csv"))
        try expect(["--follow", "--state", "remaining"], "settled", of: campaign)
        try expect(["--cursor", cursor], "--follow", of: campaign)
        #expect(try Data(contentsOf: URL(filePath: output)) == whole)
        #expect(try String(contentsOfFile: foreign, encoding: .utf8) == "my own rows\n")
        // As long as the cursor says, and another file.
        try Data(repeating: 0x61, count: whole.count + 10).write(to: URL(filePath: foreign))
        try expect(
            ["--follow", "--output", foreign, "--cursor", cursor], "not the file", of: campaign)
        let missing = try Broadside.run(
            ["ledger", "export", "--follow", "--ledger", "nowhere"], in: campaign.directory)
        #expect(missing.exitCode == 2 && missing.errors.contains("once its run has started"))
    }

    @Test func `A ledger that lost followed rows is refused, and so is a second follower`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 40)
        let (output, more) = files(campaign)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "1"]), in: campaign.directory)
        try sending.wait {
            FileManager.default.fileExists(atPath: campaign.ledger + "/manifest.json")
        }
        let following = try follower(campaign, more)
        // What it writes, it writes to a file that it has locked.
        try following.wait { FileManager.default.contents(atPath: output)?.isEmpty == false }
        let second = try follow(campaign, more)
        #expect(second.exitCode == 7 && second.errors.contains("another follower"), "\(second)")
        try hurry(campaign)
        #expect(try sending.wait().exitCode == 0 && following.wait().exitCode == 0)
        try judge(campaign, output)
        let text = try String(contentsOfFile: more[3], encoding: .utf8)
        let offset = try #require(text.firstMatch(of: /"segment-0001-00" : ([0-9]+)/)).1
        for place in ["\(Int(offset)! + 8)", "\(Int(offset)! - 8)"] {
            try campaign.directory.write(
                text.replacing(
                    /"segment-0001-00" : [0-9]+/, with: "\"segment-0001-00\" : \(place)"),
                to: "cursor")
            let refused = try follow(campaign, more)
            #expect(refused.exitCode == 2 && refused.errors.contains("is ahead of"), "\(refused)")
        }
    }
}
