/// Ledgers of all parts of one campaign, which together cover each row of all its lists exactly
/// once.
public struct PartSet: Sendable {
    /// Reason why the ledgers do not form a whole campaign.
    public enum Problem: Error, Hashable, Sendable {
        /// The ledger was sent without `--part`.
        case noPart(Int)
        /// The ledger belongs to the same campaign as the first ledger, but divides the campaign
        /// into another number of parts. The text names the parts of both ledgers.
        case otherDivision(Int, String)
        /// Two ledgers have different identities; the text describes the difference.
        case otherCampaign(Int, String)
        /// Two ledgers belong to the same part.
        case samePart(Int, Int)
        /// Two parts were sent from lists with the same content.
        case sameList(Int, Int)
        /// A part has no ledger.
        case missing(index: UInt16, count: UInt16)
    }

    /// Ledgers in the order of their parts: indices into the given manifests.
    public let order: [Int]

    /// Checks that manifests belong to all parts of one campaign.
    ///
    /// - Parameter manifests: The manifests, in any order.
    public init(_ manifests: [Manifest]) throws(Problem) {
        var positions: [UInt16: Int] = [:]
        var lists: [String: Int] = [:]
        var first: CampaignIdentity?
        for (position, manifest) in manifests.enumerated() {
            guard let part = manifest.identity.part else { throw .noPart(position) }
            let identity = manifest.identity.withoutList
            if let one = manifests[0].identity.part, one.count != part.count,
                first?.campaignID == identity.campaignID
            {
                throw .otherDivision(position, "parts \(part.text) and \(one.text)")
            }
            if let difference = first?.firstDifference(from: identity) {
                throw .otherCampaign(position, difference)
            }
            first = first ?? identity
            if let known = positions.updateValue(position, forKey: part.index) {
                throw .samePart(known, position)
            }
            // A list without rows may occur twice. A list with rows would have been sent twice.
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
    /// Identity without the values that differ between the parts of a campaign.
    fileprivate var withoutList: CampaignIdentity {
        var identity = self
        identity.part = part?.first
        identity.listByteCount = nil
        return identity
    }
}

extension Manifest {
    /// Creates the manifest of merged parts of a campaign.
    ///
    /// - Parameters:
    ///   - parts: Manifests in the order of their parts.
    ///   - names: Their subdirectories, in the same order.
    public init(mergingParts parts: [Manifest], names: [String]) {
        self.init(campaign: parts[0].campaignNumber, merging: parts, names: names)
        identity.part = nil
        // Each part has a list of its own.
        identity.listByteCount = nil
        listPath = nil
        rowCount = nil
    }
}
