import BroadsideTestSupport
import Foundation
import Testing

/// Starts of `broadside night` with an option or input that may be a mistake: what is sent, and what the user reads.
@Suite(.timeLimit(.minutes(60)))
struct NightMistakeTests {
    private static let rows = 60
    /// Options with which a night of more than 20 rows is stopped in the middle.
    private static let cutShort = ["--deadline", "1s", "--rate", "20"]
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
        #expect(told.contains("--skip-dead counts what the nights of the last 30 d"), "\(told)")
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
                .contains("--cap counts what the nights of the last 7 d"))
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
                    && past.errors.contains("\(nights.date(4)) has begun"), "\(past.errors)")
            #expect(try requests(server) == sent * Self.rows)
        }
        let again = try nights.run(["--date", nights.date(1)], at: (4, "21:02"))
        #expect(again.exitCode == 0 && !again.errors.contains("warning"), "\(again.errors)")
        #expect(try requests(server) == 4 * Self.rows)
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
                    "the night of \(nights.date(day)) began with other input", difference, devices,
                    "--name NAME",
                ] { #expect(start.errors.contains(words), "\(words): \(start.errors)") }
                #expect(!start.errors.contains("--ledger"), "\(start.errors)")
            }
        }
        try refused(1, "the payload differs", "no device has got")
        try before.write(toFile: payload, atomically: true, encoding: .utf8)
        #expect(try nights.run(Self.cutShort, at: (2, "20:00")).exitCode == 3)
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
}
