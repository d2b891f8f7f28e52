import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// More ledgers, and more segments, than a process may have files open.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ManyFilesTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func path(_ name: String) -> String { "\(directory.path)/\(name)" }

    /// Runs the command with a hard limit on open files.
    private func run(_ arguments: [String], limit: Int = 256) throws -> Finished {
        let finished = try Subprocess(
            "bash",
            ["-c", "ulimit -n \(limit) && exec \"$0\" \"$@\"", Broadside.path()] + arguments,
            in: directory
        ).wait(limit: 300)
        #expect(finished.exitCode == 0, "\(arguments.prefix(3)): \(finished.errors)")
        return finished
    }

    /// A list with the tokens of rows, and one more.
    private func list(_ rows: UInt64) throws -> String {
        try directory.write(
            (0...rows).map { DraftedLedger.token($0) + "\n" }.joined(), to: "list.txt")
    }

    @Test func `A ledger of 1,100 segments is read by each command`() throws {
        let ledger = path("ledger")
        try DraftedLedger.write(ledger, runs: 110, reactors: 10)
        let list = try list(1_100)
        let verified = try run(["ledger", "verify", "--ledger", ledger])
        #expect(verified.output.hasPrefix("sound: 1,100 "))
        let stats = try run(["ledger", "stats", "--ledger", ledger, "--json"])
        #expect(stats.output.contains(#""rejected" : 1100"#), "\(stats.output)")
        let export = try run(["ledger", "export", "--ledger", ledger])
        #expect(export.output.split(separator: "\n").count == 1_101)
        let token = DraftedLedger.token(1_099)
        let found = try run(["ledger", "find", "--ledger", ledger, "--token", token])
        #expect(found.output.contains("row 1099 rejected"), "\(found.output)")
        _ = try run(["report", "--ledger", ledger, "--output", path("report.html")])
        let pruned = path("pruned.txt")
        let prune = ["prune", "--ledger", ledger, "--tokens", list, "--output", pruned]
        _ = try run(prune + ["--max-removed", "100"])
        #expect(
            try String(contentsOfFile: pruned, encoding: .utf8)
                == DraftedLedger.token(1_100) + "\n")
        let repaired = path("repaired")
        let told = try run(["ledger", "repair", "--ledger", ledger, "--output", repaired])
        #expect(told.output.contains("is sound"), "\(told.output)")
        _ = try run(["ledger", "verify", "--ledger", repaired])
    }

    @Test func `640 parts are merged, and the merged ledger is read`() throws {
        let count: UInt16 = 640
        var parts: [String] = []
        for index in 1...count {
            parts.append(path("part-\(index)"))
            try DraftedLedger.write(
                parts.last!, part: CampaignPart(index: index, count: count),
                firstRow: UInt64(index - 1))
        }
        let merged = path("merged")
        let told = try run(["ledger", "merge", "--output", merged] + parts)
        #expect(told.output.hasPrefix("merged 640 parts' ledgers into \(merged)"), "\(told.output)")
        let verified = try run(["ledger", "verify", "--ledger", merged])
        #expect(verified.output.contains("640 parts"), "\(verified.output)")
        let export = try run(["ledger", "export", "--ledger", merged])
        #expect(export.output.split(separator: "\n").count == 641)
        let stats = try run(["ledger", "stats", "--ledger", merged, "--json"])
        #expect(stats.output.contains(#""rejected" : 640"#), "\(stats.output)")
    }

    @Test func `A prune reads 70 ledgers of 16 segments`() throws {
        var ledgers: [String] = []
        for night in 0..<70 {
            let ledger = path("night-\(night)")
            try DraftedLedger.write(ledger, reactors: 16, firstRow: UInt64(16 * night))
            ledgers += ["--ledger", ledger]
        }
        let pruned = path("pruned.txt")
        let list = try list(1_120)
        _ = try run(
            ["prune", "--tokens", list, "--output", pruned, "--max-removed", "100"] + ledgers)
        #expect(
            try String(contentsOfFile: pruned, encoding: .utf8)
                == DraftedLedger.token(1_120) + "\n")
    }
}
