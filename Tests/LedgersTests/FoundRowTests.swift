import BroadsideLedgerFormat
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Rows of `ledger find` in several ledgers.
@Suite struct FoundRowTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func `A row of a copy names the ledger that has the same notification`() throws {
        let path = directory.path
        for part: UInt16 in [1, 2] {
            try DraftedLedger.write(
                "\(path)/\(part)", runs: 2, part: CampaignPart(index: part, count: 2), firstRow: 5)
        }
        try FileManager.default.copyItem(atPath: "\(path)/1", toPath: "\(path)/copy")
        func find(_ token: UInt64) throws -> [FoundRow] {
            var rows: [FoundRow] = []
            for name in ["1", "2", "copy"] {
                rows.add(
                    try LedgerReader(path: "\(path)/\(name)").find(
                        notificationID: nil, token: DraftedLedger.token(token), tokens: nil))
            }
            return rows
        }
        let rows = try find(6)
        #expect(rows.map(\.ledger) == ["1", "2", "copy"].map { "\(path)/\($0)" })
        #expect(rows.map(\.same) == [nil, nil, "\(path)/1"])
        let words = ", the same notification as in \(path)/1"
        #expect(rows.map { $0.text.hasSuffix(words) } == [false, false, true])
        let objects = try rows.map { row in
            try #require(
                try JSONSerialization.jsonObject(with: Data(row.json.utf8)) as? [String: Any])
        }
        #expect(objects.map { $0["same_as"] as? String } == [nil, nil, "\(path)/1"])
        #expect(objects.map { $0["part"] as? Int } == [1, 2, 1])
        #expect(try find(7).isEmpty)
    }
}
