import BroadsideTestSupport
import Foundation
import Testing

/// What `broadside night` finds in its folders: ledgers of other nights, names that look alike, old pages.
@Suite(.timeLimit(.minutes(60)))
struct NightPlaceTests {
    private static let rows = 60
    private let files = FileManager.default
    private let server: RecordingServer
    private let nights: Nights

    init() throws {
        server = try RecordingServer()
        nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
    }

    private func requestCount() throws -> Int {
        try server.answers().count
    }

    @Test func `A night with a wrong option writes its summary, but not in place of the notes`()
        throws
    {
        #expect(try nights.run().exitCode == 0)
        let notes = "\(nights.folder)/evening/nights"
        let known = try String(contentsOfFile: notes, encoding: .utf8)
        for more in [["--rate", "abc"], ["--date", "abc"]] {
            let summary = try nights.campaign.directory.write("yesterday", to: "summary.json")
            for file in [summary, notes] {
                let wrong = try nights.run(["--summary", file] + more)
                let cause = file == notes ? "which nights were started" : more[0]
                #expect(wrong.exitCode == 2 && wrong.errors.contains(cause), "\(wrong.errors)")
            }
            let written = try Data(contentsOf: URL(filePath: summary))
            let json = try JSONSerialization.jsonObject(with: written) as? [String: Any]
            #expect(json?["outcome"] as? String == "error")
            #expect(try String(contentsOfFile: notes, encoding: .utf8) == known)
        }
    }

