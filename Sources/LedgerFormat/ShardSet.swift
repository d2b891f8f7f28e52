import BroadsideRows

/// Ledgers of all shards of one campaign, which together cover each row of a list exactly once.
public struct ShardSet: Sendable {
    /// Reason why the ledgers do not form a whole campaign.
    public enum Problem: Error, Hashable, Sendable {
        /// The ledger was sent without `--shard`.
        case noShard(Int)
        /// A ledger divides the list differently from the first ledger. The text names the shards
        /// of both.
        case otherDivision(Int, String)
        /// Two ledgers have different identities; the text describes the difference.
        case otherCampaign(Int, String)
        /// Two ledgers belong to the same shard.
        case sameShard(Int, Int)
        /// A shard has no ledger.
        case missing(index: UInt32, count: UInt32)
        /// The later shard does not begin at the end of the earlier one.
        case notAdjacent(Int, Int)
    }

    /// Ledgers in the order of their shards: indices into the given manifests.
    public let order: [Int]
    /// Whether shards are assigned by row numbers.
    let isByRow: Bool

    /// Checks that manifests belong to all shards of one campaign.
    ///
    /// The campaign's number differs between shards, because it is drawn when a run starts. The
    /// identities are compared instead, as for a resume.
    public init(_ manifests: [Manifest]) throws(Problem) {
        var positions: [UInt32: Int] = [:]
        var first: CampaignIdentity?
        for (position, manifest) in manifests.enumerated() {
            guard let shard = manifest.identity.shard else { throw .noShard(position) }
            if let one = manifests[0].identity.shard, !one.isOfSameDivision(as: shard) {
                throw .otherDivision(position, "shards \(shard.division) and \(one.division)")
            }
            if let known = positions[shard.index] { throw .sameShard(known, position) }
            var identity = manifest.identity
            identity.shard?.index = 1
            if let difference = first?.firstDifference(from: identity) {
                throw .otherCampaign(position, difference)
            }
            first = first ?? identity
            positions[shard.index] = position
        }
        guard let shard = first?.shard else { throw .missing(index: 1, count: 1) }
        var order: [Int] = []
        for index in 1...max(1, shard.count) {
            guard let position = positions[index] else {
                throw .missing(index: index, count: shard.count)
            }
            if let last = order.last {
                try Self.checkOrder(manifests, last, position, isByRow: shard.isByRow)
            }
            order.append(position)
        }
        self.order = order
        isByRow = shard.isByRow
    }

    private static func checkOrder(
        _ manifests: [Manifest], _ earlier: Int, _ later: Int, isByRow: Bool
    ) throws(Problem) {
        if isByRow { return }
        let end = manifests[earlier].part ?? .wholeList
        let start = manifests[later].part ?? .wholeList
        guard end.endRow == start.firstRow, end.endByteOffset == start.byteOffset else {
            throw .notAdjacent(earlier, later)
        }
    }
}

extension Manifest {
    /// Creates the manifest of merged shards.
    ///
    /// - Parameters:
    ///   - shards: Manifests in the order of their shards.
    ///   - names: Their subdirectories, in the same order.
    public init(campaign: UInt64, merging shards: [Manifest], names: [String]) {
        precondition(!shards.isEmpty && shards.count == names.count, "a name a shard")
        var identity = shards[0].identity
        identity.shard = nil
        identity.listByteCount = shards.lazy.compactMap(\.identity.listByteCount).first
        self.init(
            campaign: campaign, identity: identity,
            firstStartedAtMilliseconds: shards.map(\.firstStartedAtMilliseconds).min() ?? 0,
            expirationSeconds: shards[0].expirationSeconds, listPath: shards[0].listPath)
        self.shards = names
        // Labels that all shards share.
        labels = shards[0].labels?.filter { label in
            shards.allSatisfy { $0.labels?[label.key] == label.value }
        }
        canaryPassed = shards.allSatisfy(\.canaryPassed)
        finish(shards.allSatisfy(\.isFinished))
        let counts = shards.map(\.rowCount)
        // If shards had their own row limits, they do not cover all rows of the list up to the last
        // one.
        let isWhole = shards.allSatisfy { $0.rowsLimit == nil }
        if isWhole, !counts.contains(nil) { rowCount = counts.compactMap(\.self).max() }
        for shard in shards {
            counters.retries += shard.counters.retries
            counters.add(shortened: shard.counters.shortened)
            counters.reconnects += shard.counters.reconnects
            counters.connections += shard.counters.connections
        }
    }
}
