import BroadsideTestSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Rows of a reservation that a run leaves for later, as a mask.
@Suite struct ReleasedRowsTests {
    private func released(_ rows: [Int], of count: Int) -> ReleasedRows {
        var released = ReleasedRows(count: count)
        for row in rows { released.insert(row) }
        return released
    }

    @Test func `Rows of the mask remain, the others are in doubt until they have verdicts`() throws
    {
        let first = testDraft()
        _ = first.writer.reserve(
            testChunk(10, 200), releasing: released([0, 5, 127, 128, 199], of: 200),
            nowMilliseconds: testTime)
        accept(first, 11)
        first.write()
        let states = try allStates(testIndex([first]))
        let remaining = (10..<210 as Range<UInt64>).filter { states[$0] == .remaining }
        #expect(remaining == [10, 15, 137, 138, 209])
        #expect(states[11] == .accepted && states[12] == .inDoubt)
    }

    /// The bits of the mask look like records to one who takes them for such.
    @Test func `A ledger without tokens keeps a mask and what follows it`() throws {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer = LedgerWriter(
            campaign: testCampaign, epoch: 1, reactor: 0, keepsTokens: false)
        let rows = (0..<640).filter { $0 % 3 != 1 }
        _ = draft.writer.reserve(
            testChunk(0, 640), releasing: released(rows, of: 640), nowMilliseconds: testTime)
        accept(draft, 1)
        accept(draft, 4)
        draft.write()
        let states = try allStates(testIndex([draft]))
        let remaining = states.filter { $0.value == .remaining }.keys.sorted()
        #expect(remaining == rows.map(UInt64.init))
        #expect(states[1] == .accepted && states[4] == .accepted && states[7] == .inDoubt)
    }

    @Test func `A later run sends what an earlier one left, and each row counts its own attempts`()
        throws
    {
        let (first, second) = (testDraft(1), testDraft(2))
        first.writer.reserve(testChunk(0, 4), nowMilliseconds: testTime)
        accept(first, 0)
        first.writer.release(row: 1, count: 3, attempts: 2, nowMilliseconds: testTime)
        first.write()
        _ = second.writer.reserve(
            testChunk(0, 4), releasing: released([1, 3], of: 4), nowMilliseconds: testTime)
        accept(second, 2)
        second.write()
        let verdicts = try allVerdicts(testIndex([first, second]))
        #expect(verdicts[0]?.state == .accepted && verdicts[2]?.state == .accepted)
        #expect(verdicts[1]?.state == .remaining && verdicts[1]?.attempts == 2)
        #expect(verdicts[3]?.state == .remaining && verdicts[3]?.attempts == 2)
    }

    /// A segment that is cut off behind any of its blocks has a reservation and its mask, or
    /// neither.
    @Test(arguments: [1, 128, 129, 4_000, 65_536])
    func `A reservation and its mask are in one block`(count: Int) throws {
        let draft = testDraft()
        var random = SeededRandom(seed: UInt64(count))
        var expected: [UInt64: Bool] = [:]
        for chunk in 0..<UInt64(max(2, min(40, 12_000 / count))) {
            var rows = ReleasedRows(count: count)
            for row in 0..<count where random.next() % 3 == 0 {
                rows.insert(row)
                expected[chunk * UInt64(count) + UInt64(row)] = true
            }
            // Blocks are filled to any extent before the next one.
            _ = draft.writer.reserve(
                testChunk(chunk * UInt64(count), count), releasing: rows,
                nowMilliseconds: testTime + chunk * 70_000)
            for row in 0..<min(count, Int(random.next() % 900))
            where expected[chunk * UInt64(count) + UInt64(row)] == nil {
                accept(draft, chunk * UInt64(count) + UInt64(row))
            }
        }
        draft.write()
        let whole = draft.segment
        var cuts: [UInt64] = []
        var reader = BlockReader()
        let sound = try ValidatedSegment(
            checking: whole, campaign: testCampaign, recordedByteCount: nil, hasHeader: true,
            skipsAccepted: true, with: &reader
        ) { _, _ in }
        reader.open(whole, seed: sound.seed, range: sound.blocks, clock: 0)
        while case .block = try reader.nextBlock() { cuts.append(reader.position) }
        #expect(!cuts.isEmpty)
        for cut in cuts.prefix(12) {
            let part = SegmentDraft(
                campaign: testCampaign, epoch: draft.epoch, reactor: draft.reactor)
            part.bytes = Array(draft.bytes[..<Int(cut)])
            let states = try allStates(testIndex([part]))
            for (row, state) in states {
                #expect((state == .remaining) == (expected[row] == true), "row \(row) at \(cut)")
            }
        }
    }

    @Test func `A mask has a bit for each row, in whole slots`() {
        #expect(LedgerFormat.partialReleaseSlots(rows: 128) == 2)
        #expect(LedgerFormat.partialReleaseSlots(rows: 129) == 3)
        #expect(ReleasedRows(count: 3).isEmpty && !released([2], of: 3).isEmpty)
    }
}
