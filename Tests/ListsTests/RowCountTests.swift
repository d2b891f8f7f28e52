import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideLists

/// A ledger numbers rows below `LedgerFormat.rowLimit`.
@Suite struct RowCountTests {
    private func source(rows: UInt64, first: UInt64) throws -> ListSource {
        let text = String(repeating: String(repeating: "ab", count: 32) + "\n", count: Int(rows))
        return try ListSource(
            list: TokenList(lines: Array(text.utf8)), pool: ChunkPool(limit: 3), plan: nil,
            selection: ListSelection(
                rows: CampaignRows(
                    part: ListExtent(
                        firstRow: first, byteOffset: 0, firstLine: first + 1, endRow: nil,
                        endByteOffset: nil))))
    }

    @Test(arguments: [2, 3, 4])
    func `A list with more rows than a ledger can number is refused`(rows: UInt64) throws {
        let first = LedgerFormat.rowLimit - 3
        let source = try source(rows: rows, first: first)
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

    @Test func `Behind an error neither rows nor the list's end follow`() throws {
        let source = try source(rows: 4, first: LedgerFormat.rowLimit - 3)
        #expect(try source.next(rowLimit: 2)?.rowCount == 2)
        for _ in 0..<2 {
            #expect(throws: BroadsideError.self) { _ = try source.next(rowLimit: 2) }
        }
    }
}
