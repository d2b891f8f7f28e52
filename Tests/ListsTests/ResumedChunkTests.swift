import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideLists
@testable import BroadsideRows

/// What a chunk of an earlier run brings along.
@Suite struct ResumedChunkTests {
    private let pool = ChunkPool(limit: 3)

    private func source() throws -> ListSource {
        let text = String(repeating: String(repeating: "ab", count: 32) + "\n", count: 4)
        return try ListSource(
            list: TokenList(lines: Array(text.utf8)), pool: pool, plan: nil,
            selection: ListSelection())
    }

    /// The chunk that a resume reads again of four rows, with what is known of each.
    private func readAgain(
        _ dispositions: [RowDisposition], attempts: [UInt16]
    ) throws -> RowChunk {
        let first = try #require(try source().next(rowLimit: .max))
        let work = ChunkWork(
            chunk: first.reservation, dispositions: dispositions, attempts: attempts,
            sendCount: dispositions.count(where: \.isSent), unsentCount: 0)
        pool.giveBack(first)
        return try source().read(work)
    }

    /// `--max-attempts` allows 1,000, a ledger's record 65,535.
    @Test func `Attempts of earlier runs are kept`() throws {
        let chunk = try readAgain(
            [.send, .settled, .beyondLimit, .sendAgain], attempts: [300, 0, 65_535, 255])
        #expect(chunk.attempts == [300, 0, 65_535, 255])
        #expect(chunk.dispositions == [.send, .settled, .beyondLimit, .sendAgain])
    }

    @Test func `Rows without earlier attempts take no memory for them`() throws {
        let chunk = try readAgain(
            [.send, .send, .skipped(.suppressed), .send], attempts: [0, 0, 0, 0])
        #expect(chunk.attempts == nil)
        #expect(chunk.dispositions?[2] == .skipped(.suppressed))
    }
}
