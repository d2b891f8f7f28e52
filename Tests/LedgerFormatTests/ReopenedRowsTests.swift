import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// A process that reopens rows in several runs, because some of them have to wait: each row is reopened once.
@Suite struct ReopenedRowsTests {
    private static let both: ReopenedStates = [.failed, .unknown]

    /// Rows 0-3 and 4-7 in a chunk each: of both the first is accepted, the second failed, and the third unknown; the
    /// last failed, and is accepted. In run 2, the process reopens the first chunk: row 1 has to wait, and so does row 2,
    /// which may have been sent; row 3 fails again. No row of the second chunk is due.
    private func index() throws -> LedgerIndex {
        let first = testDraft()
        for row: UInt64 in [0, 4] {
            first.writer.reserve(testChunk(row, 4), nowMilliseconds: testTime)
            accept(first, row)
            first.writer.settled(row: row + 1, .failed)
            first.writer.settled(row: row + 2, .unknown)
        }
        first.writer.settled(row: 3, .failed)
        accept(first, 7)
        first.write()
        let second = SegmentDraft(campaign: testCampaign, epoch: 2, reactor: 0)
        second.writer.reserve(testChunk(0, 4, reopens: Self.both), nowMilliseconds: testTime)
        second.writer.release(row: 1, count: 1, attempts: 0, nowMilliseconds: testTime)
        second.writer.settled(row: 3, .failed)
        second.write()
        return try testIndex([first, second])
    }

    private func plan(
        _ reopens: ReopenedStates, since run: UInt32?, lost: LostResponsePolicy = .record
    ) throws -> [String] {
        var plan = ResumePlan(
            index: try index(), lostRows: lost, reopens: reopens, reopenedSince: run)
        var seen: [String] = []
        while let work = try plan.next() {
            guard case .chunk(let work) = work else { continue }
            let words = work.dispositions.map { "\($0.digit)" }.joined()
            seen.append("\(work.chunk.firstRow): \(words), reopens \(work.chunk.reopens.rawValue)")
        }
        return seen
    }

    @Test func `What a process settled itself is not reopened, and what it left is sent`() throws {
        let all = Self.both.rawValue
        #expect(try plan(Self.both, since: 2) == ["0: 1031, reopens 0", "4: 1031, reopens \(all)"])
        // Another process reopens row 3, too, which failed last in run 2.
        #expect(
            try plan(Self.both, since: nil) == [
                "0: 1030, reopens \(all)", "4: 1031, reopens \(all)",
            ])
        #expect(
            try plan(Self.both, since: 3) == ["0: 1030, reopens \(all)", "4: 1031, reopens \(all)"])
    }

    @Test func `A row in doubt follows the policy unless unknown rows are sent again`() throws {
        let failed = ReopenedStates.failed
        #expect(
            try plan(failed, since: 2)
                == ["0: 1021, reopens 0", "4: 1011, reopens \(failed.rawValue)"])
        #expect(try plan(failed, since: 2, lost: .resend).first == "0: 1031, reopens 0")
    }

    @Test func `Rows that are kept are those of earlier runs and those of the process`() throws {
        let index = try index()
        let all = try LedgerSummary(index)
        #expect(all.count(.accepted) == 3 && all.count(.failed) == 2 && all.count(.unknown) == 1)
        let own = try LedgerSummary(index, reservedSince: 2)
        #expect(own.reservedRowCount == 4 && own.count(.accepted) == 1)
        #expect(own.settled(in: Self.both).settled == 1 && own.settled(in: Self.both)[.failed] == 1)
        #expect(own.settled(in: .unknown).settled == 0)
        #expect(try LedgerSummary(index, reservedSince: 3).reservedRowCount == 0)
        // The second chunk's row 5 and 6 are open for the next run, as are 1 and 2.
        let kept = all.kept(reopening: Self.both) + own.settled(in: Self.both)
        #expect(kept.settled == 4)
    }
}
