import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Reads on behind the end of a gap.
private struct EagerList: LedgerListReader {
    private let list = TestList()
    var isAvailable: Bool { true }

    func load(_ chunk: ChunkReservation, into rows: inout ListRows) throws(LedgerError) {
        try list.load(chunk, into: &rows)
    }

    func loadNext(
        of gap: ListExtent, into rows: inout ListRows
    ) throws(LedgerError) -> ChunkReservation? {
        var gap = gap
        gap.endRow = nil
        return try list.loadNext(of: gap, into: &rows)
    }
}

/// `ledger find`: rows by their number or token, reserved or not.
@Suite struct LedgerSearchTests {
    /// Rows 3 to 8 and 12 to 13 of 21 are reserved.
    private func index(_ rows: CampaignRows = CampaignRows()) throws -> LedgerIndex {
        let draft = testDraft()
        draft.writer.reserve(testChunk(3, 6), nowMilliseconds: testTime)
        draft.writer.reserve(testChunk(12, 2), nowMilliseconds: testTime)
        draft.writer.accepted(
            row: 3, fingerprint: fingerprint(3), attempts: 1, nowMilliseconds: testTime)
        draft.writer.accepted(
            row: 4, fingerprint: fingerprint(4), attempts: 2, nowMilliseconds: testTime)
        draft.writer.settled(row: 5, .rejected, token: Array(token(5).utf8))
        draft.writer.settled(
            row: 6, state: .invalid, status: 0, reason: 9, attempts: 0,
            token: Array("oops".utf8).span.bytes, tokenIsText: true, nowMilliseconds: testTime)
        draft.writer.settled(row: 12, .skipped, token: Array(token(5).utf8))
        draft.write()
        return try LedgerIndex(
            segments: [draft.segment], campaign: testCampaign, recordedLengths: [:], rows: rows)
    }

