public import BroadsideRows
internal import BroadsideSupport

/// What makes a campaign the same campaign: a resume with another identity is refused.
///
/// Credentials, endpoint, rates, connections and reactors are not part of it.
public struct CampaignIdentity: Codable, Hashable, Sendable {
    /// A part of a list (`--shard`).
    public struct Shard: Codable, Hashable, Sendable {
        /// Which part, from 1.
        var index: UInt32
        /// Of how many.
        var count: UInt32
        /// Whether rows are dealt out by their number; else the list is cut by bytes.
        var isByRow: Bool

        /// Names a part.
        public init(index: UInt32, count: UInt32, isByRow: Bool) {
            self.index = index
            self.count = count
            self.isByRow = isByRow
        }

        /// Its rows of the part of the list that it has.
        public var selection: RowSelection {
            guard isByRow, count > 1, index >= 1, index <= count else { return .all }
            return RowSelection(divisor: UInt64(count), remainder: UInt64(index - 1))
        }
    }

    /// Bytes of the decoded list; nil where they were not known at the start.
    public var listByteCount: UInt64?
    /// `lines`, `csv`, `tsv` or `jsonl`.
    public var listFormat: String
    /// The columns in use, the token's first.
    public var columns: [String]
    /// SHA-256 of the payload, or of all payload files in an order of the caller's; hexadecimal.
    var payloadSHA256: String
    /// The apns-topic.
    public var topic: String?
    /// The apns-push-type.
    var pushType: String
    /// The apns-priority.
    var priority: Int
    /// The apns-expiration as it was asked for, such as `+2h`.
    var expiration: String?
    /// The apns-collapse-id.
    var collapseID: String?
    /// `production` or `development`.
    public var environment: String
    /// Which part of the list; nil for all of it.
    public var shard: Shard?
    /// Which of the campaign's lists; nil for a campaign of one list, and in a merged ledger.
    public var part: CampaignPart?
    /// The campaign's number as it was asked for, 16 hexadecimal digits; nil for one that was drawn at
    /// random.
    public var campaignID: String?
    /// SHA-256 of the list of opt-outs, decoded; hexadecimal.
    var suppressSHA256: String?
    /// What becomes of later copies of a token: `skip`; nil where they are sent.
    var duplicates: String?
    /// The conditions that rows must meet, as the filter writes them; nil: there are none.
    var filter: [String]?
    /// Which rows are skipped because of earlier ledgers; nil: none.
    var earlier: EarlierRules?
    /// What was spoken: `binary` to a legacy gateway, `feedback` where a feedback service was read;
    /// nil for the provider API.
    public var wireProtocol: String?

    /// Describes a campaign.
    public init(
        listByteCount: UInt64?, listFormat: String, columns: [String], payloadSHA256: String,
        topic: String?, pushType: String, priority: Int, expiration: String?, collapseID: String?,
        environment: String, shard: Shard?, part: CampaignPart? = nil, campaignID: String? = nil,
        suppressSHA256: String?, duplicates: String? = nil, filter: [String]? = nil,
        earlier: EarlierRules? = nil,
        wireProtocol: String? = nil
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
        self.filter = filter
        self.earlier = earlier
        self.wireProtocol = wireProtocol
    }

    /// True where nobody answers for a notification that is accepted: a legacy gateway says nothing
    /// of it, and accepts those for apps that are gone as well.
    public var acceptsBySilence: Bool { wireProtocol == Self.binaryProtocol }
    /// `wireProtocol` of a campaign for a legacy gateway.
    public static let binaryProtocol = "binary"
    /// `wireProtocol` of what a feedback service said.
    public static let feedbackProtocol = "feedback"

    /// The rows the campaign is about.
    var selection: RowSelection { shard?.selection ?? .all }

    /// Names in words the first thing in which another identity differs; nil if it is the same
    /// campaign.
    ///
    /// - Parameter other: what is asked for now; `self` is what the run began with.
    public func firstDifference(from other: CampaignIdentity) -> String? {
        func differ<Value: Equatable>(_ name: String, _ path: KeyPath<Self, Value>) -> String? {
            let (own, others) = (self[keyPath: path], other[keyPath: path])
            return own == others
                ? nil : "\(name) was \(describe(own)), now it is \(describe(others))"
        }
        // Parts have lists of their own: which part it is says more than that the list differs.
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
        if payloadSHA256 != other.payloadSHA256 { return "the payload is another one" }
        if suppressSHA256 != other.suppressSHA256 { return "the list of opt-outs is another one" }
        // Its columns are in use, too: this difference is the more exact one.
        if filter != other.filter {
            func description(_ filter: [String]?) -> String {
                filter.map { printable($0.map { "'\($0)'" }.joined(separator: " and ")) }
                    ?? "not set"
            }
            return "--where was \(description(filter)), now it is \(description(other.filter))"
        }
        let (rules, otherRules) = (earlier ?? EarlierRules(), other.earlier ?? EarlierRules())
        if let difference = rules.firstDifference(from: otherRules) { return difference }
        return differ("the list's format", \.listFormat)
            ?? differ("the columns in use", \.columns)
            ?? differ("the topic", \.topic)
            ?? differ("the push type", \.pushType)
            ?? differ("the priority", \.priority)
            ?? differ("the expiration", \.expiration)
            ?? differ("the collapse id", \.collapseID)
            ?? differ("the environment", \.environment)
            ?? differ("the shard", \.shard)
            ?? differ("the rule for duplicates", \.duplicates)
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
