/// Manifests of several ledgers, if they are those of all parts of one campaign: together they speak of each
/// row of all its lists exactly once.
public struct PartSet: Sendable {
    /// Why ledgers are not a whole campaign.
    public enum Problem: Error, Hashable, Sendable {
        /// The ledger was sent without `--part`.
        case noPart(Int)
        /// Two ledgers differ in what makes a campaign; the text says in what.
        case otherCampaign(Int, String)
        /// Two ledgers are the same part's.
        case samePart(Int, Int)
        /// Two parts were sent from lists with the same content.
        case sameList(Int, Int)
        /// A part has no ledger.
        case missing(index: UInt16, count: UInt16)
    }

    /// The ledgers by the number of their part: indices into what was given.
    public let order: [Int]

    /// Checks that manifests are those of all parts of a campaign.
    ///
    /// - Parameter manifests: in any order.
    public init(_ manifests: [Manifest]) throws(Problem) {
        var positions: [UInt16: Int] = [:]
        var lists: [String: Int] = [:]
        var first: CampaignIdentity?
        for (position, manifest) in manifests.enumerated() {
            guard let part = manifest.identity.part else { throw .noPart(position) }
            let identity = manifest.identity.withoutList
            if let difference = first?.firstDifference(from: identity) {
                throw .otherCampaign(position, difference)
            }
            first = first ?? identity
            if let known = positions.updateValue(position, forKey: part.index) {
                throw .samePart(known, position)
            }
            // A list without rows may well occur twice; one with rows was sent twice then.
            guard let hash = manifest.listHash, manifest.rowCount ?? 0 > 0 else { continue }
            if let known = lists.updateValue(position, forKey: hash) {
                throw .sameList(known, position)
            }
        }
        let count = first?.part?.count ?? 1
        var order: [Int] = []
        for index in 1...count {
            guard let position = positions[index] else {
                throw .missing(index: index, count: count)
            }
            order.append(position)
        }
        self.order = order
    }
}

extension CampaignIdentity {
    /// What all parts of a campaign have in common.
    fileprivate var withoutList: CampaignIdentity {
        var identity = self
        identity.part = part?.first
        identity.listByteCount = nil
        return identity
    }
}

extension Manifest {
    /// Describes what the ledgers of a campaign's parts are together.
    ///
    /// - Parameters:
    ///   - parts: in the order of their numbers.
    ///   - names: the directories below, in the same order.
    public init(mergingParts parts: [Manifest], names: [String]) {
        self.init(campaign: parts[0].campaignNumber, merging: parts, names: names)
        identity.part = nil
        // Each has its own.
        identity.listByteCount = nil
        listPath = nil
        rowCount = nil
    }
}
