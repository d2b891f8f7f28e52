import BroadsideLedgerFormat
import BroadsideRows

extension FuzzTarget {
    /// A ledger's manifest: what is read is written again the same, and nothing that reads, resumes, merges or
    /// repairs the ledger traps.
    ///
    /// It is read as it is, and once more with the checksum that fits: without that little but the checksum
    /// is ever tried.
    static let ledgerManifest = FuzzTarget(name: "ledger-manifest") { bytes in
        if let manifest = try? Manifest(decoding: bytes) { check(manifest) }
        guard let sealed = Manifest.sealed(bytes),
            let manifest = try? Manifest(decoding: sealed)
        else { return }
        check(manifest)
    }

    private static func check(_ manifest: Manifest) {
        let again = try? Manifest(decoding: manifest.encoded())
        precondition(again == manifest, "a manifest changed by being written")
        _ = manifest.epochs.last?.stop?.cause
        _ = manifest.rowCount(with: LedgerSummary())
        if let verification = try? LedgerVerification(checking: [], manifest: manifest) {
            _ = manifest.rowCount(with: verification.summary)
        }
        if let index = try? LedgerIndex(segments: [], manifest: manifest) {
            var plan = ResumePlan(index: index, lostRows: .record, reopens: [])
            while (try? plan.next()) != nil {}
        }
        if let salvage = try? LedgerSalvage([], manifest: manifest) {
            let gaps = salvage.gaps
            // A feedback service's rows are cut here; a campaign may have a trillion.
            let end = gaps.compactMap(\.endRow).max() ?? manifest.rowCount ?? 0
            let isSmall = salvage.isOfFeedback && end < 1 << 20
            _ = salvage.parts(gapChunks: isSmall ? salvage.feedbackChunks(in: gaps) : [])
            _ = salvage.repairedManifest(lengths: [:], isFinished: true).encoded()
        }
        _ = try? ShardSet([manifest, manifest])
        _ = try? ShardSet([manifest])
        _ = try? PartSet([manifest])
        _ = Manifest(campaign: 1, merging: [manifest, manifest], names: ["a", "b"]).encoded()
        resume(manifest)
    }

    /// What a run writes down before it sends, and at its end.
    private static func resume(_ manifest: Manifest) {
        var manifest = manifest
        _ = manifest.beginEpoch(atMilliseconds: 1_790_000_000_000)
        manifest.look(upTo: 10)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 2)
        manifest.recordCreatedSegments()
        manifest.counters.retries += 1
        manifest.endEpoch(lengths: [], isFinished: false)
        _ = try? Manifest(decoding: manifest.encoded())
    }
}
