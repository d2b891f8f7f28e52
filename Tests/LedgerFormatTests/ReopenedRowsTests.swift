import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// A process that reopens rows in several runs, because some of them have to wait: each row is reopened once.
@Suite struct ReopenedRowsTests {
    private static let both: ReopenedStates = [.failed, .unknown]

    /// Rows 0-3 and 4-7 in a chunk each: of both the first is accepted, the second failed, and the third unknown; the
    /// last failed, and is accepted. In run 2, the process reopens the first chunk: row 1 has to wait, the run ends before
    /// it sends row 2, and row 3 fails again. No row of the second chunk is due.
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
        second.writer.keep([try Self.keptVerdict(ofRow: 1, [first])])
        second.writer.settled(row: 3, .failed, at: testTime + 1)
        second.write()
        return try testIndex([first, second])
    }

    /// The verdict of a row in the first chunk.
    private static func keptVerdict(
        ofRow row: Int, _ segments: [SegmentDraft]
    ) throws -> KeptVerdict {
        var verdicts = ChunkVerdicts(of: try testIndex(segments))
        try verdicts.load(chunk: 0)
        return verdicts.keptVerdict(ofRow: row)
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

    /// In run 2, rows 1 and 2 are reopened and not sent, and row 0 fails after the clock was set back.
    @Test func `A follower writes a verdict once that a later run records again`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 4), nowMilliseconds: testTime)
        for row: UInt64 in 0..<4 { first.writer.settled(row: row, .failed, at: testTime + row) }
        first.sync()
        let second = SegmentDraft(campaign: testCampaign, epoch: 2, reactor: 0)
        second.writer.reserve(testChunk(0, 4, reopens: Self.both), nowMilliseconds: testTime + 10)
        second.writer.keep(try [1, 2].map { try Self.keptVerdict(ofRow: $0, [first]) })
        second.writer.settled(row: 0, .failed, at: testTime - 1)
        second.writer.settled(row: 3, .failed, at: testTime + 13)
        second.sync()
        var rows = SettledRows(
            states: [], reasons: [], format: .csv, segmentNumber: testCampaign, campaign: nil,
            part: 0, acceptsBySilence: false, reasonText: { "r\($0)" })
        var times: [[Int]] = []
        for (draft, start) in [(first, testTime), (second, testTime + 10)] {
            var tail = SegmentTail(epoch: draft.epoch, reactor: 0)
            try rows.scan(&tail, draft.segment, upTo: UInt64(draft.bytes.count))
            tail.noteSynced()
            tail.release()
            var text: [UInt8] = []
            while try rows.read(
                &tail, draft.segment, of: CampaignRows(), startedAtMilliseconds: start, atMost: 100)
            {
                #expect(rows.mayRepeatVerdicts == (draft.epoch == 2))
                if rows.mayRepeatVerdicts {
                    try rows.removeRepeatedVerdicts(of: testIndex([first]))
                }
                rows.takeBatch(into: &text)
            }
            let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
            times.append(
                lines.compactMap { line in
                    line.split(separator: ",").last.flatMap { Int($0) }.map { $0 - Int(testTime) }
                })
        }
        #expect(times == [[0, 1, 2, 3], [-1, 13]])
    }

    @Test func `What a process settled itself is not reopened, and what it left is sent`() throws {
        let all = Self.both.rawValue
        #expect(
            try plan(Self.both, since: 2) == ["0: 1031, reopens \(all)", "4: 1031, reopens \(all)"])
        // Another process reopens row 3, too, which failed last in run 2.
        #expect(
            try plan(Self.both, since: nil) == [
                "0: 1030, reopens \(all)", "4: 1031, reopens \(all)",
            ])
        #expect(
            try plan(Self.both, since: 3) == ["0: 1030, reopens \(all)", "4: 1031, reopens \(all)"])
    }

    @Test func `A row in doubt follows the policy unless this process reopened it`() throws {
        #expect(try plan(.failed, since: nil) == ["0: 1020, reopens 1", "4: 1011, reopens 1"])
        #expect(
            try plan(.failed, since: nil, lost: .resend).first == "0: 1030, reopens 1")
        #expect(try plan(.failed, since: 2) == ["0: 1031, reopens 1", "4: 1011, reopens 1"])
    }

    @Test func `Reopened rows that a run passes over keep their verdicts`() throws {
        var plan = ResumePlan(
            index: try index(), lostRows: .record, reopens: Self.both, reopenedSince: 2)
        let chunk = RowChunk()
        while let work = try plan.next() {
            guard case .chunk(let work) = work, work.chunk.firstRow == 0 else { continue }
            chunk.rowCount = work.chunk.rowCount
            chunk.reopens = work.chunk.reopens
            // Row 1 is not due, and row 3 was settled by this process.
            chunk.dispositions = [.settled, .notDue, .sendAgain, .settled]
            plan.keepVerdicts(of: chunk)
        }
        #expect(chunk.kept.map(\.row) == [1, 3])
        #expect(chunk.dispositions == [.settled, .settled, .sendAgain, .settled])
    }

    @Test func `A row of an erased device is not reopened and keeps its verdict`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 4), nowMilliseconds: testTime)
        for row: UInt64 in 0..<4 { first.writer.settled(row: row, .failed) }
        first.write()
        // The records of rows 0 and 2 are as an erasure leaves them.
        let erased = testDraft()
        erased.writer.reserve(testChunk(0, 4), nowMilliseconds: testTime)
        for row in 0..<4 {
            var verdict = try Self.keptVerdict(ofRow: row, [first])
            if row % 2 == 0 {
                verdict.token = .erased(
                    [1, 2, 3, 4, 5, 6, 7, UInt8(row)] + Array(repeating: 0, count: 24))
            }
            erased.writer.keep([verdict])
        }
        erased.write()
        let unsendable = try LedgerSummary(testIndex([erased])).unsendable
        #expect(unsendable.erased[.failed] == 2 && unsendable[.failed] == 2)
        var plan = ResumePlan(
            index: try testIndex([erased]), lostRows: .record, reopens: Self.both)
        let chunk = RowChunk()
        while let work = try plan.next() {
            guard case .chunk(let work) = work else { continue }
            #expect(work.dispositions == [.settled, .send, .settled, .send])
            chunk.rowCount = work.chunk.rowCount
            chunk.reopens = work.chunk.reopens
            chunk.dispositions = work.dispositions
            plan.keepVerdicts(of: chunk)
        }
        #expect(chunk.kept.map(\.row) == [0, 2])
        #expect(
            chunk.kept.last?.token
                == .erased([1, 2, 3, 4, 5, 6, 7, 2] + Array(repeating: 0, count: 24)))
    }

    @Test func `A verdict that is recorded again keeps its values and its run`() throws {
        let first = testDraft()
        first.writer.name(topic: 1, Array("com.example.shop".utf8))
        first.writer.reserve(testChunk(0, 3), nowMilliseconds: testTime)
        let token = Array(testToken(0).utf8)
        first.writer.settled(
            row: 0, state: .failed, status: 503, reason: 7, attempts: 3, token: token.span.bytes,
            tokenIsText: false, arm: 2, topic: 1, nowMilliseconds: testTime + 80_000)
        first.writer.settled(row: 1, .unknown)
        first.writer.settled(row: 2, .failed)
        first.write()
        let kept = try (0..<2).map { try Self.keptVerdict(ofRow: $0, [first]) }
        let second = testDraft(2)
        let now = testTime + 200_000
        second.writer.reserve(testChunk(0, 3, reopens: Self.both), nowMilliseconds: now)
        second.writer.keep(kept)
        second.writer.settled(row: 2, .failed, at: now)
        second.write()
        #expect(try (0..<2).map { try Self.keptVerdict(ofRow: $0, [first, second]) } == kept)
        var verdicts = ChunkVerdicts(of: try testIndex([first, second]))
        try verdicts.load(chunk: 0)
        let (runs, fault) = (verdicts.rows.map(\.settlingEpoch), verdicts.firstFault)
        #expect(runs == [1, 1, 2] && fault == nil)
    }

    @Test func `Rows that are kept are those of earlier runs and those of the process`() throws {
        let index = try index()
        let all = try LedgerSummary(index)
        #expect(all.count(.accepted) == 3 && all.count(.failed) == 3 && all.count(.unknown) == 1)
        let own = try LedgerSummary(index, settledSince: 2)
        #expect(own.reservedRowCount == 1 && own.count(.accepted) == 0)
        #expect(own.settled(in: Self.both).settled == 1 && own.settled(in: Self.both)[.failed] == 1)
        #expect(own.settled(in: .unknown).settled == 0)
        #expect(try LedgerSummary(index, settledSince: 3).reservedRowCount == 0)
        // The second chunk's row 5 and 6 are open for the next run, as are 1 and 2.
        let kept = all.kept(reopening: Self.both) + own.settled(in: Self.both)
        #expect(kept.settled == 4)
    }

    @Test func `Rows are counted by the run that settled them or left them in doubt`() throws {
        let index = try index()
        for (runs, states, count) in [
            ([1], [.accepted], 3), ([1], [.failed], 2), ([2], [.failed], 1), ([1], [.unknown], 1),
            ([1], [.inDoubt], 0), ([2], [.inDoubt], 1), ([1, 2], [.failed, .accepted], 6),
            ([3], [.accepted, .failed, .unknown], 0),
        ] as [(Set<UInt32>, Set<RowState>, UInt64)] {
            #expect(try index.rowCount(of: runs, in: states) == count, "\(runs) \(states)")
        }
    }
}
