import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsidePolicy
@testable import BroadsideRows

@Suite struct SentRowsTests {
    /// What a ledger with these rows says.
    private func rows(
        accepted: Int = 0, rejected: Int = 0, gone: Int = 0, others: [RowState] = []
    ) throws -> SentRows {
        let draft = testDraft()
        let count = accepted + rejected + gone + others.count
        draft.writer.reserve(testChunk(0, count), nowMilliseconds: testTime)
        var row: UInt64 = 0
        for _ in 0..<accepted {
            accept(draft, row)
            row += 1
        }
        for place in 0..<(rejected + gone) {
            draft.writer.settled(
                row: row, state: .rejected, status: place < rejected ? 400 : 410, reason: 7,
                attempts: 1, token: [UInt8](repeating: 0x61, count: 8).span.bytes,
                tokenIsText: false, nowMilliseconds: testTime)
            row += 1
        }
        for state in others {
            if state != .inDoubt { draft.writer.settled(row: row, state) }
            row += 1
        }
        draft.sync()
        return SentRows(try LedgerSummary(testIndex([draft])))
    }

    @Test func `All rows count as refused only if some were sent and each was refused`() throws {
        #expect(try rows(rejected: 1).areAllRefused)
        #expect(try rows(rejected: 40, others: [.invalid, .skipped]).areAllRefused)
        #expect(try rows(rejected: 40).refused == 40)
        #expect(try !rows(others: [.invalid, .skipped]).areAllRefused)
        #expect(try !rows(accepted: 1, rejected: 40).areAllRefused)
        for state: RowState in [.failed, .unknown, .inDoubt] {
            #expect(try !rows(rejected: 40, others: [state]).areAllRefused)
        }
    }

    @Test func `A 410 shows that APNs knows the device for this topic`() throws {
        #expect(try !rows(rejected: 40, gone: 1).areAllRefused)
        #expect(try !rows(gone: 3).areAllRefused)
    }
}
