import Campaign
import Support
import Testing

@testable import Lists

/// A ledger numbers rows below `LedgerFormat.rowLimit`.
@Suite struct RowCountTests {
    @Test(arguments: [2, 3, 4])
    func `A list with more rows than a ledger can number is refused`(rows: UInt64) throws {
        let text = String(repeating: String(repeating: "ab", count: 32) + "\n", count: Int(rows))
        let first = LedgerFormat.rowLimit - 3
        let source = try ListSource(
            list: TokenList(lines: Array(text.utf8)), pool: ChunkPool(limit: 3), plan: nil,
            rows: CampaignRows(
                part: ListGap(
                    firstRow: first, byteOffset: 0, firstLine: first + 1, endRow: nil,
                    endByteOffset: nil)),
            skips: nil)
        let read = Result { () throws(BroadsideError) in
            try source.next(rowLimit: .max)?.end.row
        }
        switch read {
        case .success(let end): #expect(rows < 4 && end == first + rows)
        case .failure(let error):
            #expect(rows == 4 && error.exitCode == 2)
            #expect(error.message.contains("more than 1,099,511,627,776 rows"))
        }
    }
}
