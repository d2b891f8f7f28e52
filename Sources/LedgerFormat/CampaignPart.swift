internal import BroadsideAPNs

/// Part of a campaign with several lists (`--part K/N` with `--campaign-id`).
///
/// All parts share the campaign's number and differ in their apns-ids and segments.
public struct CampaignPart: Codable, Hashable, Sendable {
    /// Number of the part, from 1.
    public private(set) var index: UInt16
    /// Number of parts.
    public let count: UInt16

    /// Maximum number of parts of a campaign: an apns-id has 10 bits for the part's number.
    public static var countMax: UInt16 { NotificationID.partMax }

    /// Creates a part; nil unless 1 <= index <= count <= `countMax`.
    ///
    /// - Parameters:
    ///   - index: Number of the part, from 1.
    ///   - count: Number of parts.
    public init?(index: UInt16, count: UInt16) {
        guard index >= 1, index <= count, count <= Self.countMax else { return nil }
        (self.index, self.count) = (index, count)
    }

    /// Parses `K/N`; nil for anything else.
    ///
    /// - Parameter text: Value of `--part`.
    public init?(_ text: String) {
        let numbers = text.split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2,
            numbers.allSatisfy({ $0.utf8.allSatisfy { (48...57) ~= $0 } }),
            let index = UInt16(numbers[0]), let count = UInt16(numbers[1])
        else { return nil }
        self.init(index: index, count: count)
    }

    /// Text of the part: `K/N`.
    public var text: String { "\(index)/\(count)" }

    /// First part of the same campaign, for comparing the identities of several parts.
    var first: CampaignPart {
        var first = self
        first.index = 1
        return first
    }
}

extension CampaignIdentity {
    /// Part number in apns-ids; 0 for a campaign of one list.
    public var partNumber: UInt16 { part?.index ?? 0 }
}

extension Manifest {
    /// Number in the headers of the ledger's segments. It differs for each part of a campaign, so
    /// that a segment of another part is recognized.
    public var segmentNumber: UInt64 {
        Self.segmentNumber(campaign: campaignNumber, part: identity.partNumber)
    }

    /// - Parameters:
    ///   - campaign: The campaign's number.
    ///   - part: Its part, from 1; 0 for a campaign of one list.
    /// - Returns: The campaign's number plus the part times an odd constant: a different number for
    ///   each part.
    public static func segmentNumber(campaign: UInt64, part: UInt16) -> UInt64 {
        campaign &+ UInt64(part) &* 0x9E37_79B9_7F4A_7C15
    }

    /// Whether the ledger was merged from parts of a campaign, each with its own list, instead of
    /// from shards of one list.
    public var holdsParts: Bool { shards != nil && identity.campaignID != nil }
}
