import BroadsideAPNs
import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

struct SegmentErasureTests {
    private func token(_ row: UInt64) -> [UInt8] {
        let digits = String(row, radix: 16)
        return Array((String(repeating: "0", count: 64 - digits.utf8.count) + digits).utf8)
    }

    /// A segment with each kind of record about rows 0 to 9, and a chunk of one row.
    private func draft() -> SegmentDraft {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(0, 9), nowMilliseconds: testTime)
        draft.writer.reserve(testChunk(9, 1), nowMilliseconds: testTime)
        for row in 0..<2 as Range<UInt64> {
            draft.writer.accepted(
                row: row, fingerprint: TokenText.fingerprint(token(row).span.bytes), attempts: 1,
                nowMilliseconds: testTime)
        }
        draft.writer.accepted(
            row: 2, fingerprint: TokenText.fingerprint(token(2).span.bytes), attempts: 99,
            nowMilliseconds: testTime + 100_000)
        let words = Array("a reason".utf8)
        for row in 3..<6 as Range<UInt64> {
            draft.writer.settled(
                row: row, state: .rejected, status: 410, reason: row == 5 ? 0 : 57,
                reasonText: row == 5 ? words.span.bytes : nil, attempts: 2, timestamp: testTime,
                token: token(row).span.bytes, tokenIsText: false,
                nowMilliseconds: testTime + 100_001)
        }
        let text = Array("x;".utf8) + token(6)
        draft.writer.settled(
            row: 6, state: .invalid, status: 0, reason: 3, attempts: 0, token: text.span.bytes,
            tokenIsText: true, nowMilliseconds: testTime + 100_002)
        draft.writer.settled(
            row: 7, state: .skipped, status: 0, reason: 3, attempts: 0,
            token: Array("abcd".utf8).span.bytes, tokenIsText: false,
            nowMilliseconds: testTime + 100_002)
        draft.writer.release(row: 8, count: 1, attempts: 1, nowMilliseconds: testTime + 100_003)
        draft.sync()
        return draft
    }

    private func manifest(_ drafts: [SegmentDraft]) -> Manifest {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.endEpoch(lengths: drafts.map(\.length), isFinished: false)
        return manifest
    }

    private func erased(
        _ draft: SegmentDraft, _ rows: [[UInt8]], _ pages: PageSet = PageSet()
    ) throws -> (erasure: SegmentErasure, after: SegmentDraft) {
        var devices = DeviceSet()
        for row in rows { _ = devices.insert(row.span.bytes) }
        devices.beginLedger()
        let erasure = try SegmentErasure(
            of: draft.segment, manifest: manifest([draft]), devices: &devices, changedPages: pages)
        let after = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        try erasure.write(key: (1, 2), devices: &devices) { bytes in
            for offset in 0..<bytes.byteCount { after.bytes.append(bytes.byte(at: offset)) }
        }
        #expect(after.bytes.count == draft.bytes.count)
        return (erasure, after)
    }

    @Test func `Each kind of record of a device is changed, and no other verdict`() throws {
        let draft = draft()
        let before = try allMeanings(testIndex([draft]))
        for row in 0..<8 as Range<UInt64> {
            let device = row == 7 ? Array("abcd".utf8) : token(row)
            let (erasure, after) = try erased(draft, [device])
            #expect(erasure.hasVerdicts && erasure.isAffected, "row \(row)")
            let meanings = try allMeanings(testIndex([after]))
            for other in before.keys where other != row {
                #expect(meanings[other] == before[other], "row \(other) of \(row)")
            }
            #expect(meanings[row] != before[row], "row \(row)")
            // State, status, reason, attempts and times are as they were.
            func lasting(_ meaning: String?) -> [Substring]? {
                (meaning?.split(separator: " ").prefix(6)).map(Array.init)
            }
            #expect(lasting(meanings[row]) == lasting(before[row]))
            let (again, _) = try erased(after, [device])
            #expect(!again.isAffected && again.rows.settled == 0, "row \(row)")
        }
    }

    @Test func `The shortest token in base64 is erased from the text of an invalid row`() throws {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(0, 9), nowMilliseconds: testTime)
        let text = Array("q83vASNFZ4mrze8BI0VniQ".utf8)
        draft.writer.settled(
            row: 6, state: .invalid, status: 0, reason: 3, attempts: 0, token: text.span.bytes,
            tokenIsText: true, nowMilliseconds: testTime)
        draft.sync()
        let device = Array("abcdef0123456789abcdef0123456789".utf8)
        let (erasure, after) = try erased(draft, [device])
        #expect(erasure.isAffected)
        let stars = [UInt8](repeating: UInt8(ascii: "*"), count: text.count)
        let meaning = try #require(allMeanings(testIndex([after]))[6])
        #expect(meaning.contains("text \(stars)"), "\(meaning)")
    }

    @Test func `Rows of other devices leave a segment untouched but for hashes of single rows`()
        throws
    {
        let draft = draft()
        let (erasure, after) = try erased(draft, [token(77)])
        #expect(!erasure.isAffected && erasure.hasOneRowChunk)
        let index = try testIndex([after])
        #expect(index.chunk(0).hash == testChunk(0, 9).hash)
        #expect(index.chunk(1).hash == ChunkReservation.unknownHash)
        #expect(try allMeanings(index) == allMeanings(testIndex([draft])))
    }

    @Test func `Chunks of the list that change lose their hash, whichever run reserved them`()
        throws
    {
        var pages = PageSet()
        pages.insert(testChunk(0, 9).byteOffset..<5)
        let draft = draft()
        let (erasure, after) = try erased(draft, [token(77)], pages)
        #expect(erasure.isAffected && !erasure.hasVerdicts)
        #expect(try testIndex([after]).chunk(0).hash == ChunkReservation.unknownHash)
        // A second run that reserved the chunk with its hash, as a kill between two files leaves it.
        let second = SegmentDraft(campaign: testCampaign, epoch: 2, reactor: 0)
        second.writer.reserve(testChunk(0, 9), nowMilliseconds: testTime)
        second.sync()
        for drafts in [[after, second], [draft, second]] {
            let index = try testIndex(drafts)
            #expect(
                (index.chunk(0).hash == ChunkReservation.unknownHash) == (drafts[0] === after))
        }
    }

    @Test
    func `A ledger without tokens has neither tokens nor fingerprints nor hashes of single rows`()
        throws
    {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer = LedgerWriter(
            campaign: testCampaign, epoch: 1, reactor: 0, keepsTokens: false)
        let template = self.draft()
        // The same records, through a writer that keeps nothing.
        var reader = BlockReader()
        _ = try ValidatedSegment(
            checking: template.segment, campaign: testCampaign, recordedByteCount: nil,
            with: &reader
        ) { (reader, record) throws(LedgerError) in
            switch record {
            case .reserve(let chunk): draft.writer.reserve(chunk, nowMilliseconds: testTime)
            case .release(let row, let count, let attempts):
                draft.writer.release(
                    row: row, count: count, attempts: Int(attempts), nowMilliseconds: testTime)
            case .releaseSome: Issue.record("the draft has no such record")
            case .accepted(let row, let fingerprint, let attempts, let milliseconds):
                draft.writer.accepted(
                    row: row, fingerprint: fingerprint, attempts: Int(attempts),
                    nowMilliseconds: milliseconds)
            case .settled(let settled):
                if case .fingerprint(let fingerprint) = settled.token {
                    draft.writer.accepted(
                        row: settled.row, fingerprint: fingerprint,
                        attempts: Int(settled.attempts), nowMilliseconds: settled.milliseconds)
                    return
                }
                let digits = token(settled.row)
                draft.writer.settled(
                    row: settled.row, state: settled.state, status: settled.status,
                    reason: settled.reason, attempts: Int(settled.attempts),
                    timestamp: settled.timestamp, token: digits.span.bytes, tokenIsText: false,
                    nowMilliseconds: settled.milliseconds)
            }
        }
        draft.sync()
        let index = try testIndex([draft])
        let verdicts = try allVerdicts(index)
        #expect(verdicts.count == 10)
        for (row, verdict) in verdicts {
            switch verdict.token {
            case .none, .fingerprint(0): break
            default: Issue.record("row \(row) has \(verdict.token)")
            }
        }
        #expect(index.chunk(0).hash == testChunk(0, 9).hash)
        #expect(index.chunk(1).hash == ChunkReservation.unknownHash)
    }
}
