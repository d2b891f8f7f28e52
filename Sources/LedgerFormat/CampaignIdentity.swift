public import BroadsideRows
internal import BroadsideSupport

/// Options and inputs that identify a campaign. A resume with a different identity is refused.
///
/// Credentials, endpoint, rates, connections and reactors are not included.
public struct CampaignIdentity: Codable, Hashable, Sendable {
    /// Part of a list that one campaign sends (`--shard`).
    public struct Shard: Codable, Hashable, Sendable {
        /// Number of the shard, from 1.
        public internal(set) var index: UInt32
        /// Number of shards.
        public internal(set) var count: UInt32
        /// Whether rows are assigned by their number; otherwise the list is divided by bytes.
        var isByRow: Bool

        /// Creates a shard.
        public init(index: UInt32, count: UInt32, isByRow: Bool) {
            self.index = index
            self.count = count
            self.isByRow = isByRow
        }

        /// The shard's rows, by row number; all rows if shards are byte ranges of the list.
        public var selection: RowSelection {
            guard isByRow, count > 1, index >= 1, index <= count else { return .all }
            return RowSelection(divisor: UInt64(count), remainder: UInt64(index - 1))
        }

        /// Whether another shard belongs to the same division of a list.
        func isOfSameDivision(as other: Shard) -> Bool {
            count == other.count && isByRow == other.isByRow
        }

        /// The shard's number and the division of the list, such as `2/4 by rows`.
        var division: String { "\(index)/\(count) by \(isByRow ? "rows" : "bytes")" }
    }

    /// Bytes of the decoded list; nil if unknown at the start.
    public var listByteCount: UInt64?
    /// Format of the list: `lines`, `csv`, `tsv` or `jsonl`.
    public var listFormat: String
    /// Columns in use, starting with the token's.
    public var columns: [String]
    /// SHA-256 of the payload, or of all payload files in an order that the caller chooses;
    /// hexadecimal.
    public internal(set) var payloadSHA256: String
    /// Value of apns-topic, or the template of the rows' topics.
    public var topic: String?
    /// Value of apns-push-type.
    public var pushType: String
    /// Value of apns-priority.
    var priority: Int
    /// The apns-expiration as given, such as `+2h`.
    var expiration: String?
    /// Value of apns-collapse-id.
    var collapseID: String?
    /// Environment: `production` or `development`.
    public var environment: String
    /// Shard of the list; nil for the whole list.
    public var shard: Shard?
    /// Part of the campaign, with its own list; nil for a campaign of one list, and in a merged
    /// ledger.
    public var part: CampaignPart?
    /// Campaign number as given, 16 hexadecimal digits; nil if it was drawn at random.
    public var campaignID: String?
    /// SHA-256 of the decoded suppression list; hexadecimal.
    var suppressSHA256: String?
    /// Whether the campaign has a suppression list.
    public var hasSuppressionList: Bool { suppressSHA256 != nil }
    /// Treatment of later copies of a token: `skip`, or nil if they are sent.
    var duplicates: String?
    /// The conditions that rows must meet, as the filter formats them; nil if there are none.
    public var filter: [String]?
    /// The rules that skip rows because of earlier ledgers; nil if there are none.
    public var earlier: EarlierRules?
    /// `no` if the ledger has neither tokens nor fingerprints; nil if it has them.
    public var keepTokens: String?
    /// The rules about when rows are sent; nil if all rows are sent immediately.
    var delivery: DeliveryRules?
    /// The split of devices into arms; nil if the campaign has no arms.
    public var split: ArmSplit?
    /// Protocol: `binary` for a legacy gateway, `feedback` for a feedback service, `broadcast` for
    /// a broadcast channel, nil for device pushes of the provider API.
    public var wireProtocol: String?
    /// ID of the broadcast channel; nil for anything but a broadcast.
    public var channel: String?

    /// Creates an identity.
    public init(
        listByteCount: UInt64?, listFormat: String, columns: [String], payloadSHA256: String,
        topic: String?, pushType: String, priority: Int, expiration: String?, collapseID: String?,
        environment: String, shard: Shard?, part: CampaignPart? = nil, campaignID: String? = nil,
        suppressSHA256: String?, duplicates: String? = nil,
        earlier: EarlierRules? = nil, delivery: DeliveryRules? = nil, keepTokens: String? = nil,
        wireProtocol: String? = nil, channel: String? = nil
    ) {
        self.listByteCount = listByteCount
        self.listFormat = listFormat
        self.columns = columns
        self.payloadSHA256 = payloadSHA256
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.environment = environment
        self.shard = shard
        self.part = part
        self.campaignID = campaignID
        self.suppressSHA256 = suppressSHA256
        self.duplicates = duplicates
        self.earlier = earlier
        self.delivery = delivery
        self.keepTokens = keepTokens
        self.wireProtocol = wireProtocol
        self.channel = channel
    }

