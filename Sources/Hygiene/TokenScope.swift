import BroadsideLedgerFormat
import BroadsideSupport

/// App and APNs environment that a ledger's verdicts apply to.
public struct TokenScope: Sendable, Equatable {
    /// The apns-topic; nil if the client certificate determined the topic, or if each row names its
    /// own topic.
    public var topic: String?
    /// `production` or `development`; nil if it is unknown, as for a feedback service.
    public var environment: String?

    /// Creates a scope from its names.
    public init(topic: String?, environment: String?) {
        self.topic = topic
        self.environment = environment
    }

    /// Creates the scope of a campaign.
    init(_ identity: CampaignIdentity) {
        topic = identity.hasRowTopics ? nil : identity.topic
        environment =
            identity.wireProtocol == CampaignIdentity.feedbackProtocol ? nil : identity.environment
    }

    /// Whether this scope and another one may be the same; an unnamed topic or environment matches
    /// any.
    public func mayBe(_ other: TokenScope) -> Bool {
        func mayBe(_ first: String?, _ second: String?) -> Bool {
            first == nil || second == nil || first == second
        }
        return mayBe(topic, other.topic) && mayBe(environment, other.environment)
    }
}
