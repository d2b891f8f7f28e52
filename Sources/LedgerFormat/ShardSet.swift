import BroadsideRows

/// Manifests of several ledgers, if they are the shards of one campaign: together they speak of each
/// row of a list exactly once.
public struct ShardSet: Sendable {
    /// Why ledgers are not a whole campaign.
    public enum Problem: Error, Hashable, Sendable {
        /// The ledger was sent without `--shard`.
        case noShard(Int)
        /// Two ledgers differ in what makes a campaign; the text says in what.
        case otherCampaign(Int, String)
        /// Two ledgers are the same shard's.
        case sameShard(Int, Int)
        /// A shard has no ledger.
        case missing(index: UInt32, count: UInt32)
        /// The later one does not begin where the earlier one ends.
        case notAdjacent(Int, Int)
    }

    /// The ledgers by the number of their shard: indices into what was given.
    public let order: [Int]
    /// Whether the shards are dealt out by row numbers.
    let isByRow: Bool

    /// Checks that manifests are those of all shards of a campaign.
    ///
    /// The campaign's own number differs from shard to shard: it is made when a run begins. What a
    /// resume compares is what tells.
    public init(_ manifests: [Manifest]) throws(Problem) {
        var positions: [UInt32: Int] = [:]
        var first: CampaignIdentity?
        for (position, manifest) in manifests.enumerated() {
            guard let shard = manifest.identity.shard else { throw .noShard(position) }
            if let known = positions[shard.index], first?.shard?.count == shard.count {
                throw .sameShard(known, position)
            }
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
    /// Describes what several shards' ledgers are together.
    ///
    /// - Parameters:
    ///   - shards: in the order of their numbers.
    ///   - names: the directories below, in the same order.
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
        // What they all say.
        labels = shards[0].labels?.filter { label in
            shards.allSatisfy { $0.labels?[label.key] == label.value }
        }
        canaryPassed = shards.allSatisfy(\.canaryPassed)
        finish(shards.allSatisfy(\.isFinished))
        let counts = shards.map(\.rowCount)
        // With limits of their own, the shards' rows are not all before the last one.
        let isWhole = shards.allSatisfy { $0.rowsLimit == nil }
        if isWhole, !counts.contains(nil) { rowCount = counts.compactMap(\.self).max() }
        for shard in shards {
            counters.retries += shard.counters.retries
            counters.reconnects += shard.counters.reconnects
            counters.connections += shard.counters.connections
        }
    }
}
