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
        manifest.record(erasedRows: ErasedRows())
        #expect(manifest.erasedRows == nil)
        manifest.record(erasedRows: ErasedRows([7, 9]))
        manifest.record(erasedRows: ErasedRows([1, 9]))
        let read = try Manifest(decoding: manifest.encoded())
        #expect(read.erasedRows == ErasedRows([1, 7, 9]))
        #expect(try LedgerIndex(segments: [], manifest: read).erasedRows == ErasedRows([1, 7, 9]))
        // The hash of a list of one row is the hash of its device.
        manifest.record(listHash: "0123456789abcdef", hasSeveralRows: false)
        #expect(manifest.listHash == nil)
    }
    private func rangeCount(_ rows: ErasedRows?) -> Int { rows?.ranges.count ?? 0 }

    @Test func `Consecutive rows are one range, in whichever order they are erased`() throws {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: "/list")
        manifest.record(erasedRows: ErasedRows([20, 22] + Array(30..<40)))
        manifest.record(
            erasedRows: ErasedRows(Array(21...22) + Array(35..<1_000_000) + [1 << 39]))
        let bytes = manifest.encoded()
        let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        #expect(text.contains("\"erasedRows\":[[20,3],[30,999970],549755813888]"), "\(text)")
        let rows = try #require(try Manifest(decoding: bytes).erasedRows)
        #expect(rows.count == 999_974 && rangeCount(rows) == 3)
        #expect(Array(rows.prefix(5)) == [20, 21, 22, 30, 31])
        for row: UInt64 in [20, 22, 30, 999_999, 1 << 39] { #expect(rows.contains(row), "\(row)") }
        for row: UInt64 in [19, 23, 29, 1_000_000, 1 << 39 + 1] {
            #expect(!rows.contains(row), "\(row)")
        }
        #expect(rows.rows(in: 22..<32) == [22, 30, 31] && rows.rows(in: 23..<30).isEmpty)
    }

    /// A manifest may have each row as a number, even if rows are consecutive. Its checksum covers
    /// the numbers as they are.
    @Test func `A manifest with a number for each row is read, and joins them at the next erasure`()
        throws
    {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: "/list")
        manifest.record(erasedRows: ErasedRows([5, 9]))
        let text = String(decoding: manifest.encoded(), as: UTF8.self)
        let changed = text.replacing("    9\n", with: "    6,\n    7\n")
        let bytes = try #require(Manifest.sealed(Array(changed.utf8)))
        #expect(String(decoding: bytes, as: UTF8.self).contains("    5,\n    6,\n    7\n"))
        var read = try Manifest(decoding: bytes)
        #expect(read.erasedRows.map(Array.init) == [5, 6, 7] && rangeCount(read.erasedRows) == 3)
        #expect(read.erasedRows?.contains(6) == true && read.erasedRows?.contains(8) == false)
        #expect(read.encoded() == bytes)
        read.record(erasedRows: ErasedRows([8]))
        #expect(read.erasedRows == ErasedRows([5, 6, 7, 8]) && rangeCount(read.erasedRows) == 1)
    }

    @Test func `At the limit of ranges, only rows that extend or join ranges are added`() {
        func added(_ rows: [UInt64], to earlier: [UInt64], limit: Int) -> [UInt64] {
            var added = AddedErasedRows(to: ErasedRows(earlier), limit: limit)
            let taken = rows.filter { added.add($0) }
            #expect(Array(added.rows) == taken.filter { !earlier.contains($0) })
            let all = ErasedRows(earlier).union(added.rows)
            #expect(rangeCount(all) <= max(limit, rangeCount(ErasedRows(earlier))))
            return taken
        }
        #expect(added([1, 2, 3, 5, 7], to: [], limit: 2) == [1, 2, 3, 5])
        #expect(added([1, 2, 4, 5, 6, 9], to: [3, 7], limit: 2) == [2, 4, 5, 6, 9])
        #expect(added([0, 9, 11, 13], to: [1, 10, 20], limit: 3) == [0, 9, 11])
        #expect(added([3, 4], to: [3], limit: 1) == [3, 4])
        #expect(added([5], to: [1, 3], limit: 1) == [])
    }
}
