import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat

/// Segments that are not there, of runs that said nothing of their end.
@Suite struct MissingSegmentTests {
    /// When a run was killed.
    private enum Moment: CaseIterable {
        /// By a version that did not note when its segments were made.
        case unknown
        case beforeSegments, afterSegments
    }

    private func manifest(_ moment: Moment, segments: Int = 2) -> Manifest {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: 0,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        guard moment != .unknown else { return manifest }
        manifest.recordRunShape(isInListOrder: true, segmentCount: segments)
        if moment == .afterSegments { manifest.recordCreatedSegments() }
        return manifest
    }

    private func header(_ reactor: UInt16, count: Int = 32) -> LedgerSegment {
        let draft = testDraft(1, reactor)
        draft.write()
        return LedgerSegment(
            epoch: 1, reactor: reactor, bytes: LedgerMemory(Array(draft.bytes.prefix(count))))
    }

    private func code(_ manifest: Manifest, _ segments: [LedgerSegment]) -> LedgerError.Code? {
        errorCode { _ = try LedgerIndex(segments: segments, manifest: manifest) }
    }

    /// The fault that `prune`, `--skip-dead` and `--cap` find.
    private func verdictCode(
        _ manifest: Manifest, _ segments: [LedgerSegment]
    ) -> LedgerError.Code? {
        errorCode {
            var ledger = VerdictLedger(manifest: manifest, segments: segments)
            try ledger.readAccepted { _ in }
        }
    }

    @Test func `A run killed before its segments were synced has begun nothing`() throws {
        for moment in [Moment.unknown, .beforeSegments] {
            let manifest = manifest(moment)
            for segments in [
                [], [header(0, count: 0), header(1, count: 0)], [header(0), header(1, count: 0)],
                [header(0), header(1)],
            ] {
                #expect(code(manifest, segments) == nil, "\(moment)")
                #expect(verdictCode(manifest, segments) == nil, "\(moment)")
            }
        }
        // No half of a ledger: all it could hold is nothing.
        for segments in [[], [header(0, count: 0)], [header(0), header(1, count: 7)]] {
            let salvage = try LedgerSalvage(segments, manifest: manifest(.beforeSegments))
            #expect(salvage.isSound && salvage.gaps.isEmpty)
        }
    }

    @Test func `A segment that is missing or lacks its header is damage once all were made`()
        throws
    {
        let manifest = manifest(.afterSegments)
        #expect(code(manifest, [header(0), header(1)]) == nil)
        let lost: [(segments: [LedgerSegment], code: LedgerError.Code)] = [
            ([], .missingSegment), ([header(0)], .missingSegment), ([header(1)], .missingSegment),
            ([header(0), header(1, count: 0)], .missingTail),
            ([header(0, count: 31), header(1)], .missingTail),
            ([header(0, count: 0), header(1, count: 0)], .missingTail),
        ]
        for (segments, expected) in lost {
            #expect(code(manifest, segments) == expected)
            #expect(verdictCode(manifest, segments) == expected)
            let salvage = try LedgerSalvage(segments, manifest: manifest)
            #expect(!salvage.isSound)
            // Any row may have been sent.
            #expect(salvage.gaps.map(\.firstRow) == [0] && salvage.gaps.map(\.endRow) == [nil])
        }
        var bytes = [UInt8](repeating: 0, count: 64)
        bytes[3] = 1
        let strange = LedgerSegment(epoch: 1, reactor: 1, bytes: LedgerMemory(bytes))
        #expect(code(manifest, [header(0), strange]) == .badSegmentHeader)
    }

    @Test func `A copy of the manifest may be older than the segments`() throws {
        var copy = manifest(.beforeSegments)
        copy.assumeSegmentsMade()
        #expect(code(copy, []) == .missingSegment)
        var older = manifest(.unknown)
        older.assumeSegmentsMade()
        #expect(code(older, []) == nil)
    }
}
