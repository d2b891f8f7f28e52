import BroadsideTestSupport
import Foundation
import Testing

/// `report --receipts`: what devices reported, joined with the ledger's rows.
@Suite(.timeLimit(.minutes(60)))
struct ReceiptsTests {
    private struct Findings: Decodable, Equatable {
        struct Arm: Decodable, Equatable {
            var devices: Int
            var opened: Int
            var hours: [Int]
            var by: [String: [String: Int]]
        }

        struct Difference: Decodable, Equatable {
            var first: String
            var second: String
            var difference: Double
            var low: Double
            var high: Double
            var too_small_to_tell: Bool
        }

        var receipts: Int
        var repeated: Int
        var foreign: Int
        var early: Int
        var unreadable: Int
        var arms: [String: Arm]
        var differences: [Difference]
    }

    /// Makes receipts for a ledger's rows from its export, and the findings that they must have.
    private static let judge = #"""
        import csv, json, random, sys
        export, folder, form, key = sys.argv[1:]
        choose = random.Random(form + key)
        rows = list(csv.DictReader(open(export)))
        chance = {"a": 0.5, "b": 0.1, "holdout": 0.05}
        receipts, arms = [], {}
        counts = dict(repeated=0, foreign=0, early=0, unreadable=0)
        for row in rows:
            if row["state"] not in ("accepted", "skipped"): continue
            if row["arm"] == "holdout" and key == "apns_id": continue
            arm = arms.setdefault(row["arm"], dict(devices=0, opened=0, hours=[0] * 49, by={"app": {}}))
            arm["devices"] += 1
            if choose.random() >= chance[row["arm"]]: continue
            settled = int(row["settled_at_ms"])
            hour = choose.choice([0, 0, 0, 1, 5, 47, 48, 100])
            time, app = settled + hour * 3600000 + choose.randrange(3600000), choose.choice(["iOS", "mac, big", ""])
            arm["opened"] += 1
            arm["hours"][min(hour, 48)] += 1
            arm["by"]["app"][app] = arm["by"]["app"].get(app, 0) + 1
            name = row[key].upper() if choose.random() < 0.5 else row[key]
            receipts.append((name, time, app))
            if choose.random() < 0.2:
                receipts.append((name, time + 5, "iOS"))
                counts["repeated"] += 1
            if choose.random() < 0.1:
                receipts.append((name, settled - 1, "iOS"))
                counts["early"] += 1
        stranger = "00000000-0000-4000-8000-000000000000" if key == "apns_id" else "12" * 32
        receipts += [(stranger, 1, "iOS"), (receipts[0][0], "yesterday", "iOS"), ("zz", 1, "iOS")]
        counts["foreign"], counts["unreadable"] = 1, 2
        choose.shuffle(receipts)
        for arm in arms.values():
            arm["by"]["app"] = {app: arm["by"]["app"].get(app, 0) for app in {"iOS", "mac, big", ""}}
        path = f"{folder}/receipts.{form}"
        with open(path, "w", newline="") as file:
            if form == "csv":
                writer = csv.writer(file)
                writer.writerow(["app", key, "time"])
                writer.writerows((app, name, time) for name, time, app in receipts)
            else:
                for name, time, app in receipts:
                    file.write(json.dumps({"time": time, "app": app, key: name}) + "\n")
        json.dump(dict(counts, receipts=len(receipts), arms=arms), open(f"{folder}/judged", "w"))
        """#

    /// A campaign that was sent once. Tests only read its ledger and its export.
    private struct Sent {
        let campaign: Campaign
        let export: String

        init() throws {
            campaign = try Campaign(rows: 900)
            let server = try LocalAPNs()
            let finished = try campaign.send(
                to: server.endpoint,
                ["--split", "a=40,b=40", "--split-salt", "receipts", "--canary", "10"])
            guard finished.exitCode == 0 else { throw TestFailure(finished.errors) }
            export = try campaign.directory.write(
                campaign.ledger("export").output, to: "export.csv")
        }
    }

    private static let sent = Result { try Sent() }

    private let ledger: String
    private let export: String
    /// The files of one test.
    private let directory: TemporaryDirectory

    init() throws {
        let sent = try Self.sent.get()
        (ledger, export) = (sent.campaign.ledger, sent.export)
        directory = try TemporaryDirectory()
    }

    private func report(_ options: [String]) throws -> Finished {
        try Broadside.run(["report", "--ledger", ledger] + options, in: directory)
    }

    @Test(arguments: ["csv", "jsonl"], ["apns_id", "token"])
    func `Each device counts once, in its arm, hour and value, as Python counts`(
        _ form: String, _ key: String
    ) throws {
        let folder = directory.path
        let judged = try Subprocess.run(
            "python3", ["-B", "-c", Self.judge, export, folder, form, key], in: directory)
        #expect(judged.exitCode == 0, "\(judged.errors)")
        let receipts = "\(folder)/receipts.\(form)"
        let finished = try report(["--receipts", receipts, "--by", "app", "--json"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let found = try JSONDecoder().decode(Findings.self, from: Data(finished.output.utf8))
        var expected = try #require(
            try JSONSerialization.jsonObject(
                with: Data(contentsOf: URL(filePath: "\(folder)/judged"))) as? [String: Any])
        expected["differences"] = [Any]()
        var own = try JSONDecoder().decode(
            Findings.self, from: JSONSerialization.data(withJSONObject: expected))
        own.differences = found.differences
        #expect(found == own)

        let arms = found.differences.map { "\($0.first) \($0.second)" }
        #expect(arms == (key == "token" ? ["a b", "a holdout", "b holdout"] : ["a b"]))
        let first = try #require(found.differences.first)
        #expect(first.low < first.difference && first.difference < first.high)
        #expect(!first.too_small_to_tell && first.low > 0.2)

        let page = try report(["--receipts", receipts, "--by", "app"])
        #expect(page.exitCode == 0, "\(page.errors)")
        #expect(page.output.contains("<h2>Who opened it</h2>"))
        #expect(page.output.contains("a has a higher open rate than b, by "))
        #expect(page.output.contains("mac, big"))
        #expect(page.output.contains("of these, \(found.repeated) are later receipts of a device"))
    }

    @Test func `A sample that shows no difference is too small to tell`() throws {
        let rows = try String(contentsOfFile: export, encoding: .utf8).split(separator: "\n")
            .dropFirst().map {
                $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            }
        var opened: [String: Int] = [:]
        var text = "token,time\n"
        for row in rows where opened[row[9], default: 0] < 8 && row[9] != "holdout" {
            opened[row[9], default: 0] += 1
            text += "\(row[1]),\(row[8])\n"
        }
        let receipts = try directory.write(text, to: "few.csv")
        let finished = try report(["--receipts", receipts])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(finished.output.contains("too small to tell"))
        #expect(finished.output.contains("<b>a \u{2212} b</b>"))
    }

    @Test(arguments: [
        (
            "line,when\n1,2\n", [],
            "has neither a column apns_id nor a column token: its columns are line, when: name one "
                + "with --id-column or --token-column"
        ),
        (
            "messageId,createdAt\nab,2\n", ["--id-column", "message"],
            "no column 'message': did you mean 'messageId'?"
        ),
        (
            "0000ABCD-0000-4000-8000-000000000000,iOS,2030-01-31 19:00:00\n", [],
            "has no header: the first line has an apns-id (in column 1): add a first line that names "
                + "the columns, such as apns_id,column2,time"
        ),
        (
            "1900000000;\(String(repeating: "ab", count: 32))\n", [],
            "has no header: the first line has a token (in column 2): add a first line that names "
                + "the columns, such as time;token"
        ),
        ("token,when\nab,2\n", [], "--time-column: --receipts"),
        ("token,when\nab,2\n", [], "has no column 'time'"),
        ("token,time\nab,2\n", ["--by", "app"], "no column 'app'"),
        ("{\"line\":1}\n", [], "neither a column apns_id nor a column token"),
        ("device,time\nab,2\n", ["--token-column", "devise"], "did you mean 'device'?"),
        ("token,apns_id,time\n", ["--token-column", "token", "--id-column", "apns_id"], "exclude"),
        (
            "token,time\nabab,11/28/2026 7:00 PM\n", [],
            "line 2 has no readable time (11/28/2026 7:00 PM)"
        ),
        ("token,time\nsomebody,2\n", [], "(line 2 has no device token): does the column 'token'"),
        (
            "token,time,app\nab,2,x\n", ["--by", "app", "--by", "app"],
            "--by names a column twice"
        ),
        ("token,time\nab,2\n", ["--by", "time"], "--by: column 'time' is named for two purposes"),
        ("{\"token\":\"ab\",\"at\":1}\n", ["--time-column", "at", "--by", "at"], "column 'at' is"),
        ("", ["--all"], "--receipts is about one campaign"),
    ])
    func `Receipts that can't be joined are exit 2 and named`(
        _ text: String, _ options: [String], _ words: String
    ) throws {
        let file = try directory.write(
            text, to: text.hasPrefix("{") ? "wrong.jsonl" : "wrong.csv")
        let finished =
            options == ["--all"]
            ? try Broadside.run(
                ["report", "--all", directory.path, "--receipts", file], in: directory)
            : try report(["--receipts", file] + options)
        #expect(finished.exitCode == 2)
        #expect(finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.contains(words), "\(finished.errors)")
    }

    @Test(arguments: [
        ("none.csv", "apns_id,time\n"), ("none.tsv", "token\ttime\n"), ("none.jsonl", ""),
    ])
    func `A file without receipts is exit 2, not a share of 0%`(name: String, text: String) throws {
        let file = try directory.write(text, to: name)
        for options in [[], ["--json"]] {
            let finished = try report(["--receipts", file] + options)
            #expect(finished.exitCode == 2 && finished.output.isEmpty, "\(finished.output)")
            #expect(
                finished.errors
                    == "broadside: --receipts \(file) contains no receipts: is it the right file?\n"
            )
        }
    }

    @Test(arguments: [
        ("Device_Token,Event_Time", []),
        ("pushed,at", ["--token-column", "pushed", "--time-column", "at"]),
    ])
    func `Columns are found by their usual names or named, and what does not count is a warning`(
        header: String, options: [String]
    ) throws {
        let rows = try String(contentsOfFile: export, encoding: .utf8).split(separator: "\n")
            .dropFirst().map {
                $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            }
        let row = try #require(rows.first { $0[9] == "a" })
        let seconds = try #require(Int(row[8])) / 1000 + 60
        let time = Date(timeIntervalSince1970: Double(seconds)).formatted(
            .iso8601.dateTimeSeparator(.space))
        let receipts = try directory.write(
            "\(header)\n\(row[1].uppercased()),\(time)\n\(row[1]),soon\n", to: "named.csv")
        let finished = try report(["--receipts", receipts, "--json"] + options)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let found = try JSONDecoder().decode(Findings.self, from: Data(finished.output.utf8))
        #expect(found.arms["a"]?.opened == 1 && found.unreadable == 1)
        #expect(
            finished.errors
                == "broadside: warning: --receipts \(receipts): 1 of 2 receipts can't be read and "
                + "is ignored: the first: line 3 has no readable time (soon)\n")

        // Another campaign's receipts, and those whose clock is wrong.
        for (text, warning) in [
            ("\(String(repeating: "ab", count: 32)),\(time)", "to another campaign?"),
            ("\(row[1]),\(seconds - 3_600)", "earlier than its notification"),
        ] {
            let other = try directory.write("\(header)\n\(text)\n", to: "other.csv")
            let finished = try report(["--receipts", other, "--json"] + options)
            #expect(finished.exitCode == 0)
            #expect(finished.errors.contains(warning), "\(finished.errors)")
        }
    }

    @Test(arguments: ["token", "apns_id"])
    func `Receipts that are overwritten with zero bytes are named`(key: String) throws {
        let zeros = String(repeating: "\0", count: 512)
        let receipts = try directory.write(
            "\(key),time\n\(String(repeating: "ab", count: 32)),1\nab\(zeros)cd,2\n",
            to: "overwritten.csv")
        let finished = try report(["--receipts", receipts])
        #expect(
            finished.errors.contains(
                "broadside: warning: --receipts \(receipts): the row on line 3 contains zero bytes: the "
                    + "file is damaged, and other rows may be missing\n"), "\(finished.errors)")
    }
}
