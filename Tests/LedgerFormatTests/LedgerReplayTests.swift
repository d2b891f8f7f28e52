import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

@Suite struct LedgerReplayTests {
    @Test func `A reserved row without verdict is in doubt, and a released one remains`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        accept(first, 10)
        first.writer.settled(row: 11, .rejected)
        first.writer.release(row: 15, count: 5, attempts: 3, nowMilliseconds: testTime)
        // A verdict counts, whether the release came before it or after.
        accept(first, 16)
        accept(first, 14)
        first.writer.release(row: 14, count: 1, attempts: 0, nowMilliseconds: testTime)
        first.write()
        let verdicts = try allVerdicts(testIndex([first]))
        #expect(verdicts.count == 10)
        #expect(verdicts[10]?.state == .accepted && verdicts[11]?.state == .rejected)
        #expect(verdicts[12]?.state == .inDoubt && verdicts[13]?.state == .inDoubt)
        #expect(verdicts[14]?.state == .accepted && verdicts[16]?.state == .accepted)
        #expect(verdicts[15]?.state == .remaining && verdicts[15]?.attempts == 3)
        #expect(verdicts[19]?.state == .remaining)
    }

    @Test func `A verdict counts in whichever segment of the run it stands`() throws {
        let (first, second) = (testDraft(1, 0), testDraft(1, 1))
        second.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        first.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        accept(first, 3)
        accept(second, 4)
        first.write()
        second.write()
        let states = try allStates(testIndex([second, first]))
        #expect(states[3] == .accepted && states[4] == .accepted && states[5] == .inDoubt)
        #expect(states[13] == .inDoubt)
    }

    @Test func `State of a chunk is dropped with the next one`() throws {
        let draft = testDraft()
        for row in 0..<50 as Range<UInt64> {
            draft.writer.reserve(testChunk(row, 1), nowMilliseconds: testTime)
            draft.writer.settled(row: row, .rejected, token: Array("00000000000000ab".utf8))
        }
        draft.write()
        let tokens = try allVerdicts(testIndex([draft])).values.map(\.token)
        let places = tokens.map { if case .bytes(let range) = $0 { range } else { 0..<0 } }
        #expect(places == Array(repeating: 0..<8, count: 50))
    }

    @Test func `A later run opens open rows and those it names, and no others`() throws {
        let first = testDraft(1)
        first.writer.reserve(testChunk(0, 8), nowMilliseconds: testTime)
        for (row, state) in [RowState.rejected, .failed, .unknown, .skipped].enumerated() {
            first.writer.settled(row: UInt64(row), state, attempts: 5)
        }
        first.writer.release(row: 5, count: 2, attempts: 2, nowMilliseconds: testTime)
        first.write()
        let second = testDraft(2)
        second.writer.reserve(testChunk(0, 8, reopens: .failed), nowMilliseconds: testTime)
        accept(second, 6)
        second.write()
        let verdicts = try allVerdicts(testIndex([first, second]))
        let states = (0..<8).map { verdicts[$0]!.state }
        #expect(
            states == [
                .rejected, .inDoubt, .unknown, .skipped, .inDoubt, .inDoubt, .accepted, .inDoubt,
            ])
        // The attempts of all runs count. Only the limit on attempts starts again.
        #expect(verdicts[1]?.attempts == 5 && verdicts[1]?.reason == 0)
        #expect(verdicts[1]?.attemptsBefore == 5)
        #expect(verdicts[5]?.attempts == 2 && verdicts[5]?.attemptsBefore == 0)

        let third = testDraft(3)
        let both: ReopenedStates = [.failed, .unknown]
        third.writer.reserve(testChunk(0, 8, reopens: both), nowMilliseconds: testTime)
        third.writer.settled(row: 2, .failed)
        third.writer.release(row: 1, count: 1, attempts: 0, nowMilliseconds: testTime)
        third.write()
        let later = try allStates(testIndex([first, second, third]))
        #expect(later[1] == .remaining && later[2] == .failed && later[0] == .rejected)
        #expect(later[6] == .accepted && later[7] == .inDoubt)
    }

    @Test func `Extents far apart are found, and blocks between them are skipped`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 200), nowMilliseconds: testTime)
        first.writer.reserve(testChunk(200, 60_000), nowMilliseconds: testTime)
        // One late verdict on the small chunk between far more on the other than a gap may hold.
        var other: UInt64 = 200
        for row in 0..<UInt64(150) {
            accept(first, row)
            first.write()
            let far = row % 15 == 0 ? 5000 : 10
            for _ in 0..<far where other < 60_200 {
                accept(first, other)
                other += 1
            }
            first.write()
        }
        let index = try testIndex([first])
        #expect(index.chunkTable[0].extentCount == 11)
        let summary = try LedgerSummary(index)
        #expect(summary.count(.accepted) == 150 + other - 200)
        let states = try allStates(index)
        #expect((0..<150).allSatisfy { states[UInt64($0)] == .accepted })
        #expect(states[150] == .inDoubt)
    }

    @Test func `More extents than a chunk may have are read as one`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 200), nowMilliseconds: testTime)
        first.writer.reserve(testChunk(200, 60_000), nowMilliseconds: testTime)
        for row in 0..<UInt64(100) {
            accept(first, row)
            first.write()
            for filler in 0..<UInt64(200) {
                first.writer.settled(
                    row: 200 + row * 300 + filler, .rejected,
                    token: [UInt8](repeating: 0x61, count: 200))
            }
            // Records of 144 bytes: well over a gap's worth.
            for filler in 200..<UInt64(300) {
                first.writer.settled(
                    row: 200 + row * 300 + filler, .rejected,
                    token: [UInt8](repeating: 0x67, count: 200))
                if filler % 25 == 0 { first.write() }
            }
            for extra in 0..<UInt64(100) {
                first.writer.settled(
                    row: 30_200 + row * 100 + extra, .rejected,
                    token: [UInt8](repeating: 0x67, count: 200))
            }
            first.write()
        }
        let index = try testIndex([first])
        #expect(index.chunkTable[0].extentCount == LedgerIndex.extentsPerSegmentMax)
        let summary = try LedgerSummary(index)
        #expect(summary.count(.accepted) == 100 && summary.count(.rejected) == 40_000)
    }

    @Test func `Reservations that overlap or change are faults`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        first.writer.reserve(testChunk(9, 10), nowMilliseconds: testTime)
        first.write()
        #expect(errorCode { _ = try testIndex([first]) } == .overlappingReservations)

        let (second, third) = (testDraft(2), testDraft(3))
        second.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        second.write()
        third.writer.reserve(testChunk(0, 11), nowMilliseconds: testTime)
        third.write()
        #expect(errorCode { _ = try testIndex([second, third]) } == .changedChunk)

        let (fourth, fifth) = (testDraft(4, 0), testDraft(4, 1))
        fourth.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        fourth.write()
        fifth.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        fifth.write()
        #expect(errorCode { _ = try testIndex([fourth, fifth]) } == .overlappingReservations)
    }

    @Test func `A verdict without a reservation of its run is a fault`() throws {
        let first = testDraft(1)
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        accept(first, 10)
        first.write()
        do {
            _ = try testIndex([first])
            Issue.record("no fault")
        } catch let error as LedgerError {
            #expect(error.code == .unreservedRow && error.segment == "segment-0001-00")
            // Header, block header, clock, reservation.
            #expect(error.offset == 32 + 8 + 16 + 48)
        }
        let (second, third) = (testDraft(2), testDraft(3))
        second.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        second.write()
        accept(third, 3)
        third.write()
        #expect(errorCode { _ = try testIndex([second, third]) } == .unreservedRow)
        let fourth = testDraft(4)
        fourth.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        fourth.writer.release(row: 5, count: 6, attempts: 0, nowMilliseconds: testTime)
        fourth.write()
        #expect(errorCode { _ = try testIndex([fourth]) } == .unreservedRow)
    }

    @Test func `A row settled twice is a fault, and its first verdict counts`() throws {
        let first = testDraft(1)
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        accept(first, 3)
        first.writer.settled(row: 3, .rejected)
        first.write()
        var verdicts = ChunkVerdicts(of: try testIndex([first]))
        try verdicts.load(chunk: 0)
        #expect(verdicts.firstFault?.code == .settledTwice)
        let offset = verdicts.firstFault?.offset ?? 0
        #expect(offset == 32 + 8 + 16 + 48 + 16)
        #expect(verdicts.rows[3].state == .accepted)

        let (second, third) = (testDraft(2), testDraft(3))
        second.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        accept(second, 4)
        second.write()
        third.writer.reserve(testChunk(0, 10, reopens: .failed), nowMilliseconds: testTime)
        third.writer.settled(row: 4, .rejected)
        third.write()
        verdicts = ChunkVerdicts(of: try testIndex([second, third]))
        try verdicts.load(chunk: 0)
        #expect(verdicts.firstFault?.code == .settledTwice)
        #expect(verdicts.rows[4].state == .accepted)
    }
}
