internal import BroadsideAPNs

/// Which of a campaign's lists a run is about (`--part K/N` with `--campaign-id`).
///
/// All parts have the campaign's number; apns-ids and segments tell them apart.
public struct CampaignPart: Codable, Hashable, Sendable {
    /// Which part, from 1.
    public private(set) var index: UInt16
    /// Of how many.
    public let count: UInt16

    /// The most parts of a campaign: an apns-id has 10 bits for them.
    public static var countMax: UInt16 { NotificationID.partMax }

    /// Names a part; nil unless 1 <= index <= count <= `countMax`.
    ///
    /// - Parameters:
    ///   - index: which part, from 1.
    ///   - count: of how many.
    public init?(index: UInt16, count: UInt16) {
        guard index >= 1, index <= count, count <= Self.countMax else { return nil }
        (self.index, self.count) = (index, count)
    }

    /// Reads `K/N`; nil for anything else.
    ///
    /// - Parameter text: as `--part` takes it.
    public init?(_ text: String) {
        let numbers = text.split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2,
            numbers.allSatisfy({ $0.utf8.allSatisfy { (48...57) ~= $0 } }),
            let index = UInt16(numbers[0]), let count = UInt16(numbers[1])
        else { return nil }
        self.init(index: index, count: count)
    }

    /// `K/N`.
    public var text: String { "\(index)/\(count)" }

    /// The first part of the same campaign: what identities of several parts are compared with.
    var first: CampaignPart {
        var first = self
        first.index = 1
        return first
    }
}

extension CampaignIdentity {
    /// The part's number, as apns-ids have it; 0 for a campaign of one list.
    public var partNumber: UInt16 { part?.index ?? 0 }
}

extension Manifest {
    /// The number in the headers of its segments: the campaign's, and another for each part, so that a
    /// segment of one part is not taken for another's.
    public var segmentNumber: UInt64 {
        Self.segmentNumber(campaign: campaignNumber, part: identity.partNumber)
    }

    /// - Parameters:
    ///   - campaign: the campaign's number.
    ///   - part: its part, from 1; 0 for a campaign of one list.
    /// - Returns: the campaign's number plus the part times an odd constant: no two parts have the same.
    public static func segmentNumber(campaign: UInt64, part: UInt16) -> UInt64 {
        campaign &+ UInt64(part) &* 0x9E37_79B9_7F4A_7C15
    }

    /// For a merged ledger: whether the directories below hold parts of a campaign, each with a list of its
    /// own, and not shards of one list.
    public var holdsParts: Bool { shards != nil && identity.campaignID != nil }
}
