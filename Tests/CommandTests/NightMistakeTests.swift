import BroadsideTestSupport
import Foundation
import Testing

/// Starts of `broadside night` with an option or input that may be a mistake: what is sent, and what the user reads.
@Suite(.timeLimit(.minutes(60)))
struct NightMistakeTests {
    private static let rows = 60
    private let files = FileManager.default

    /// The requests that a server has got so far.
    private func requests(_ server: RecordingServer) throws -> Int {
        try server.answers().count
    }

    @Test func `Removed ledgers are named, and those that the next night would ask are a warning`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 3, endpoint: server.endpoint)
        let warned = "but the ledger of \(nights.date(2)) was removed: --keep"
        func last(_ more: [String]) throws -> String {
            try? files.removeItem(atPath: "\(nights.folder)/evening")
            for day in 1...3 { #expect(try nights.run(at: (day, "20:00")).exitCode == 0) }
            let kept = try nights.run(["--keep", "1"] + more, at: (3, "20:05"))
            #expect(kept.exitCode == 0 && !nights.has(1) && !nights.has(2), "\(kept.errors)")
            return kept.errors
        }
        let told = try last(["--progress", "auto"])
        #expect(
            told.contains("--keep 1 removed 2 ledgers: \(nights.date(2)), \(nights.date(1))\n"),
            "\(told)")
        #expect(
            told.contains("--skip-dead needs the reports of the nights of the last 30 d"),
            "\(told)")
        #expect(told.contains("\(warned) 30 keeps enough"), "\(told)")
        let place = "\(nights.folder)/evening"
        #expect(
            told.contains("\npages: \(nights.ledger(3))/report.html, \(place)/index.html\n"),
            "\(told)")
        // For cron, only the warning.
        let quiet = try last([])
        #expect(
            quiet.contains(warned) && !quiet.contains("pages:") && !quiet.contains("2 ledgers"),
            "\(quiet)")
        // Two days after the removed night, the next one would not ask it.
        #expect(!(try last(["--dead-for", "2d"])).contains("warning"))
        #expect(try last(["--dead-for", "60h"]).contains("\(warned) 3 keeps enough"))
        #expect(!(try last(["--skip-dead", "none"])).contains("warning"))
        #expect(
            try last(["--skip-dead", "none", "--cap", "1/7d", "--history", nights.folder])
                .contains("--cap needs the reports of the nights of the last 7 d"))
        // Each option is named that the removed ledger concerns.
        let both = try last(["--cap", "2/7d", "--history", nights.folder])
        #expect(
            both.contains(
                "last 30 d 00 h, and --cap needs the reports of the nights of the last 7 d")
                && both.contains("\(warned) 30 keeps enough"), "\(both)")
        #expect(!(try last(["--cap", "2/2d", "--history", nights.folder])).contains("--cap"))
    }

    @Test
    func `A retry begins no night, and an earlier date is begun with a warning`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let retry = ["--retry", "unknown"]
        let none = try nights.run(retry, at: (2, "20:00"))
        #expect(none.exitCode == 2 && none.errors.contains("no night has begun"), "\(none.errors)")
        // A script's variable is empty.
        for text in ["", ",", "failed,"] {
            let empty = try nights.run(["--retry", text], at: (2, "20:00"))
            #expect(empty.exitCode == 2 && empty.errors.contains("--retry ''"), "\(empty.errors)")
        }
        #expect(try nights.run(at: (2, "20:00")).exitCode == 0)
        // The date is forgotten on the next morning, or is mistyped.
        for (more, time) in [
            (retry, (3, "09:30")), (["--date", nights.date(1)] + retry, (2, "21:00")),
            (retry + ["--dry-run"], (3, "09:30")),
        ] {
            let refused = try nights.run(more, at: time)
            #expect(refused.exitCode == 2, "\(more): \(refused.errors)")
            #expect(
                refused.errors.contains("has not begun")
                    && refused.errors.contains("--date \(nights.date(2)) --retry unknown"),
                "\(refused.errors)")
            #expect(refused.errorLines.count == 1)
        }
        #expect(!nights.has(1) && !nights.has(3))
        #expect(try requests(server) == Self.rows)
        // The night that has begun, and one that failed on its own evening.
        let right = try nights.run(["--date", nights.date(2)] + retry, at: (3, "09:31"))
        #expect(right.exitCode == 0, "\(right.errors)")
        let payload = nights.campaign.payloadFile
        try files.moveItem(atPath: payload, toPath: payload + ".away")
        #expect(try nights.run(at: (3, "20:00")).exitCode == 2)
        try files.moveItem(atPath: payload + ".away", toPath: payload)
        #expect(try nights.run(at: (4, "20:00")).exitCode == 0)
        #expect(try requests(server) == 2 * Self.rows)
        let late = try nights.run(["--date", nights.date(3)], at: (4, "21:00"))
        #expect(late.exitCode == 0, "\(late.errors)")
        // A date before these was never started: it may be mistyped.
        for (more, sent) in [(["--dry-run"], 3), ([], 4)] {
            let past = try nights.run(["--date", nights.date(1)] + more, at: (4, "21:01"))
            #expect(past.exitCode == 0, "\(past.errors)")
            #expect(
                past.errors.contains("warning: --date \(nights.date(1))")
                    && past.errors.contains("later night of \(nights.date(4)) was"),
                "\(past.errors)")
            #expect(try requests(server) == sent * Self.rows)
        }
        let again = try nights.run(["--date", nights.date(1)], at: (4, "21:02"))
        #expect(again.exitCode == 0 && !again.errors.contains("warning"), "\(again.errors)")
        #expect(try requests(server) == 4 * Self.rows)
    }

    @Test func `An emptied file of nights is damaged, and no night begins again`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 6, endpoint: server.endpoint)
        #expect(try nights.run(at: (1, "20:00")).exitCode == 0)
        let notes = "\(nights.folder)/evening/nights"
        let whole = try Data(contentsOf: URL(filePath: notes))
        for (count, more) in [(0, []), (0, ["--dry-run"]), (5, [])] {
            try whole.prefix(count).write(to: URL(filePath: notes))
            let refused = try nights.run(more, at: (2, "20:00"))
            #expect(refused.exitCode == 5, "\(refused.errors)")
            #expect(refused.errors.contains("\(notes) is empty, although"), "\(refused.errors)")
        }
        #expect(try requests(server) == 6)
        try files.removeItem(atPath: notes)
        #expect(try nights.run(at: (2, "20:00")).exitCode == 0)
        #expect(try requests(server) == 12)
    }

    @Test func `A cap over the folder of nights skips no row on the first night`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 6, endpoint: server.endpoint)
        let more = ["--cap", "1/2d", "--history", nights.folder]
        let camps = "\(nights.folder)/camps"
        try files.createDirectory(atPath: camps, withIntermediateDirectories: false)
        let note = "warning: --history: skipped (no ledger): \(camps)\n"
        let first = try nights.run(more, at: (1, "20:00"))
        #expect(first.exitCode == 0, "\(first.errors)")
        #expect(first.errors.contains("there is no earlier ledger yet"), "\(first.errors)")
        #expect(first.errors.contains(note), "\(first.errors)")
        #expect(try requests(server) == 6)
        let second = try nights.run(more, at: (2, "19:00"))
        #expect(
            second.exitCode == 0 && second.errors.contains("6 FrequencyCap"), "\(second.errors)")
        #expect(!second.errors.contains("there is no earlier ledger yet"), "\(second.errors)")
        #expect(second.errors.contains(note), "\(second.errors)")
        #expect(try requests(server) == 6)
    }

    @Test func `A night whose list or payload was corrected says how to go on, and who has got it`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 100, endpoint: server.endpoint)
        let port = try Ports.free()
        let unreached = try nights.run(
            ["--endpoint", "localhost:\(port)", "--give-up-after", "1s"], at: (1, "20:00"))
        #expect(unreached.exitCode == 1, "\(unreached.errors)")
        let payload = nights.campaign.payloadFile
        let before = try String(contentsOfFile: payload, encoding: .utf8)
        let corrected = "{\"aps\":{\"alert\":\"corrected\"}}"
        try corrected.write(toFile: payload, atomically: true, encoding: .utf8)
        func refused(_ day: Int, _ difference: String, _ devices: String) throws {
            for more in [[], ["--dry-run"]] {
                let start = try nights.run(more, at: (day, "20:05"))
                #expect(start.exitCode == 2, "\(start.errors)")
                for words in [
                    "the night of \(nights.date(day)) began with different input", difference,
                    devices, "--name NAME",
                ] { #expect(start.errors.contains(words), "\(words): \(start.errors)") }
                #expect(!start.errors.contains("--ledger"), "\(start.errors)")
            }
        }
        try refused(1, "the payload differs", "no device has got")
        try before.write(toFile: payload, atomically: true, encoding: .utf8)
        #expect(try nights.runCutShort(at: (2, "20:00")).exitCode == 3)
        let accepted = try nights.statistics(2).accepted
        try #require(accepted > 1 && accepted < 100)
        try corrected.write(toFile: payload, atomically: true, encoding: .utf8)
        try refused(2, "the payload differs", "\(accepted) devices have or may have got")
        try before.write(toFile: payload, atomically: true, encoding: .utf8)
        // Other tokens, as long as those of the list.
        let list = try String(contentsOfFile: nights.campaign.list, encoding: .utf8)
        let other = list.split(separator: "\n").reversed().joined(separator: "\n") + "\n"
        try other.write(toFile: nights.campaign.list, atomically: true, encoding: .utf8)
        let start = try nights.run(at: (2, "20:15"))
        #expect(start.exitCode == 2, "\(start.errors)")
        #expect(
            start.errors.contains("the list's content differs")
                && start.errors.contains("--name NAME"), "\(start.errors)")
        #expect(try requests(server) == accepted)
        // Both ways out lead on.
        let named = try nights.run(["--name", "corrected"], at: (2, "20:16"))
        #expect(named.exitCode == 0, "\(named.errors)")
        try list.write(toFile: nights.campaign.list, atomically: true, encoding: .utf8)
        #expect(try nights.run(at: (2, "20:17")).exitCode == 0)
        #expect(try requests(server) == 200)
    }

    // MARK: Other rows

    @Test func `A night is finished for its own rows only, and a start with others is exit 2`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let list = try String(contentsOfFile: nights.campaign.list, encoding: .utf8)
        // A rehearsal under the campaign's name.
        let few = try nights.campaign.directory.write(
            list.split(separator: "\n").prefix(5).joined(separator: "\n") + "\n", to: "few.txt")
        #expect(try nights.run(["--tokens", few], at: (1, "19:00")).exitCode == 0)
        let part = ["--part", "1/2", "--campaign-id", "0123456789abcdef"]
        for (more, difference) in [
            ([], "the list's size"), (["--dry-run", "--date", nights.date(1)], "the list's size"),
            (["--tokens", few, "--shard", "1/2"], "the shard was not set, now it is 1/2"),
            (["--tokens", few] + part, "the campaign id was not set"),
        ] {
            let refused = try Self.refused(nights, more, difference)
            #expect(!refused.errors.contains("restore the list"), "\(refused.errors)")
        }
        let path = nights.campaign.directory.path
        for spelling in [few, "\(path)//few.txt", "\(path)/nights/./../few.txt"] {
            let same = try nights.run(["--tokens", spelling], at: (1, "20:01"))
            #expect(same.exitCode == 0, "\(same.errors)")
            #expect(same.errors.contains("is finished: nothing is sent"), "\(same.errors)")
        }
        // The rest of a list is not sent yet.
        #expect(try nights.run(["--shard", "1/2"], at: (2, "20:00")).exitCode == 0)
        let half = try nights.run(["--shard", "2/2"], at: (2, "20:01"))
        #expect(half.exitCode == 2, "\(half.errors)")
        #expect(half.errors.contains("the shard was 1/2, now it is 2/2"), "\(half.errors)")
        let sent = 5 + Int(try nights.statistics(2).accepted)
        #expect(try requests(server) == sent && sent < 5 + Self.rows)
    }

    @Test func `A finished night stays finished if its list changed, but not for another filter`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 4, endpoint: server.endpoint)
        let directory = nights.campaign.directory
        let tokens = try String(contentsOfFile: nights.campaign.list, encoding: .utf8)
            .split(separator: "\n")
        for (name, places) in [("today.csv", 0..<2), ("tomorrow.csv", 2..<4)] {
            let rows = places.map { "\(tokens[$0]),\($0 % 2 == 0 ? "de" : "en")" }
            try directory.write(
                "token,lang\n" + rows.joined(separator: "\n") + "\n", to: name)
        }
        let link = "\(directory.path)/list.csv"
        func point(to name: String) throws {
            try? files.removeItem(atPath: link)
            try files.createSymbolicLink(atPath: link, withDestinationPath: name)
        }
        try point(to: "today.csv")
        let misspelled = try nights.run(
            ["--tokens", link, "--where", "lang = DE"], at: (1, "19:59"))
        #expect(misspelled.exitCode == 2, "\(misspelled.errors)")
        #expect(misspelled.errors.contains("the column has de, en"), "\(misspelled.errors)")
        let german = ["--tokens", link, "--where", "lang = de"]
        #expect(try nights.run(german, at: (1, "20:00")).exitCode == 0)
        // The list of each day replaces that of the day before, here behind a link.
        try point(to: "tomorrow.csv")
        let again = try nights.run(german, at: (1, "20:01"))
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(again.errors.contains("is finished: nothing is sent"), "\(again.errors)")
        try point(to: "today.csv")
        let english = try nights.run(
            ["--tokens", link, "--where", "lang = en"], at: (1, "20:02"))
        #expect(english.exitCode == 2, "\(english.errors)")
        #expect(
            english.errors.contains("--where was 'lang = \"de\"'")
                || english.errors.contains("--where was 'lang = de'"), "\(english.errors)")
        #expect(try requests(server) == 1)
    }

    @Test
    func `A night that a rehearsal finished for another environment, app or server is exit 2`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 5, endpoint: server.endpoint)
        let rehearsal = ["--environment", "development", "--payload-check", "off"]
        #expect(try nights.run(rehearsal, at: (1, "19:00")).exitCode == 0)
        for (more, difference) in [
            ([], "the environment was development, now it is production"),
            (["--dry-run", "--date", nights.date(1)], "the environment was development"),
            (rehearsal + ["--topic", "com.example.other"], "now it is com.example.other"),
            (rehearsal + ["--push-type", "background"], "the push type was alert, now it is"),
            // With arms, the payloads differ, too.
            (
                rehearsal + ["--split", "a=50,b=50", "--split-salt", "x"],
                "the payload differs"
            ),
            (
                rehearsal + ["--endpoint", "api.sandbox.push.apple.com"],
                "the endpoint was \(server.endpoint), now it is api.sandbox.push.apple.com:443"
            ),
            (
                rehearsal + ["--endpoint", "localhost:1"],
                "the endpoint was \(server.endpoint), now it is localhost:1"
            ),
        ] {
            try Self.refused(nights, more, difference)
        }
        let same = try nights.run(rehearsal, at: (1, "20:01"))
        #expect(same.exitCode == 0, "\(same.errors)")
        #expect(same.errors.contains("is finished: nothing is sent"), "\(same.errors)")
        #expect(try requests(server) == 5)
    }

    /// A start that a finished night refuses, because it would send something else.
    @discardableResult
    private static func refused(
        _ nights: Nights, _ more: [String], _ difference: String
    ) throws -> Finished {
        let refused = try nights.run(more, at: (1, "20:00"))
        #expect(refused.exitCode == 2, "\(more): \(refused.errors)")
        for words in [
            "the night of \(nights.date(1)) is finished, but began with different input",
            difference, "5 devices have or may have got", "--name NAME",
        ] { #expect(refused.errors.contains(words), "\(words): \(refused.errors)") }
        return refused
    }

    // MARK: Other paths

    @Test func `A night knows its campaign's file by every path that leads to it`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let path = nights.campaign.directory.path
        #expect(try nights.runCutShort(at: (1, "20:00")).exitCode == 3)
        try files.createSymbolicLink(atPath: "\(path)/current", withDestinationPath: path)
        func start(_ campaign: String, _ more: [String] = []) throws -> Finished {
            try Subprocess(
                "env",
                ["-C", path, Broadside.path(), "night", "--campaign", campaign]
                    + ["--ledgers", nights.folder] + more,
                in: nights.campaign.directory, environment: nights.clock(1, "20:05")
            ).wait()
        }
        for spelling in [
            "evening.json5", "./evening.json5", "\(path)//nights/.././evening.json5",
            "\(path)/current/evening.json5",
        ] {
            let looked = try start(spelling, ["--dry-run"])
            #expect(looked.exitCode == 0, "\(spelling): \(looked.errors)")
            #expect(looked.errors.contains("would continue"), "\(looked.errors)")
        }
        // Another campaign of that name, in a dry run, too.
        try files.createDirectory(atPath: "\(path)/other", withIntermediateDirectories: false)
        try files.copyItem(atPath: nights.file, toPath: "\(path)/other/evening.json5")
        let reached = try nights.statistics(1).accepted
        for more in [[], ["--dry-run"]] {
            let other = try start("\(path)/other/evening.json5", more)
            #expect(other.exitCode == 2, "\(other.errors)")
            #expect(
                other.errors.contains("It then goes to its whole list, and ")
                    && other.errors.contains("\(reached) device"), "\(other.errors)")
        }
        // Earlier versions noted a path as it was typed.
        let notes = "\(nights.folder)/evening/nights"
        let text = try String(contentsOfFile: notes, encoding: .utf8)
        try text.replacingOccurrences(of: nights.file, with: "\(path)/./evening.json5")
            .write(toFile: notes, atomically: true, encoding: .utf8)
        let continued = try start("current/evening.json5")
        #expect(continued.exitCode == 0, "\(continued.errors)")
        #expect(try nights.statistics(1).accepted == Self.rows)
        #expect(try requests(server) == Self.rows)
    }

    @Test func `A night continues where its folder was moved, and through a link to it`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        let path = nights.campaign.directory.path
        #expect(try nights.runCutShort(at: (1, "20:00")).exitCode == 3)
        func start(in folder: String, _ more: [String] = []) throws -> Finished {
            try Broadside.run(
                ["night", "--campaign", nights.file, "--ledgers", "\(path)/\(folder)"] + more,
                in: nights.campaign.directory, environment: nights.clock(1, "20:01"))
        }
        try files.createSymbolicLink(atPath: "\(path)/link", withDestinationPath: nights.folder)
        let linked = try start(in: "link", ["--dry-run"])
        #expect(linked.exitCode == 0, "\(linked.errors)")
        try files.moveItem(atPath: nights.folder, toPath: "\(path)/moved")
        let moved = try start(in: "moved")
        #expect(moved.exitCode == 0, "\(moved.errors)")
        #expect(try requests(server) == Self.rows)
    }

    // MARK: Other dates, and what a start finds

    @Test
    func
        `A night whose deadline has passed asks for no repeat, and one with its date sends nothing`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 300, endpoint: server.endpoint)
        // The deadline passes in the middle of a minute of rows.
        let options = ["--deadline", "10s", "--rate", "5"]
        let first = try nights.run(options, at: (1, "19:00"))
        #expect(first.exitCode == 3, "\(first.errors)")
        let words =
            "the deadline has passed: do not repeat the same command, which sends no more rows and "
            + "later begins the next night; --date \(nights.date(1)) continues without --deadline: "
        #expect(first.errors.contains(words), "\(first.errors)")
        let sent = try requests(server)
        for time in [(1, "19:35"), (2, "07:05")] {
            let again = try nights.run(options + ["--date", nights.date(1)], at: time)
            #expect(again.exitCode == 3 && again.errors.contains(words), "\(again.errors)")
        }
        #expect(try requests(server) == sent && !nights.has(2))
        // The next night names a command that sends the rest.
        let rest = "--date \(nights.date(1))"
        let late = ", and with a later --deadline, or without one, because that night's has passed"
        let dated = try nights.run(options + ["--dry-run"], at: (2, "19:00"))
        #expect(dated.errors.contains(rest + late), "\(dated.errors)")
        let free = try nights.run(["--dry-run"], at: (2, "19:00"))
        #expect(free.errors.contains(rest) && !free.errors.contains(late), "\(free.errors)")
        let continued = try nights.run(["--date", nights.date(1)], at: (2, "19:05"))
        #expect(continued.exitCode == 0, "\(continued.errors)")
        #expect(try requests(server) == 300)
    }

    @Test func `A night whose rows are due on another date is a warning, unless a date is named`()
        throws
    {
        let nights = try Nights(rows: 1, endpoint: "localhost:1")
        let token = try String(contentsOfFile: nights.campaign.list, encoding: .utf8)
        let list = try nights.campaign.directory.write(
            "token,tz\n\(token.dropLast()),Europe/Berlin\n", to: "zones.csv")
        func warning(_ zone: String, _ more: [String]) throws -> Bool {
            let looked = try nights.run(
                [
                    "--dry-run", "--tokens", list, "--deliver-at", "12:00", "--zone-column",
                    "tz",
                ] + more, at: (1, "23:30"), environment: ["TZ": zone])
            #expect(looked.exitCode == 0, "\(looked.errors)")
            return looked.errors.contains(
                "--deliver-at uses today's date in UTC, \(nights.date(1)), but this is the night "
                    + "of \(nights.date(2)): to deliver on \(nights.date(2)), add --on "
                    + "\(nights.date(2));")
        }
        #expect(try warning("Europe/Berlin", []))
        #expect(try !warning("Europe/Berlin", ["--on", nights.date(2)]))
        #expect(try !warning("Europe/Berlin", ["--zone-default", "Europe/Berlin"]))
        #expect(try !warning("UTC", []))
    }

    @Test func `A dry run names an earlier night that is not complete, as a start does`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 300, endpoint: server.endpoint)
        #expect(try nights.runCutShort(at: (1, "20:00")).exitCode == 3)
        let looked = try nights.run(["--dry-run"], at: (2, "20:00"))
        #expect(looked.exitCode == 0, "\(looked.errors)")
        #expect(
            looked.errors.contains("warning: the night of \(nights.date(1)) is not complete"),
            "\(looked.errors)")
        #expect(!looked.errors.contains("--cap"), "\(looked.errors)")
        // With a cap, a device may get both; a renamed ledger still counts, and ends the warning.
        let capped = ["--dry-run", "--cap", "1/2d", "--history", nights.folder]
        let both = try nights.run(capped, at: (2, "20:00"))
        #expect(both.errors.contains("so devices may get both nights' notifications"))
        let sent = try nights.statistics(1).accepted
        try files.moveItem(atPath: nights.ledger(1), toPath: nights.ledger(1) + "-ended")
        let renamed = try nights.run(capped, at: (2, "20:00"))
        #expect(!renamed.errors.contains("warning: the night of"), "\(renamed.errors)")
        #expect(sent > 0 && renamed.output.contains("FrequencyCap \(sent)\n"), "\(renamed.output)")
    }

    @Test func `A name that contains a date is a warning, in a dry run and at a start`() throws {
        let server = try RecordingServer()
        let nights = try Nights(rows: 1, endpoint: server.endpoint)
        for more in [["--dry-run"], []] {
            let dated = try nights.run(
                ["--name", "News \(nights.date(1))"] + more, at: (1, "20:00"))
            #expect(dated.exitCode == 0, "\(dated.errors)")
            #expect(
                dated.errors.contains("'News \(nights.date(1))' contains a date"), "\(dated.errors)"
            )
        }
        let named = try nights.run(["--name", "News"], at: (1, "20:00"))
        #expect(!named.errors.contains("warning"), "\(named.errors)")
    }

    @Test func `A date in a campaign file is exit 2, as it would name one night for ever`() throws {
        let nights = try Nights(rows: 1, endpoint: "localhost:1")
        let text = try String(contentsOfFile: nights.file, encoding: .utf8)
        try nights.campaign.directory.write(
            text.dropLast(2) + ",\n\"date\": \"2026-11-20\" }\n", to: "evening.json5")
        let refused = try nights.run(at: (1, "20:00"))
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(
            refused.errors.contains("'date' in a campaign file would apply to every night"),
            "\(refused.errors)")
        // The campaign that a start prints has none.
        try text.write(toFile: nights.file, atomically: true, encoding: .utf8)
        let printed = try nights.run(["--date", nights.date(1), "--print-campaign"])
        #expect(printed.exitCode == 0 && !printed.output.contains("\"date\""), "\(printed.output)")
    }

    @Test func `An interrupted retry of a night goes on with the command that its last line names`()
        throws
    {
        let server = try RecordingServer("reset")
        let nights = try Nights(rows: Self.rows, endpoint: server.endpoint)
        #expect(try nights.run(at: (1, "20:00")).exitCode == 6)
        let before = try nights.statistics(1)
        try #require(before.unknown > 20)
        let sound = try RecordingServer()
        let retry = ["--date", nights.date(1), "--retry", "unknown", "--endpoint", sound.endpoint]
        let retried = try nights.start(retry + ["--rate", "5"], at: (1, "20:10"))
        try retried.wait { ((try? nights.statistics(1).accepted) ?? 0) > before.accepted }
        retried.send(signal: SIGTERM)
        let stopped = try retried.wait(limit: 120)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(
            stopped.errors.contains("--date \(nights.date(1)) --retry unknown continues"),
            "\(stopped.errors)")
        let continued = try nights.run(retry, at: (1, "20:15"))
        #expect(continued.exitCode == 0, "\(continued.errors)")
        #expect(try sound.answers().count == before.unknown)
    }
}
