import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat

/// What a repair takes to be in doubt, of ledgers whose runs had limits.
@Suite struct LedgerSalvageTests {
    private func manifest() -> Manifest {
        Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: 0,
            listPath: nil)
    }

    @Test(arguments: [false, true])
    func `Chunks of earlier runs are in doubt behind the limit of a later one`(
        isMissing: Bool
    ) throws {
        var manifest = manifest()
        let first = testDraft()
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        first.writer.release(row: 0, count: 10, attempts: 0, nowMilliseconds: testTime)
        first.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        first.writer.release(row: 10, count: 10, attempts: 0, nowMilliseconds: testTime)
        first.write()
        manifest.look(upTo: 20)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        manifest.endEpoch(lengths: [first.length], isFinished: false)

        // The second run may look at rows 0 to 5, and takes up what the first one left.
        manifest.look(upTo: 6)
        _ = manifest.beginEpoch(atMilliseconds: 2)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 2)
        let drafts = [testDraft(2, 0), testDraft(2, 1)]
        for (place, draft) in drafts.enumerated() {
            draft.writer.reserve(testChunk(UInt64(place) * 10, 10), nowMilliseconds: testTime)
            draft.write()
        }
        manifest.endEpoch(lengths: drafts.map(\.length), isFinished: false)

        // Its second segment is missing, or cut behind its header.
        var left = [first.segment, drafts[0].segment]
        if !isMissing {
            let cut = Array(drafts[1].bytes.prefix(32))
            left.append(LedgerSegment(epoch: 2, reactor: 1, bytes: LedgerMemory(cut)))
        }
        let salvage = try LedgerSalvage(left, manifest: manifest)
        #expect(!salvage.isSound)
        #expect(salvage.gaps.isEmpty)
        let added = salvage.addedReservations(to: salvage.runs[1], gapChunks: [])
        #expect(added.map(\.rows) == [10..<20])
        #expect(salvage.addedReservations(to: salvage.runs[0], gapChunks: []).isEmpty)
    }

    @Test(arguments: [[], .failed, .unknown] as [ReopenedStates], [false, true])
    func `A lost reservation reopens what another one does, or both states if that shows nothing`(
        _ states: ReopenedStates, hasWaves: Bool
    ) throws {
        var identity = testIdentity
        identity.delivery = hasWaves ? DeliveryRules() : nil
        var manifest = Manifest(
            campaign: testCampaign, identity: identity, firstStartedAtMilliseconds: 0,
            listPath: nil)
        let drafts = [testDraft(1), testDraft(2)]
        var kept = 0
        for row in [0, 10] as [UInt64] {
            drafts[0].writer.reserve(testChunk(row, 10), nowMilliseconds: testTime)
            drafts[1].writer.reserve(testChunk(row, 10, reopens: states), nowMilliseconds: testTime)
            kept = max(kept, drafts[1].bytes.count)
            for draft in drafts { draft.write() }
        }
        for draft in drafts {
            _ = manifest.beginEpoch(atMilliseconds: 1)
            manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
            manifest.endEpoch(lengths: [draft.length], isFinished: false)
        }
        manifest.rowCount = 20
        drafts[1].bytes[kept] ^= 1
        let salvage = try LedgerSalvage(drafts.map(\.segment), manifest: manifest)
        let added = salvage.addedReservations(to: salvage.runs[1], gapChunks: [])
        #expect(added.map(\.rows) == [10..<20])
        let both: ReopenedStates = [.failed, .unknown]
        #expect(added.map(\.reopens) == [hasWaves && states.isEmpty ? both : states])
    }

    @Test func `What no run has cut of the list is in doubt before the limit alone`() throws {
        var manifest = manifest()
        manifest.look(upTo: 6)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 0, byteCount: 88)], isFinished: false)
        let salvage = try LedgerSalvage([], manifest: manifest)
        #expect(salvage.gaps.map(\.endRow) == [6] && salvage.gaps.map(\.firstRow) == [0])
    }

    @Test func `A feedback ledger without reservations has the rows of which verdicts are left`()
        throws
    {
        var identity = testIdentity
        identity.wireProtocol = CampaignIdentity.feedbackProtocol
        var manifest = Manifest(
            campaign: testCampaign, identity: identity, firstStartedAtMilliseconds: 0,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        draft.write()
        let kept = draft.bytes.count
        draft.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        draft.write()
        // The last row that is spoken of is not the last one that is found.
        draft.writer.settled(row: 17, .rejected, at: testTime)
        draft.writer.settled(row: 12, .rejected, at: testTime)
        draft.write()
        manifest.endEpoch(lengths: [draft.length], isFinished: false)

        draft.bytes[kept + 12] ^= 1
        let salvage = try LedgerSalvage([draft.segment], manifest: manifest)
        #expect(salvage.isOfFeedback && !salvage.isSound)
        #expect(salvage.feedbackChunks(in: salvage.gaps).map(\.rows) == [10..<18])
    }
}
