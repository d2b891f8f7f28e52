import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// What the rows of a ledger add up to, and those of several ledgers together.
@Suite struct LedgerSummaryTests {
    /// Rows 0 to 9, of which the last four lie behind the limit.
    private func summary() throws -> LedgerSummary {
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        for (row, status) in [(0, 410), (1, 400), (2, 410)] as [(UInt64, UInt16)] {
            draft.writer.settled(
                row: row, state: .rejected, status: status, reason: 7, attempts: 1,
                token: [UInt8]().span.bytes, tokenIsText: false, nowMilliseconds: testTime)
        }
        draft.writer.settled(row: 3, .failed)
        accept(draft, 4)
        draft.writer.settled(row: 8, .unknown, reason: 8)
        draft.write()
        let index = try LedgerIndex(
            segments: [draft.segment], campaign: testCampaign, rows: CampaignRows(limit: 6))
        return try LedgerSummary(index)
    }

    private func numbers(_ summary: LedgerSummary) -> [UInt64] {
        [summary.reservedRowCount, summary.beyondLimitCount, summary.goneCount]
            + RowState.allCases.map(summary.count)
    }

    @Test func `Devices that are gone are those of rows that were rejected with 410`() throws {
        let summary = try summary()
        #expect(numbers(summary) == [10, 4, 2, 0, 1, 3, 0, 0, 1, 1, 4])
        #expect(summary.counts.reasons.codes == [7: 4, 8: 1])
        // Row 8 is beyond the limit, and row 3 is not.
        #expect(summary.unsendable[.unknown] == 1 && summary.unsendable[.failed] == 0)
    }

    @Test func `Every number of two summaries is in their sum`() throws {
        let one = try summary()
        var both = one
        both.add(one)
        #expect(numbers(both) == numbers(one).map { 2 * $0 })
        #expect(both.unsendable.beyondLimit[.unknown] == 2)
        #expect(both.counts.reasons.codes == [7: 8, 8: 2])
        both.add(LedgerSummary())
        #expect(numbers(both) == numbers(one).map { 2 * $0 })
    }

    @Test func `Reopened rows count neither as settled nor under their reason`()
        throws
    {
        let summary = try summary()
        let all = summary.kept(reopening: [])
        #expect(all.settled == 6 && all[.inDoubt] == 0 && all[.remaining] == 0)
        #expect(all.reasons == summary.counts.reasons)
        let rest = summary.kept(reopening: [.failed, .unknown])
        #expect(rest.settled == 4 && rest[.failed] == 0 && rest[.unknown] == 0)
        #expect(rest.reasons.codes == [7: 3])
    }
}