    /// Whether rows are sent at their local time, in waves.
    public var sendsAtLocalTime: Bool { delivery != nil }

    /// Whether the ledger has tokens and fingerprints.
    public var keepsTokens: Bool { keepTokens != Self.noTokens }
    /// Value of `keepTokens` for a ledger without tokens.
    public static let noTokens = "no"

    /// Whether each row names its topic. `topic` is then a template with columns to fill in.
    public var hasRowTopics: Bool { topic?.contains("{{") ?? false }

    /// Whether an accepted notification gets no response. This is true for a legacy gateway, which
    /// also accepts notifications for removed apps.
    public var acceptsBySilence: Bool { wireProtocol == Self.binaryProtocol }
    /// Whether the ledger is that of a broadcast.
    public var isBroadcast: Bool { wireProtocol == Self.broadcastProtocol }
    /// Value of `wireProtocol` for a campaign that is sent to a legacy gateway.
    public static let binaryProtocol = "binary"
    /// Value of `wireProtocol` for the reports of a feedback service.
    public static let feedbackProtocol = "feedback"
    /// Value of `wireProtocol` for a broadcast.
    public static let broadcastProtocol = "broadcast"

    /// Whether each row's request has an apns-id, from which the row can be found.
    public var hasNotificationIDs: Bool {
        wireProtocol == nil || wireProtocol == Self.broadcastProtocol
    }

    /// The list's rows that belong to the campaign, by row number.
    var selection: RowSelection { shard?.selection ?? .all }

    /// Describes the first difference from another identity; nil if it is the same campaign.
    ///
    /// - Parameter other: The identity of the new run. `self` is the identity with which the
    ///   campaign started.
    public func firstDifference(from other: CampaignIdentity) -> String? {
        func differ<Value: Equatable>(_ name: String, _ path: KeyPath<Self, Value>) -> String? {
            let (own, others) = (self[keyPath: path], other[keyPath: path])
            return own == others
                ? nil : "\(name) was \(describe(own)), now it is \(describe(others))"
        }
        // Each part has its own list. If the part's number differs, that explains the other
        // differences, so it is reported first.
        if let difference = differ("the campaign id", \.campaignID) ?? differ("the part", \.part) {
            return difference
        }
        if listByteCount != nil && other.listByteCount != nil,
            let difference = differ("the list's size in bytes", \.listByteCount)
        {
            return difference
        }
        if wireProtocol != other.wireProtocol {
            return "the protocol was \(wireProtocol ?? "http2"), now it is "
                + (other.wireProtocol ?? "http2")
        }
        if let difference = differ("the channel", \.channel) { return difference }
        if keepTokens != other.keepTokens {
            return
                "--keep-tokens was \(keepTokens ?? "yes"), now it is \(other.keepTokens ?? "yes")"
        }
        if payloadSHA256 != other.payloadSHA256 { return "the payload differs" }
        if suppressSHA256 != other.suppressSHA256 { return "the suppression list differs" }
        // A different filter also changes the columns in use. The filter is the more exact
        // explanation, so it is compared first.
        if filter != other.filter {
            func description(_ filter: [String]?) -> String {
                filter.map { printable($0.map { "'\($0)'" }.joined(separator: " and ")) }
                    ?? "not set"
            }
            return "--where was \(description(filter)), now it is \(description(other.filter))"
        }
        if split != other.split {
            guard split?.text == other.split?.text else {
                return "--split was \(split?.text ?? "not set"), now it is "
                    + (other.split?.text ?? "not set")
            }
            return "--split-salt was '\(printable(split?.salt ?? ""))', now it is "
                + "'\(printable(other.split?.salt ?? ""))'"
        }
        let (rules, otherRules) = (earlier ?? EarlierRules(), other.earlier ?? EarlierRules())
        if let difference = rules.firstDifference(from: otherRules) { return difference }
        let (delivery, otherDelivery) = (
            delivery ?? DeliveryRules(), other.delivery ?? DeliveryRules()
        )
        if let difference = delivery.firstDifference(from: otherDelivery) { return difference }
        let differences = [
            differ("the list's format", \.listFormat), differ("the columns in use", \.columns),
            differ("the topic", \.topic), differ("the push type", \.pushType),
            differ("the priority", \.priority), differ("the expiration", \.expiration),
            differ("the collapse id", \.collapseID), differ("the environment", \.environment),
            differ("the shard", \.shard), differ("the rule for duplicates", \.duplicates),
        ]
        return differences.lazy.compactMap(\.self).first
    }

    private func describe<Value>(_ value: Value) -> String {
        switch value {
        case let shard as Shard: "\(shard.index)/\(shard.count)\(shard.isByRow ? " by rows" : "")"
        case let part as CampaignPart: part.text
        case let columns as [String]: columns.joined(separator: ",")
        case let text as String: text
        case let number as Int: String(number)
        case let number as UInt64: String(number)
        default: "not set"
        }
    }
}
