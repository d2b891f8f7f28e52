import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Ledgers whose checksums fit, with values that no run can have written, to the command.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ImpossibleLedgerTests {
    private let directory: TemporaryDirectory
    private let list: String

    init() throws {
        directory = try TemporaryDirectory()
        list = try directory.write(DraftedLedger.token(0) + "\n", to: "list.txt")
    }

    private var ledger: String { "\(directory.path)/ledger" }

    /// Runs everything that reads the ledger.
    ///
    /// - Parameter repairs: What a repair ends with.
    private func expectDamage(_ what: String, repairs: Int32) throws {
        let output = ["--output", "\(directory.path)/output"]
        let own = ["--ledger", ledger]
        for call in [
            ["ledger", "stats"] + own, ["ledger", "export"] + own, ["ledger", "verify"] + own,
            ["ledger", "find", "--token", DraftedLedger.token(0)] + own,
            ["report"] + own + output, ["prune", "--tokens", list] + own + output,
            ["ledger", "merge"] + output + [ledger],
        ] {
            let refused = try Broadside.run(call, in: directory)
            #expect(refused.exitCode == 5, "\(what), \(call): \(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(what), \(call): \(refused.errors)")
            #expect(!FileManager.default.fileExists(atPath: output[1]))
        }
        let repaired = try Broadside.run(
            ["ledger", "repair", "--tokens", list] + own + output, in: directory)
        #expect(repaired.exitCode == repairs, "\(what): \(repaired.output)\(repaired.errors)")
    }

    @Test(arguments: [
        (#""retries" : 0"#, #""retries" : 18446744073709551615"#),
        (#""rowCount" : 1"#, #""rowCount" : 18446744073709551615"#),
        (#""number" : 1"#, #""number" : 4294967295"#),
        (
            #""startedAtMilliseconds" : 1790000000000"#,
            #""startedAtMilliseconds" : 18446744073709551615"#
        ),
        (#""index" : 1"#, #""index" : 0"#), (#""count" : 1"#, #""count" : 0"#),
        (#""listByteCount" : 65"#, #""listByteCount" : 18446744073709551615"#),
    ])
    func `Impossible values in a manifest are damage to each reader`(field: String, other: String)
        throws
    {
        try DraftedLedger.write(ledger, part: CampaignPart(index: 1, count: 1))
        let file = URL(filePath: "\(ledger)/manifest.json")
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        #expect(text.contains(field))
        let changed = Array(text.replacing(field, with: other).utf8)
        let sealed = try #require(Manifest.sealed(changed))
        for name in ["manifest.json", "manifest.copy"] {
            try Data(sealed).write(to: URL(filePath: "\(ledger)/\(name)"))
        }
        try expectDamage(field, repairs: 5)
    }

    @Test func `Impossible values in a segment are damage, and a repair keeps nothing of them`()
        throws
    {
        for (what, time, byte) in [
            ("time", UInt64.max, UInt64(0)), ("place", DraftedLedger.time, UInt64.max - 65),
            ("half", DraftedLedger.time, UInt64(Int64.max)),
        ] {
            let part = CampaignPart(index: 1, count: 1)
            try DraftedLedger.write(ledger, part: part, settledAt: time, firstByte: byte)
            try expectDamage(what, repairs: 0)
            try FileManager.default.removeItem(atPath: ledger)
            try FileManager.default.removeItem(atPath: "\(directory.path)/output")
        }
    }
}
