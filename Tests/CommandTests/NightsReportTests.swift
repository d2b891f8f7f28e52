import BroadsideTestSupport
import Foundation
import Testing

/// `report --all`: one page about the ledgers of several directories.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct NightsReportTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private var nights: String { "\(campaign.directory.path)/nights" }
    private var page: String { "\(campaign.directory.path)/nights.html" }

    init() throws {
        server = try LocalAPNs(["--unregistered", "0.1", "--seed", "7"])
        campaign = try Campaign(rows: 200)
        try FileManager.default.createDirectory(
            atPath: nights, withIntermediateDirectories: false)
    }

    private func send(_ ledger: String, _ more: [String] = []) throws {
        let sent = try campaign.send(to: server.endpoint, ["--ledger", ledger] + more)
        try #require(sent.exitCode == 0, "\(sent.errors)")
    }

    private func report(_ arguments: String...) throws -> Finished {
        try Broadside.run(["report", "--all"] + arguments, in: campaign.directory)
    }

    private func outline() throws -> NightsOutline {
        try NightsOutline(of: page, in: campaign.directory)
    }

    /// Flips a byte in the middle of a ledger's first segment.
    private func damage(_ ledger: String) throws {
        let name = try #require(
            try campaign.directory.names(in: ledger).sorted().first { $0.hasPrefix("segment-") })
        var bytes = try Data(contentsOf: URL(fileURLWithPath: "\(ledger)/\(name)"))
        bytes[bytes.count / 2] ^= 0x55
        try bytes.write(to: URL(fileURLWithPath: "\(ledger)/\(name)"))
    }

    @Test func `find, prune and status take a folder of the nights of several campaigns`() throws {
        for campaign in ["news", "sport"] {
            try FileManager.default.createDirectory(
                atPath: "\(nights)/\(campaign)", withIntermediateDirectories: false)
            for date in ["2026-11-27", "2026-11-28"] {
                try send("\(nights)/\(campaign)/\(date)")
            }
        }
        try FileManager.default.createDirectory(
            atPath: "\(nights)/notes", withIntermediateDirectories: false)
        func run(_ arguments: [String]) throws -> Finished {
            try Broadside.run(arguments, in: campaign.directory)
        }
        let folders = [
            "news/2026-11-27", "news/2026-11-28", "sport/2026-11-27", "sport/2026-11-28",
        ]
        let found = try run(
            ["ledger", "find", "--ledger", nights, "--token", campaign.tokens.token(7)])
        #expect(found.exitCode == 0, "\(found.errors)")
        #expect(found.errors.contains("skipped (no ledger)"), "\(found.errors)")
        let paths: [String] = found.output.split(separator: "\n").map { line in
            String(line.prefix { $0 != ":" })
        }
        #expect(paths == folders.map { "\(nights)/\($0)" }, "\(found.output)")
        let missing = try run(
            ["ledger", "find", "--ledger", nights, "--token", String(repeating: "ab", count: 32)])
        #expect(missing.exitCode == 1 && missing.errors.contains("in these ledgers"))

        // A directory without a ledger is reported, and the others are searched.
        let partly = try run(
            [
                "ledger", "find", "--ledger", "\(nights)/notes", "--ledger", "\(nights)/news",
                "--token", campaign.tokens.token(7),
            ])
        #expect(partly.exitCode == 2 && partly.errors.contains("notes is neither a ledger nor"))
        #expect(partly.output.split(separator: "\n").count == 2, "\(partly.output)")

        var pruned: [String] = []
        for ledgers in [[nights], folders.map { "\(nights)/\($0)" }] {
            let output = campaign.directory.fresh("pruned")
            let prune = try run(
                ["prune", "--tokens", campaign.list, "--output", output]
                    + ledgers.flatMap { ["--ledger", $0] })
            #expect(prune.exitCode == 0, "\(prune.errors)")
            pruned.append(try String(contentsOfFile: output, encoding: .utf8))
        }
        #expect(pruned[0] == pruned[1] && pruned[0].utf8.count < campaign.tokens.list().count)

        let status = try run(["status", nights])
        #expect(status.exitCode == 0 && status.output.split(separator: "\n").count == 5)
        for arguments in [
            ["ledger", "find", "--ledger", "\(nights)/notes", "--apns-id", "x"],
            ["prune", "--ledger", "\(nights)/notes", "--tokens", campaign.list, "--dry-run"],
        ] {
            let refused = try run(arguments)
            #expect(refused.exitCode == 2 && refused.errors.contains("neither a ledger nor"))
        }
    }

    @Test func `The summary page links a report that only the campaign file names`() throws {
        let folder = "\(nights)/files"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let file = try campaign.directory.write(
            "{report: 'of the night.html'}", to: "nights/files/night.json5")
        try send("\(nights)/monday", ["--campaign", file])
        #expect(FileManager.default.fileExists(atPath: "\(folder)/of the night.html"))
        #expect(try report("\(nights)/monday", "--output", page).exitCode == 0)
        #expect(try outline().links == ["nights/files/of%20the%20night.html"])
    }

    @Test func `The summary page has a linked row for each ledger, newest first`() throws {
        let hostile = "<script>alert('\"&</td>"
        let modified = Date(timeIntervalSinceNow: -7_210)
        try FileManager.default.setAttributes(
            [.modificationDate: modified], ofItemAtPath: campaign.list)
        try send(
            "\(nights)/monday", ["--name", "Monday's news", "--report", "\(nights)/news.html"])
        try send("\(nights)/tuesday", ["--name", hostile])
        let other = "\(campaign.directory.path)/wednesday"
        try send(other)
        let own = try Broadside.run(
            ["report", "--ledger", other, "--output", "\(other).html"], in: campaign.directory)
        #expect(own.exitCode == 0, "\(own.errors)")
        // A ledger that two words lead to is one night.
        let made = try report(nights, other, "\(nights)/monday", "--output", page)
        #expect(made.exitCode == 0 && made.errors.isEmpty && made.output.isEmpty, "\(made.errors)")
        let outline = try outline()
        #expect(outline.problems.isEmpty, "\(outline.problems)")
        let counts = try campaign.statistics(of: other)
        let dead = counts.rejected
        #expect(dead > 5)
        #expect(
            outline.rows.dropFirst(2).map { $0[1] } == [counts.campaign, hostile, "Monday's news"])
        for row in outline.rows.dropFirst(2) {
            try #require(row.count == 13, "\(row)")
            let share = String(format: "%.2f%%", Double(dead) / 2)
            #expect(
                row[2...9] == [
                    "complete", "200", "2 h 00 m", share, "\(counts.accepted)", "\(dead)", "0", "0",
                ], "\(row)")
            #expect(row[10] == "0" && Double(row[11].replacing(",", with: "")) ?? 0 > 0, "\(row)")
        }
        #expect(outline.links == ["wednesday.html", "nights/news.html"])
        #expect(!outline.tags.contains("script"))

        // Beside the ledgers, a second time too, and on standard output.
        for _ in 1...2 {
            let beside = try report(nights, "--output", "\(nights)/all.html")
            #expect(beside.exitCode == 0, "\(beside.errors)")
        }
        let text = try String(contentsOfFile: "\(nights)/all.html", encoding: .utf8)
        #expect(text.contains("<a href=\"news.html\">"))
        let printed = try report(nights)
        #expect(printed.exitCode == 0 && printed.output.contains("nights/news.html\">"))
    }

    @Test func `The summary page shows a damaged ledger with its cause and is exit 5`() throws {
        try send("\(nights)/sound")
        try send("\(nights)/damaged", ["--name", "Broken"])
        try damage("\(nights)/damaged")
        try send("\(nights)/lost")
        try FileManager.default.removeItem(atPath: "\(nights)/lost/manifest.json")
        try FileManager.default.createDirectory(
            atPath: "\(nights)/texts", withIntermediateDirectories: false)
        try campaign.directory.write("{}", to: "nights/texts/manifest.json")
        try campaign.directory.write("a list", to: "nights/tokens.txt")
        let made = try report(nights, "--output", page)
        #expect(made.exitCode == 5)
        let lines = made.errors.split(separator: "\n")
        #expect(lines.count == 2, "\(made.errors)")
        #expect(lines.first == "broadside: skipped (no ledger): \(nights)/texts")
        #expect(
            lines.last?.hasPrefix(
                "broadside: 2 of 3 ledgers can't be read (the page says which): the first: \(nights)/lost"
            ) == true, "\(made.errors)")
        let outline = try outline()
        #expect(outline.problems.isEmpty, "\(outline.problems)")
        let rows = outline.rows.filter { $0.count > 1 }
        try #require(rows.count == 4, "\(rows)")
        #expect(rows.map { $0[1] }.dropFirst().prefix(2) == ["lost", "Broken"])
        #expect(rows[1][0] == "no date" && rows[2][0].hasPrefix("20"))
        for row in rows[1...2] {
            #expect(row[2].hasPrefix("unreadable \(nights)/"), "\(row)")
            #expect(row[2].contains("broadside ledger repair --ledger"), "\(row)")
        }
        #expect(rows[3][2] == "complete")
    }

    @Test func `The summary page shows a stopped campaign like others`() throws {
        let ledger = "\(nights)/stopped"
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--ledger", ledger, "--rate", "5"]),
            in: campaign.directory)
        try sending.wait { ((try? campaign.statistics(of: ledger).accepted) ?? 0) > 0 }
        sending.send(signal: SIGTERM)
        let sent = try sending.wait()
        #expect(sent.exitCode == 3, "\(sent.errors)")
        let made = try report(nights, "--output", page)
        #expect(made.exitCode == 0, "\(made.errors)")
        let row = try #require(try outline().rows.last)
        try #require(row.count == 13, "\(row)")
        #expect(row[2] == "stopped" && row[3] == "200")
        #expect(Int(row[10]) ?? 0 > 100, "\(row)")
    }

    @Test
    func `report --all of a path without ledgers is exit 2 in one line and writes nothing`() throws
    {
        try send("\(nights)/monday")
        let empty = "\(campaign.directory.path)/empty"
        try FileManager.default.createDirectory(atPath: empty, withIntermediateDirectories: false)
        let cases: [([String], String)] = [
            (
                ["--all", empty],
                "--all \(empty) is neither a ledger nor a directory of ledgers"
            ),
            (["--all", nights, "/nowhere"], "--all /nowhere: No such file or directory"),
            (["--all", campaign.list], "is not a directory: name a directory of ledgers"),
            (["--all"], "--all names no directory: write --all DIR..."),
            (["--all", ""], "is a variable of the script unset?"),
            (["--all=", nights], "is a variable of the script unset?"),
            (["--all", nights, "--ledger", nights], "--all and --ledger exclude each other"),
            ([], "--ledger is missing: add --ledger DIR, or --all DIR..."),
            ([nights], "report takes no word"),
        ]
        for (arguments, message) in cases {
            let finished = try Broadside.run(
                ["report"] + arguments + ["--output", page], in: campaign.directory)
            #expect(finished.exitCode == 2, "\(arguments)")
            #expect(finished.errors.contains(message), "\(finished.errors)")
            #expect(finished.errors.split(separator: "\n").count == 1, "\(finished.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: page))
        for forms in [["--all=\(nights)"], ["--all", nights, "--all=\(nights)/monday"]] {
            let one = try Broadside.run(["report", "--json"] + forms, in: campaign.directory)
            #expect(one.exitCode == 0, "\(one.errors)")
            #expect(one.output.split(separator: "\n").count == 1, "\(one.output)")
        }
        for target in [
            "\(nights)/monday/manifest.json", "\(nights)/monday/new.html", campaign.list,
        ] {
            let finished = try report(nights, "--output", target)
            #expect(
                finished.exitCode == 2 && finished.output.isEmpty, "\(target): \(finished.errors)")
        }
        #expect(try campaign.ledger("verify", ["--ledger", "\(nights)/monday"]).exitCode == 2)
    }

    @Test func `report --all refuses more than 4,096 ledgers`() throws {
        for number in 1...4097 {
            let path = "\(nights)/\(number)"
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false)
            for name in ["lock", "manifest.json"] {
                try campaign.directory.write("", to: "nights/\(number)/\(name)")
            }
        }
        let finished = try report(nights, "--output", page)
        #expect(finished.exitCode == 2)
        #expect(
            finished.errors.contains("more than 4,096 ledgers: name fewer"), "\(finished.errors)")
        try FileManager.default.removeItem(atPath: "\(nights)/1")
        #expect(try report(nights, "--output", page).exitCode == 5)
        #expect(try outline().rows.count == 4096 + 2)
    }

    @Test(
        .needs(.chromium),
        arguments: [390, 1280])
    func `A browser shows the summary page without errors, wide and narrow`(width: Int) throws {
        for number in 1...3 {
            try send(
                "\(nights)/\(number)", ["--name", "Evening news with a name that is rather long"])
        }
        #expect(try report(nights, "--output", page).exitCode == 0)
        let measured = try Chromium.measure(
            page,
            """
            const wide = [...document.querySelectorAll("main *")].filter(one =>
                !one.closest(".nights") && one.getBoundingClientRect().right > innerWidth + 1);
            const table = document.querySelector(".nights");
            table.scrollTo(50, 50);
            const head = table.querySelector("thead th").getBoundingClientRect();
            const box = table.getBoundingClientRect();
            const measured = {wide: wide.map(one => one.outerHTML.slice(0, 90)),
                charts: document.querySelectorAll("figure svg[role=img] > title").length,
                head: Math.abs(head.top - box.top) < 2 && Math.abs(head.left - box.left) < 2,
                page: document.documentElement.scrollWidth <= innerWidth};
            """, width: width, in: campaign.directory)
        #expect(measured == #"{"wide":[],"charts":4,"head":true,"page":true}"#)
    }
}

/// A page as Python's parser reads it.
struct NightsOutline: Decodable {
    var problems: [String]
    var rows: [[String]]
    var links: [String]
    var tags: [String]

    init(of page: String, in directory: TemporaryDirectory) throws {
        let finished = try Subprocess.run(
            "python3", ["-B", "\(Tool.packageRoot)/Tests/Reference/page_outline.py", page],
            in: directory)
        self = try JSONDecoder().decode(Self.self, from: Data(finished.output.utf8))
    }
}

extension Campaign {
    /// The counts of another ledger.
    fileprivate func statistics(of ledger: String) throws -> SendSummary {
        let finished = try Broadside.run(
            ["ledger", "stats", "--ledger", ledger, "--json"], in: directory)
        return try SendSummary(json: finished.output)
    }
}