    @Test(arguments: [false, true])
    func `A ledger of another night at a night's path is refused, and nothing is sent`(
        isMoved: Bool
    ) throws {
        #expect(try nights.run(at: (1, "20:00")).exitCode == 0)
        if isMoved {
            try files.moveItem(atPath: nights.ledger(1), toPath: nights.ledger(2))
        } else {
            try files.copyItem(atPath: nights.ledger(1), toPath: nights.ledger(2))
        }
        for more in [["--dry-run"], []] {
            let refused = try nights.run(more, at: (2, "20:00"))
            #expect(refused.exitCode == 2 && refused.output.isEmpty, "\(refused)")
            #expect(
                refused.errors.contains(
                    "\(nights.ledger(2)) is the ledger of the night of \(nights.date(1)), so nothing "
                        + "is sent: move it to \(isMoved ? nights.ledger(1) : "another folder")"),
                "\(refused.errors)")
        }
        let place = isMoved ? nights.ledger(1) : "\(nights.campaign.directory.path)/elsewhere"
        try files.moveItem(atPath: nights.ledger(2), toPath: place)
        #expect(try nights.run(at: (2, "20:05")).exitCode == 0)
        #expect(try requestCount() == 2 * Self.rows)
    }

    @Test func `A name with blanks around it is refused, and one that looks alike is a warning`()
        throws
    {
        #expect(try nights.run(["--name", "Evening"], at: (1, "20:00")).exitCode == 0)
        for name in ["Evening ", " Evening", "Evening\u{a0}"] {
            let refused = try nights.run(["--name", name], at: (1, "20:05"))
            #expect(refused.exitCode == 2 && refused.errors.contains("blanks"), "\(refused.errors)")
        }
        #expect(try requestCount() == Self.rows)
        let looked = try nights.run(["--name", "evening", "--dry-run"], at: (1, "20:05"))
        #expect(looked.exitCode == 0)
        #expect(
            looked.errors.contains("warning: 'evening' is a new campaign")
                && looked.errors.contains("nights of 'Evening': if it is the same campaign, write"),
            "\(looked.errors)")
        let similar = try nights.run(["--name", "evening"], at: (1, "20:05"))
        #expect(similar.exitCode == 0)
        #expect(
            similar.errors.contains("warning: 'evening' is a new campaign")
                && similar.errors.contains("nights of 'Evening'"), "\(similar.errors)")
        let again = try nights.run(["--name", "evening"], at: (2, "20:05"))
        #expect(
            again.exitCode == 0 && !again.errors.contains("is a new campaign"), "\(again.errors)")
    }

    @Test func `A page that is older than its ledger is written again by the next start`() throws {
        let first = try nights.runCutShort(at: (1, "20:00"))
        #expect(first.exitCode == 3, "\(first.errors)")
        let page = "\(nights.ledger(1))/report.html"
        let old = try String(contentsOfFile: page, encoding: .utf8)
        #expect(old.contains("rows are left"))
        #expect(try nights.run(at: (1, "20:10")).exitCode == 0)
        let new = try String(contentsOfFile: page, encoding: .utf8)
        // As if the disk had been full when the second run ended.
        try old.write(toFile: page, atomically: true, encoding: .utf8)
        try files.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -86_400 * 400)], ofItemAtPath: page)
        let finished = try nights.run(at: (1, "20:20"))
        #expect(finished.errors.contains("is finished: nothing is sent"), "\(finished.errors)")
        let written = try String(contentsOfFile: page, encoding: .utf8)
        #expect(!written.contains("rows are left") && !new.contains("rows are left"))
        #expect(written.contains("\(Self.rows)"))
    }

    @Test func `A night asks its earlier nights in addition to the ledgers of --skip-dead`() throws
    {
        let server = try LocalAPNs(["--unregistered", "0.5", "--seed", "1"])
        let nights = try Nights(rows: 40, endpoint: server.endpoint)
        let first = try nights.run(["--date", nights.date(-1)])
        #expect(first.exitCode == 0, "\(first.errors)")
        let dead = try nights.statistics(-1).rejected
        try #require(dead > 1)
        let other = "\(nights.campaign.directory.path)/other"
        let sent = try nights.campaign.send(
            to: server.endpoint, ["--ledger", other, "--limit", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let second = try nights.run(["--date", nights.date(0), "--skip-dead", other])
        #expect(second.exitCode == 0, "\(second.errors)")
        #expect(try nights.statistics(0).reasons["DeadToken"] == dead)
    }

    @Test func `A cap that counts one night too many is a warning, and so is what it skips`() throws
    {
        func night(_ cap: String, _ more: [String], at time: (Int, String)) throws -> Finished {
            try nights.run(
                ["--history", nights.folder, "--cap", cap] + more, at: (time.0, time.1))
        }
        let advice = "Then nearly all rows are skipped (FrequencyCap): write --cap "
        for (cap, hours) in [
            ("1/1d", "1/20h"), ("1/1381m", "1/20h"), ("2/2d", "2/44h"), ("1/23h", nil),
            ("1/25h", nil), ("3/7d", nil),
        ] {
            let dry = try night(cap, ["--dry-run"], at: (1, "19:00"))
            #expect(dry.exitCode == 0, "\(dry.errors)")
            #expect(dry.errors.contains("warning: --cap counts") == (hours != nil), "\(dry.errors)")
            if let hours { #expect(dry.errors.contains(advice + hours), "\(dry.errors)") }
        }
        let first = try night("1/1d", ["--limit", "59"], at: (1, "19:00"))
        #expect(first.exitCode == 0 && first.errors.contains(advice), "\(first.errors)")
        let second = try night("1/1d", [], at: (2, "18:59"))
        #expect(second.exitCode == 0, "\(second.errors)")
        #expect(
            second.errors.contains(
                "warning: almost no device got this campaign: 59 of the 60 rows are skipped "
                    + "(59 FrequencyCap): check --cap"), "\(second.errors)")
        let page = try Broadside.run(
            ["report", "--all", "\(nights.folder)/evening", "--json"],
            in: nights.campaign.directory)
        #expect(page.output.contains("98.33% of the rows were skipped"), "\(page.output)")
    }

    @Test func `--cap warns of a ledger whose run is still sending`() throws {
        let campaign = nights.campaign
        let history = "\(campaign.directory.path)/history"
        try files.createDirectory(atPath: history, withIntermediateDirectories: false)
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--ledger", "\(history)/first", "--rate", "5"]),
            in: campaign.directory)
        try sending.wait {
            let names = (try? campaign.directory.names(in: "\(history)/first")) ?? []
            return names.contains { $0.hasPrefix("segment") }
        }
        let cap = ["--cap", "1/1d", "--history", history]
        let other = try campaign.send(
            to: server.endpoint, cap + ["--ledger", "\(history)/second", "--limit", "20"])
        #expect(other.exitCode == 0)
        #expect(
            other.errors.contains("\(history)/first: another run is sending with this ledger"),
            "\(other.errors)")
        sending.send(signal: SIGTERM)
        #expect(try sending.wait().exitCode == 3)
        let later = try campaign.send(
            to: server.endpoint, cap + ["--ledger", "\(history)/third", "--limit", "20"])
        #expect(later.exitCode == 0 && !later.errors.contains("another run"), "\(later.errors)")
    }
}
