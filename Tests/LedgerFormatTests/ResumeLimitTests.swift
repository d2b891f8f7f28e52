import BroadsideSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// A run whose limit is lower than an earlier one's: what is done with the rows behind it.
@Suite struct ResumeLimitTests {
    /// Rows 0-9 and 10-19 in a chunk each: of both 0 accepted, 1 released after two attempts, 2
    /// unknown after three, 3 failed, the others in doubt.
    private func ledger() -> SegmentDraft {
        let draft = testDraft()
        for first: UInt64 in [0, 10] {
            draft.writer.reserve(testChunk(first, 10), nowMilliseconds: testTime)
            accept(draft, first)
            draft.writer.release(row: first + 1, count: 1, attempts: 2, nowMilliseconds: testTime)
            draft.writer.settled(row: first + 2, .unknown, attempts: 3)
            draft.writer.settled(row: first + 3, .failed)
        }
        draft.write()
        return draft
    }

    private func index(limit: UInt64?) throws -> LedgerIndex {
        try LedgerIndex(
            segments: [ledger().segment], campaign: testCampaign,
            rows: CampaignRows(limit: limit))
    }

    /// What is to be done with each chunk: its first row, dispositions, and rows sent.
    private func plan(
        limit: UInt64?, _ lostRows: LostResponsePolicy, _ reopens: ReopenedStates = []
    ) throws -> [String] {
        var plan = ResumePlan(index: try index(limit: limit), lostRows: lostRows, reopens: reopens)
        var seen: [String] = []
        while let work = try plan.next() {
            guard case .chunk(let work) = work else { continue }
            let words = work.dispositions.map { "\($0.digit)" }.joined()
            seen.append("\(work.chunk.firstRow): \(words), \(work.sendCount) sent")
        }
        return seen
    }

    @Test func `Released rows behind the limit are not sent and released again`() throws {
        #expect(
            try plan(limit: nil, .record)
                == ["0: 1011222222, 1 sent", "10: 1011222222, 1 sent"])
        #expect(
            try plan(limit: 10, .record)
                == ["0: 1011222222, 1 sent", "10: 1611222222, 0 sent"])
        #expect(
            try plan(limit: 1, .record)
                == ["0: 1611222222, 0 sent", "10: 1611222222, 0 sent"])
    }

    /// Row 0 was released without an attempt, 1 after two, 2 is failed, 3 unknown, 4 in doubt.
    @Test func `The plan tells which rows an earlier run sent or may have sent`() throws {
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 5), nowMilliseconds: testTime)
        draft.writer.release(row: 0, count: 1, attempts: 0, nowMilliseconds: testTime)
        draft.writer.release(row: 1, count: 1, attempts: 2, nowMilliseconds: testTime)
        draft.writer.settled(row: 2, .failed, attempts: 5)
        draft.writer.settled(row: 3, .unknown, attempts: 3)
        draft.write()
        var plan = ResumePlan(
            index: try testIndex([draft]), lostRows: .resend, reopens: [.failed, .unknown])
        var seen: [ChunkWork] = []
        while let work = try plan.next() {
            if case .chunk(let work) = work { seen.append(work) }
        }
        #expect(seen.map(\.wasSent) == [[false, true, true, true, true]])
        // `--retry` restarts the limits of failed and unknown rows.
        #expect(seen.map(\.attempts) == [[0, 2, 5, 3, 1]])
        #expect(seen.map(\.attemptsBefore) == [[0, 0, 5, 3, 1]])
    }

    /// Run 1 sent the row five times, and run 2 reopened it and sent it once before it was killed.
    @Test func `The limit on attempts starts again, and the attempts go on counting`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 2), nowMilliseconds: testTime)
        first.writer.settled(row: 0, .failed, attempts: 5)
        first.writer.settled(row: 1, .failed, attempts: 5)
        first.write()
        let second = testDraft(2)
        second.writer.reserve(testChunk(0, 2, reopens: .failed), nowMilliseconds: testTime)
        second.writer.release(row: 1, count: 1, attempts: 7, nowMilliseconds: testTime)
        second.write()
        let index = try testIndex([first, second])
        var plan = ResumePlan(index: index, lostRows: .resend, reopens: [])
        var seen: [ChunkWork] = []
        while let work = try plan.next() {
            if case .chunk(let work) = work { seen.append(work) }
        }
        #expect(seen.map(\.attempts) == [[6, 7]] && seen.map(\.attemptsBefore) == [[6, 5]])
    }

    @Test func `Rows in doubt behind the limit are not resent`() throws {
        #expect(
            try plan(limit: nil, .resend)
                == ["0: 1011333333, 7 sent", "10: 1011333333, 7 sent"])
        // The second chunk is not touched: its rows stay in doubt.
        #expect(try plan(limit: 10, .resend) == ["0: 1011333333, 7 sent"])
        #expect(try plan(limit: 6, .resend) == ["0: 1011331111, 3 sent"])
    }

    @Test func `Reopened rows behind the limit are not sent`() throws {
        #expect(
            try plan(limit: 2, .record, [.failed, .unknown])
                == ["0: 1011222222, 1 sent", "10: 1611222222, 0 sent"])
        #expect(
            try plan(limit: 4, .resend, [.failed, .unknown]) == ["0: 1030111111, 3 sent"])
    }

    @Test func `A failed row that may have been processed stays in doubt until it is sent`()
        throws
    {
        func plan(limit: UInt64?) throws -> String {
            let draft = testDraft()
            draft.writer.reserve(testChunk(0, 3), nowMilliseconds: testTime)
            draft.writer.settled(row: 0, .failed)
            for (row, reason) in [(1, Reason.timeout), (2, .connectionLost)] as [(UInt64, Reason)] {
                draft.writer.settled(row: row, .failed, reason: reason.rawValue)
            }
            draft.write()
            let index = try LedgerIndex(
                segments: [draft.segment], campaign: testCampaign,
                rows: CampaignRows(limit: limit))
            var plan = ResumePlan(index: index, lostRows: .record, reopens: .failed)
            while let work = try plan.next() {
                guard case .chunk(let work) = work else { continue }
                return work.dispositions.map { "\($0.digit)" }.joined()
            }
            return ""
        }
        #expect(try plan(limit: nil) == "033")
        // Behind a limit, the rows keep their verdicts.
        #expect(try plan(limit: 1) == "011")
    }

    @Test func `A campaign's rows are those before the limit and those that may be sent`()
        throws
    {
        func counts(_ limit: UInt64?) throws -> [UInt64] {
            let summary = try LedgerSummary(index(limit: limit))
            return [
                summary.reservedRowCount, summary.beyondLimitCount, summary.count(.remaining),
                summary.count(.inDoubt), summary.count(.accepted),
            ]
        }
        #expect(try counts(nil) == [20, 0, 2, 12, 2])
        #expect(try counts(10) == [19, 9, 1, 12, 2])
        #expect(try counts(1) == [18, 17, 0, 12, 2])
    }
}
