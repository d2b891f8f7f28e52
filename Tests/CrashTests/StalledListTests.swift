import BroadsideTestSupport
import Foundation
import Testing

/// The disk below the token list hangs before, in or at the end of a run: nobody waits for it who has
/// decided to end.
@Suite(.timeLimit(.minutes(60)))
struct StalledListTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    /// Reads of the list hang once this file is there; the first that does writes into it.
    private let from: String
    private let environment: [String: String]

    /// - Parameter rows: More than a run reads before the list hangs.
    init(rows: Int = 12_000) throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: rows)
        from = "\(campaign.directory.path)/hang"
        environment = [
            "LD_PRELOAD": try Shim.compile("hang-at-read", in: campaign.directory),
            "HANG_FROM": from, "HANG_FILE": campaign.list,
        ]
    }

    private func start(_ what: String, _ more: [String], hangsAfter reads: Int? = nil) throws
        -> Subprocess
    {
        let deadline = what == "--deadline" ? ["--deadline", "8s"] : []
        return try Broadside.start(
            campaign.arguments(to: server.endpoint, more + deadline), in: campaign.directory,
            environment: environment.merging(
                reads.map { ["HANG_AFTER": "\($0)"] } ?? [:], uniquingKeysWith: { $1 }))
    }

    private func hang() throws { _ = try campaign.directory.write("", to: "hang") }

    private func waitForHang(_ sending: Subprocess) throws {
        try sending.wait { (try? Data(contentsOf: URL(filePath: from)))?.isEmpty == false }
    }

    /// `SignalTests` compare SIGTERM and SIGINT.
    private static func ends(_ other: String...) -> [String] {
        ["SIGINT", "SIGINT twice", "--deadline"] + other
            + TestSize.cases(["SIGTERM"], otherwise: [])
    }

    @Test(arguments: ends())
    func `A read before the first row that never ends does not delay the exit`(what: String) throws
    {
        // So many rows take several reads.
        try Self(rows: 40_000).endBeforeFirstRow(by: what)
    }

    private func endBeforeFirstRow(by what: String) throws {
        // Each row is read several times then.
        let more = ["--duplicates", "skip"]
        var looks = 0
        for reads in 0..<40 where looks < 4 {
            try hang()
            let sending = try start(what, more, hangsAfter: reads)
            defer { sending.send(signal: SIGKILL) }
            try waitForHang(sending)
            // Before the ledger is made a signal kills the process.
            guard FileManager.default.fileExists(atPath: campaign.ledger) else { continue }
            looks += 1
            try end(sending, by: what)
            let stopped = try sending.wait(limit: 60)
            #expect(stopped.exitCode == 3, "\(reads) reads: \(stopped.errors)")
            let why = what == "--deadline" ? "the deadline passed" : "interrupted"
            #expect(
                stopped.errors.contains("\(why) before the first row was sent"),
                "\(stopped.errors)")
            try FileManager.default.removeItem(atPath: campaign.ledger)
        }
        #expect(looks == 4)
        let sent = try campaign.send(to: server.endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try expectEachRowOnce()
    }

    @Test(arguments: ends("control stop"))
    func `A read of the list that never ends does not delay the exit`(what: String) throws {
        let sending = try start(what, ["--rate", "1200"])
        defer { sending.send(signal: SIGKILL) }
        try campaign.waitForRows(sending)
        try hang()
        try waitForHang(sending)
        try end(sending, by: what)
        try expectRest(sending, what)
    }

    @Test func `A read of more than 5 s is one line in the log`() throws {
        let sending = try start("SIGTERM", ["--rate", "1200", "--log", "json"])
        defer { sending.send(signal: SIGKILL) }
        try campaign.waitForRows(sending)
        try hang()
        try waitForHang(sending)
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains("list-silent")
        }
        // Time for a second line.
        sleep(3)
        try end(sending, by: "SIGTERM")
        let stopped = try sending.wait(limit: 60)
        let told = stopped.errorLines.filter { $0.contains(#""event":"list-silent""#) }
        #expect(told.count == 1, "\(stopped.errors)")
        #expect(told.first?.contains("tokens.txt: one read has taken 5 s") == true)
        try expectRest(stopped, "SIGTERM")
    }

    /// What is left of the list is counted at the end.
    @Test(arguments: ends("control stop"))
    func `A read at the list's end that never ends does not delay the exit`(what: String) throws {
        let sending = try start(what, ["--rate", "600"])
        defer { sending.send(signal: SIGKILL) }
        try campaign.waitForRows(sending)
        try control("pause")
        // What was asked of the list is read by then.
        usleep(500_000)
        try hang()
        #expect(try Data(contentsOf: URL(filePath: from)).isEmpty)
        try end(sending, by: what)
        try waitForHang(sending)
        try expectRest(sending, what)
    }

    private func control(_ words: String...) throws {
        let told = try Broadside.run(
            ["control", "--ledger", campaign.ledger] + words, in: campaign.directory)
        #expect(told.exitCode == 0, "\(told.errors)")
    }

    private func end(_ sending: Subprocess, by what: String) throws {
        switch what {
        case "SIGTERM": sending.send(signal: SIGTERM)
        case "SIGINT": sending.send(signal: SIGINT)
        case "SIGINT twice":
            sending.send(signal: SIGINT)
            usleep(1_000_000)
            sending.send(signal: SIGINT)
        case "control stop": try control("stop")
        default: break
        }
    }

    private func expectRest(_ sending: Subprocess, _ what: String) throws {
        try expectRest(try sending.wait(limit: 60), what)
    }

    private func expectRest(_ stopped: Finished, _ what: String) throws {
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        // A deadline counts from a campaign's first start.
        let later = what == "--deadline" ? ["--deadline", "1h"] : []
        let resumed = try campaign.send(to: server.endpoint, ["--resume"] + later)
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        try expectEachRowOnce()
    }

    private func expectEachRowOnce() throws {
        let taken = try server.finish().map { $0[4] }
        let count = campaign.tokens.count
        #expect(taken.count == count && Set(taken).count == count)
    }
}
