import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Rows whose devices `ledger forget` erased: whatever their state was, nothing more is sent to
/// them.
@Suite struct ErasedRowsTests {
    private static let both: ReopenedStates = [.failed, .unknown]

    /// What a run does with each row of a ledger's only chunk.
    private func plan(
        _ index: LedgerIndex, _ lostRows: LostResponsePolicy, _ reopens: ReopenedStates
    ) throws -> String {
        var plan = ResumePlan(index: index, lostRows: lostRows, reopens: reopens)
        return try nextChunk(&plan).dispositions.map { "\($0.digit)" }.joined()
    }

    private func nextChunk(_ plan: inout ResumePlan) throws -> ChunkWork {
        while let work = try plan.next() {
            if case .chunk(let work) = work { return work }
        }
        throw LedgerError(.badList, detail: "no chunk has work")
    }

    /// Row 0 is accepted, 1 released, 2 unknown, 3 failed, 4 and 5 are in doubt. The ledger has no
    /// token of any of them.
    private func draft() -> SegmentDraft {
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 6), nowMilliseconds: testTime)
        accept(draft, 0)
        draft.writer.release(row: 1, count: 1, attempts: 2, nowMilliseconds: testTime)
        draft.writer.settled(row: 2, .unknown)
        draft.writer.settled(row: 3, .failed)
        draft.write()
        return draft
    }

    @Test(arguments: [LostResponsePolicy.record, .resend])
    func `No row of an erased device is sent, in any state and under any policy`(
        lostRows: LostResponsePolicy
    ) throws {
        var index = try testIndex([draft()])
        #expect(try plan(index, .resend, Self.both) == "103033")
        index.erasedRows = ErasedRows([0, 1, 2, 3, 4])
        #expect(try plan(index, lostRows, Self.both) == "191193")
        var plan = ResumePlan(index: index, lostRows: lostRows, reopens: Self.both)
        let work = try nextChunk(&plan)
        #expect(work.dispositions[1] == .erased(mayHaveBeenSent: false))
        #expect(work.dispositions[4] == .erased(mayHaveBeenSent: true))
        #expect(work.sendCount == 1 && work.unsentCount == 2)
        // The verdicts that the reservation reopens are recorded again as those of erased devices.
        let pool = ChunkPool(limit: 2)
        let chunk = try #require(pool.take())
        (chunk.rowCount, chunk.reopens) = (6, work.chunk.reopens)
        chunk.dispositions = work.dispositions
        plan.keepVerdicts(of: chunk)
        let erased = KeptVerdict.Token.erased(ErasedToken.noHash)
        #expect(chunk.kept.map(\.row) == [2, 3] && chunk.kept.allSatisfy { $0.token == erased })
        pool.giveBack(chunk)
    }

    /// A process reopened the unknown rows 0 and 1 and was killed: both are in doubt. The device of
    /// row 0 is erased from the record of run 1.
    @Test func `A row in doubt whose earlier verdict was erased stays erased`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 2), nowMilliseconds: testTime)
        let hash: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        first.writer.keep([
            KeptVerdict(
                row: 0, state: .unknown, status: 0, reason: 7, reasonText: [], attempts: 1, arm: 0,
                topic: [], milliseconds: testTime, timestamp: nil, token: .erased(hash))
        ])
        first.writer.settled(row: 1, .unknown)
        first.write()
        let second = testDraft(2)
        second.writer.reserve(testChunk(0, 2, reopens: .unknown), nowMilliseconds: testTime)
        second.write()
        let index = try testIndex([first, second])
        #expect(try allStates(index) == [0: .inDoubt, 1: .inDoubt])
        for lostRows in [LostResponsePolicy.record, .resend] {
            #expect(try plan(index, lostRows, .unknown) == "93")
        }
        var verdicts = ChunkVerdicts(of: index)
        try verdicts.load(chunk: 0)
        var token: [UInt8] = []
        verdicts.appendToken(ofRow: 0, to: &token)
        #expect(String(decoding: token, as: UTF8.self) == "forgotten-0102030405060708")
    }

    /// A chunk of rows from 100 that no run reserved.
    private func marked(
        _ erased: [UInt64], _ dispositions: [RowDisposition]?, rowCount: Int = 6
    ) throws -> (dispositions: [RowDisposition]?, hash: UInt64) {
        let pool = ChunkPool(limit: 2)
        let chunk = try #require(pool.take())
        defer { pool.giveBack(chunk) }
        (chunk.start.row, chunk.rowCount, chunk.hash) = (100, rowCount, 77)
        chunk.dispositions = dispositions
        ErasedRows(erased).mark(chunk)
        return (chunk.dispositions, chunk.hash)
    }

    @Test func `Rows that no run reserved are marked, except those of other shards`() throws {
        #expect(try marked([99, 106], nil).dispositions == nil)
        let unsent = RowDisposition.erased(mayHaveBeenSent: false)
        #expect(
            try marked([5, 101, 105, 200], nil).dispositions
                == [.send, unsent, .send, .send, .send, unsent])
        #expect(
            try marked(
                Array(100..<106),
                [.settled, .skipped(.duplicate), .notDue, .invalid(.badZone), .sendAgain, .send]
            ).dispositions
                == [.settled, unsent, unsent, unsent, .erased(mayHaveBeenSent: true), unsent])
    }

    @Test func `A chunk that has only the row of an erased device has no hash`() throws {
        #expect(try marked([100], nil, rowCount: 1).hash == ChunkReservation.unknownHash)
        #expect(try marked([101], nil, rowCount: 1).hash == 77)
        #expect(try marked([101], nil).hash == 77)
    }

    @Test func `A manifest collects the rows of several erasures`() throws {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: "/list")
        manifest.record(erasedRows: [])
        #expect(manifest.erasedRows == nil)
        manifest.record(erasedRows: [7, 9])
        manifest.record(erasedRows: [1, 9])
        let read = try Manifest(decoding: manifest.encoded())
        #expect(read.erasedRows == [1, 7, 9])
        #expect(try LedgerIndex(segments: [], manifest: read).erasedRows == ErasedRows([1, 7, 9]))
        // The hash of a list of one row is the hash of its device.
        manifest.record(listHash: "0123456789abcdef", hasSeveralRows: false)
        #expect(manifest.listHash == nil)
    }
}
