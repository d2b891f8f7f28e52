import Campaign

extension FuzzTarget {
    /// A ledger's manifest: what is read is written again the same.
    static let ledgerManifest = FuzzTarget(name: "ledger-manifest") { bytes in
        guard let manifest = try? Manifest(decoding: bytes) else { return }
        let again = try? Manifest(decoding: manifest.encoded())
        precondition(again == manifest, "a manifest changed by being written")
        _ = try? LedgerVerification(checking: [], manifest: manifest)
    }
}