    private func token(_ row: Int) -> String {
        let digits = String(row, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private func fingerprint(_ row: Int) -> UInt64 {
        TokenText.fingerprint(Array(token(row).utf8).span.bytes)
    }

    private func find(
        _ wanted: LedgerSearch.Wanted, _ list: some LedgerListReader, silence: Bool = false,
        rows: CampaignRows = CampaignRows(), rowCount: UInt64? = 21, erased: [UInt64] = []
    ) throws -> [ExportRow] {
        let search = LedgerSearch(
            for: wanted, acceptsBySilence: silence, reasonText: { "Reason\($0)" },
            appendNotificationID: { row, output in output += Array("id-\(row)".utf8) })
        var list = list
        var index = try index(rows)
        index.erasedRows = ErasedRows(erased)
        return try search.run(index, rowCount: rowCount, list: &list)
    }

    private func byToken(_ row: Int) -> LedgerSearch.Wanted {
        .token(Array(token(row).utf8), fingerprint: fingerprint(row))
    }

    @Test(arguments: 0..<24 as Range<UInt64>)
    func `A row is found by its number, with the list or without`(row: UInt64) throws {
        let states: [UInt64: RowState] = [
            3: .accepted, 4: .accepted, 5: .rejected, 6: .invalid, 7: .inDoubt, 8: .inDoubt,
            12: .skipped, 13: .inDoubt,
        ]
        let whole = try find(.row(row), TestList())
        let alone = try find(.row(row), NoLedgerList())
        guard row < 21 else {
            #expect(whole.isEmpty && alone.isEmpty)
            return
        }
        for found in [whole, alone] {
            #expect(found.map(\.row) == [row] && found[0].state == states[row] ?? .remaining)
            #expect(String(decoding: found[0].notificationID, as: UTF8.self) == "id-\(row)")
            #expect((found[0].settledAtMilliseconds != nil) == found[0].state.isSettled)
        }
        let text = String(decoding: whole[0].token, as: UTF8.self)
        #expect(whole[0].line == 2 * row + 2)
        #expect(text == (row == 6 ? "oops" : row == 12 ? token(5) : token(Int(row))))
        // Without the list only what the ledger keeps is known.
        let known = String(decoding: alone[0].token, as: UTF8.self)
        #expect(known == (row == 5 || row == 12 ? token(5) : row == 6 ? "oops" : ""))
        #expect(alone[0].line == nil)
    }

    @Test func `A row of an erased device is not found by its token, and shows none`() throws {
        for row: UInt64 in [0, 7, 9, 13, 20] {
            #expect(try find(byToken(Int(row)), TestList(), erased: [row]).isEmpty)
            let found = try find(.row(row), TestList(), erased: [row])
            #expect(
                found.map { String(decoding: $0.token, as: UTF8.self) }
                    == ["forgotten-0000000000000000"])
        }
    }

    @Test func `Each row of a token is found`() throws {
        #expect(try find(byToken(5), TestList()).map(\.row) == [5, 12])
        #expect(try find(byToken(5), NoLedgerList()).map(\.row) == [5, 12])
        for row in [0, 2, 7, 8, 9, 11, 13, 14, 20] {
            #expect(try find(byToken(row), TestList()).map(\.row) == [UInt64(row)])
            #expect(try find(byToken(row), NoLedgerList()).isEmpty)
        }
        // The fingerprint of an accepted row, which the list confirms.
        #expect(try find(byToken(4), TestList()).map(\.row) == [4])
        #expect(try find(byToken(4), NoLedgerList()).map(\.row) == [4])
        #expect(try find(.token(Array("ab".utf8), fingerprint: fingerprint(4)), TestList()).isEmpty)
        #expect(try find(byToken(21), TestList()).isEmpty)
        let text = LedgerSearch.Wanted.token(Array("oops".utf8), fingerprint: 1)
        #expect(try find(text, NoLedgerList()).map(\.row) == [6])
    }

    @Test(arguments: 0..<21)
    func `A row that a run reserved is found once`(
        row: Int
    ) throws {
        let found = try find(byToken(row), EagerList()).map(\.row)
        #expect(try found == find(byToken(row), TestList()).map(\.row))
    }

    @Test func `A found row is described as in an export`() throws {
        let rejected = try find(.row(5), TestList())[0]
        #expect(rejected.status == 410 && rejected.attempts == 1)
        #expect(String(decoding: rejected.reason, as: UTF8.self) == "Reason7")
        let accepted = try find(.row(4), TestList())[0]
        #expect(accepted.status == 200 && accepted.attempts == 2 && accepted.reason.isEmpty)
        #expect(accepted.settledAtMilliseconds == testTime)
        #expect(try find(.row(4), TestList(), silence: true)[0].status == nil)
        #expect(try find(.row(5), TestList(), silence: true)[0].status == 410)
        let invalid = try find(.row(6), TestList())[0]
        #expect(invalid.status == nil && invalid.attempts == 0)
    }

    @Test func `Rows of other shards, or behind the limit, are not the campaign's`() throws {
        let odd = CampaignRows(selection: RowSelection(divisor: 2, remainder: 1))
        for row in 0..<21 as Range<UInt64> {
            let expected = row % 2 == 1 ? [row] : []
            #expect(try find(.row(row), TestList(), rows: odd).map(\.row) == expected)
            #expect(try find(.row(row), NoLedgerList(), rows: odd).map(\.row) == expected)
            #expect(try find(byToken(Int(row)), TestList(), rows: odd).map(\.row) == expected)
        }
        let limited = CampaignRows(limit: 10)
        #expect(try find(.row(9), TestList(), rows: limited).count == 1)
        #expect(try find(.row(10), TestList(), rows: limited).isEmpty)
        #expect(try find(.row(10), NoLedgerList(), rows: limited).isEmpty)
        // What an earlier run may have sent there belongs to it.
        #expect(try find(.row(13), TestList(), rows: limited).count == 1)
        #expect(try find(.row(9), NoLedgerList(), rowCount: nil).isEmpty)
        #expect(try find(.row(9), NoLedgerList(), rowCount: 9).isEmpty)
    }
}
