import BroadsideAPNs
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat

/// Segments of a killed run that were cut where a block ends: nothing in them tells of it.
@Suite struct DurableBytesTests {
    /// Two chunks are reserved; of the first each row is accepted.
    private func killed() -> (manifest: Manifest, draft: SegmentDraft, cut: Int) {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        manifest.recordCreatedSegments()
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        for row: UInt64 in 0..<10 { accept(draft, row) }
        draft.sync()
        let cut = draft.bytes.count
        draft.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        draft.sync()
        return (manifest, draft, cut)
    }

    private func segment(
        _ draft: SegmentDraft, cutAt count: Int, durable: Int
    ) -> LedgerSegment {
        var segment = LedgerSegment(
            epoch: 1, reactor: 0, bytes: LedgerMemory(Array(draft.bytes[..<count])))
        segment.durableByteCount = UInt64(durable)
        return segment
    }

    @Test func `Synced data that is gone is a fault to each reader`() throws {
        let (manifest, draft, cut) = killed()
        let all = draft.bytes.count
        for (count, durable, code) in [
            (all, all, nil), (all, cut, nil), (cut, cut, nil), (cut, 0, nil),
            (cut, all, .missingTail), (cut, cut + 1, .missingTail), (32, cut, .missingTail),
            (all - 8, all, .missingTail),
        ] as [(Int, Int, LedgerError.Code?)] {
            let segment = segment(draft, cutAt: count, durable: durable)
            let what: Comment = "\(count) of \(durable)"
            #expect(
                errorCode { _ = try LedgerIndex(segments: [segment], manifest: manifest) } == code,
                what)
            #expect(
                errorCode {
                    _ = try LedgerVerification(checking: [segment], manifest: manifest)
                } == code, what)
            #expect(
                errorCode {
                    var ledger = VerdictLedger(manifest: manifest, segments: [segment])
                    var dead = DeadTokens()
                    try dead.insertDead(of: &ledger, reasons: [.unregistered])
                } == code, what)
        }
    }

    /// - Parameter lost: what of the segment is gone: its end, or all of it.
    @Test(arguments: ["end", "all", "nothing"], [false, true])
    func `Rows that may have been reserved in lost data are in doubt after a repair`(
        lost: String, isNoted: Bool
    ) throws {
        var (manifest, draft, cut) = killed()
        if !isNoted {
            // As a copy from before the segments were made has it.
            manifest = Manifest(
                campaign: testCampaign, identity: testIdentity,
                firstStartedAtMilliseconds: testTime, listPath: nil)
            _ = manifest.beginEpoch(atMilliseconds: testTime)
            manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        }
        let durable = DurablePosition(
            epoch: 1, reactor: 0, position: UInt64(draft.bytes.count))
        let count = lost == "nothing" ? draft.bytes.count : cut
        let given = lost == "all" ? [] : [segment(draft, cutAt: count, durable: 0)]
        let salvage = try LedgerSalvage(given, manifest: manifest, durable: [durable])
        #expect(salvage.isSound == (lost == "nothing"))
        guard lost != "nothing" else { return }
        let bytes = lost == "all" ? nil : UInt64(cut)..<UInt64(draft.bytes.count)
        #expect(salvage.losses == [.init(segment: "segment-0001-00", bytes: bytes)])
        let gaps = salvage.gaps
        #expect(gaps.map(\.firstRow) == [lost == "all" ? 0 : 10])
        // Without the claim the ledger seems to be sound.
        if lost == "end" { #expect(try LedgerSalvage(given, manifest: manifest).isSound) }
    }

    @Test(arguments: [true, false])
    func `If a damaged claim lost a position, the rest of a killed run is in doubt`(
        isLost: Bool
    ) throws {
        let (manifest, draft, _) = killed()
        let durable = DurablePosition(
            epoch: 1, reactor: 0, position: UInt64(draft.bytes.count))
        func salvage(_ hasAllPositions: Bool) throws -> LedgerSalvage {
            try LedgerSalvage(
                [draft.segment], manifest: manifest, durable: isLost ? [] : [durable],
                hasAllPositions: hasAllPositions)
        }
        let whole = try salvage(true)
        #expect(whole.isSound && whole.gaps.isEmpty)
        let salvaged = try salvage(false)
        #expect(salvaged.losses.isEmpty && salvaged.isSound != isLost)
        #expect(salvaged.gaps.map(\.firstRow) == (isLost ? [20] : []))
    }

    @Test
    func `If a damaged claim lacks the position of a run that ended, nothing is in doubt`() throws {
        var (manifest, draft, _) = killed()
        manifest.endEpoch(lengths: [draft.length], isFinished: false)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        manifest.recordCreatedSegments()
        let second = testDraft(2)
        second.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        second.sync()
        let durable = DurablePosition(
            epoch: 2, reactor: 0, position: UInt64(second.bytes.count))
        let salvage = try LedgerSalvage(
            [draft.segment, second.segment], manifest: manifest, durable: [durable],
            hasAllPositions: false)
        #expect(salvage.isSound && salvage.gaps.isEmpty)
    }

    @Test func `A run that only the claim knows is lost`() throws {
        let (manifest, draft, _) = killed()
        let durable = DurablePosition(epoch: 2, reactor: 0, position: 88)
        let salvage = try LedgerSalvage(
            [draft.segment], manifest: manifest, durable: [durable])
        #expect(salvage.runs.map(\.number) == [1, 2])
        #expect(salvage.losses.contains { $0.segment == "segment-0002-00" && $0.bytes == nil })
        #expect(salvage.gaps.map(\.firstRow) == [20])
    }
}
