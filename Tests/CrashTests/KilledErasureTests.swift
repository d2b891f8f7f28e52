import BroadsideTestSupport
import Foundation
import Testing

/// `ledger forget`, killed at each of its calls that change files, or failing there: each file is the old or the new
/// one, the ledger is valid, and the next call does the rest.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct KilledErasureTests {
    private static let rows = 120
    private let campaign: Campaign
    private let before: String
    private let devices: String
    private let files = FileManager.default

    /// Makes a ledger with each kind of file: two waves of two segments with arms, a list from standard input, skipped
    /// and invalid rows, figures with a token.
    init() throws {
        let answers = ["--unregistered", "0.3", "--bad-token", "0.1", "--seed", "5"]
        let (server, later) = (
            try LocalAPNs(answers), try LocalAPNs(answers, clock: TwoWaves.later)
        )
        campaign = try Campaign(rows: Self.rows)
        let tokens = campaign.tokens
        let suppressed = try campaign.directory.write(tokens.token(5) + "\n", to: "suppress.txt")
        let list = try campaign.directory.write(
            "token,tz\n"
                + (0..<Self.rows).map { "\(tokens.token($0)),\(TwoWaves.zone($0))\n" }.joined()
                + "\(tokens.token(4))a,UTC\n", to: "piped")
        let options =
            [
                "--tokens", "-", "--format", "csv", "--reactors", "2", "--connections", "2",
                "--suppress", suppressed, "--label", "device=\(tokens.token(4))", "--split",
                "a=40,b=40", "--split-salt", "s",
            ] + TwoWaves().options
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, options), in: campaign.directory, input: list)
        try TwoWaves.wait(sending, of: campaign)
        sending.send(signal: SIGTERM)
        #expect(try sending.wait().exitCode == 3)
        let sent = try Broadside.run(
            campaign.arguments(to: later.endpoint, options + ["--resume"]),
            in: campaign.directory, input: "/dev/null",
            environment: FakeTime.fixed(TwoWaves.later))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let page = try Broadside.run(
            [
                "report", "--ledger", campaign.ledger, "--output",
                "\(campaign.directory.path)/page.html",
            ],
            in: campaign.directory)
        #expect(page.exitCode == 0, "\(page.errors)")
        var text = try String(
            contentsOfFile: "\(campaign.directory.path)/page.html", encoding: .utf8)
        text += "<!-- \(campaign.tokens.token(4)) -->\n"
        try campaign.directory.write(text, to: "ledger/report.html")
        before = campaign.directory.fresh("before")
        try files.moveItem(atPath: campaign.ledger, toPath: before)
        devices = try campaign.directory.write(
            [4, 5, 20, 21, 22, 23, 24, 70, 71, 72, 73, 119].map { tokens.token($0) + "\n" }
                .joined(),
            to: "erase.txt")
    }

    private func restore() throws {
        try? files.removeItem(atPath: campaign.ledger)
        try files.copyItem(atPath: before, toPath: campaign.ledger)
    }

    private func forget(_ environment: [String: String] = [:]) throws -> Finished {
        try Broadside.run(
            ["ledger", "forget", "--tokens", devices, "--ledger", campaign.ledger],
            in: campaign.directory, environment: environment)
    }

    private func judge(_ more: [String], _ moment: String) throws {
        let judged = try campaign.judgeErasure(
            of: devices, in: campaign.ledger, before: before, more)
        #expect(judged.exitCode == 0, "\(moment): \(judged.output.prefix(1_000))\(judged.errors)")
    }

    /// Checks that the ledger is valid, and that it says of each row what it said before.
    private func check(_ expected: (String, [String]), _ moment: String) throws {
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0, "\(moment): \(verified.errors)")
        #expect(try statistics() == expected.0, "\(moment)")
        let export = try campaign.ledger("export")
        #expect(export.exitCode == 0 && export.errors.isEmpty, "\(moment): \(export.errors)")
        #expect(
            try ExportedRow.read(export.output).map(Self.name) == expected.1, "\(moment)")
    }

    /// What an erasure leaves of a row.
    private static func name(_ row: ExportedRow) -> String { "\(row.identifier) \(row.arm)" }

    /// All counts, with those of each arm, without the device in the label.
    private func statistics() throws -> String {
        let finished = try campaign.ledger("stats", ["--json"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let token = campaign.tokens.token(4)
        return finished.output.replacing(
            token, with: String(repeating: "*", count: token.count))
    }

    private func expected() throws -> (String, [String]) {
        try restore()
        let statistics = try statistics()
        #expect(statistics.contains("\"holdout\""))
        return (statistics, try campaign.export().map(Self.name))
    }

    @Test
    func `An erasure killed at any call leaves a valid ledger, and the next call does the rest`()
        throws
    {
        let expected = try expected()
        let library = try Shim.compile("kill-at-call", in: campaign.directory)
        let calls = try KilledCalls.each { call in
            try restore()
            let killed = try forget(["LD_PRELOAD": library, "KILL_AT": "\(call)"])
            if killed.exitCode == 0 { return false }
            try #require(killed.exitCode == -SIGKILL, "call \(call): \(killed.errors)")
            try judge(["--partly"], "call \(call)")
            try check(expected, "call \(call)")
            let next = try forget()
            #expect(next.exitCode == 0, "call \(call): \(next.errors)")
            try judge([], "call \(call)")
            let names = try campaign.directory.names(in: campaign.ledger)
            #expect(!names.contains { $0.hasSuffix(".new") }, "call \(call): \(names)")
            return true
        }
        #expect(calls >= 30, "segments, manifest, list, figures and page make more calls than that")
        try judge([], "the end")
        try check(expected, "the end")
    }

    /// A segment with rows of the devices: which reactor gets them is not the same in each run.
    private func changedSegment() throws -> String {
        try restore()
        #expect(try forget().exitCode == 0)
        return try #require(
            try campaign.directory.names(in: campaign.ledger).sorted().first { name in
                name.hasPrefix("segment-")
                    && !files.contentsEqual(
                        atPath: "\(before)/\(name)", andPath: "\(campaign.ledger)/\(name)")
            })
    }

    @Test(arguments: [ENOSPC, EIO])
    func `An erasure whose disk is full or fails keeps the old files, and ends with exit code 5`(
        code: Int32
    ) throws {
        let expected = try expected()
        let library = try Shim.compile("fail-files", in: campaign.directory)
        let others = ["tokens", "telemetry.json", "report.html"]
        let isComplete = code == ENOSPC || TestSize.isFull
        for name in [try changedSegment()] + (isComplete ? others : []) {
            for (call, file) in [
                ("open", ".\(name).new"), ("write", ".\(name).new"), ("fsync", ".\(name).new"),
                ("renameat", name),
            ] {
                try restore()
                let failed = try forget([
                    "LD_PRELOAD": library, "FAIL_CALLS": "\(call) \(code) /\(file)",
                ])
                #expect(
                    failed.exitCode == 5, "\(call) \(name): \(failed.exitCode) \(failed.errors)")
                try judge(["--partly"], "\(call) \(name)")
                try check(expected, "\(call) \(name)")
                #expect(
                    try campaign.directory.names(in: campaign.ledger)
                        .allSatisfy { !$0.hasSuffix(".new") })
            }
        }
    }
}
