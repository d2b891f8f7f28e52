import BroadsideLedgerFormat
import BroadsideSupport

/// Whose tokens a ledger's verdicts are about: an app, and one of APNs' environments.
public struct TokenScope: Sendable, Equatable {
    /// The apns-topic; nil: the client certificate's, or each row's own, which the ledger does not name.
    public var topic: String?
    /// `production` or `development`; nil: a feedback service's, which does not say.
    public var environment: String?

    /// Names a scope.
    public init(topic: String?, environment: String?) {
        self.topic = topic
        self.environment = environment
    }

    /// The scope of a campaign.
    init(_ identity: CampaignIdentity) {
        topic = identity.topic.flatMap { $0.contains("{{") ? nil : $0 }
        environment =
            identity.wireProtocol == CampaignIdentity.feedbackProtocol ? nil : identity.environment
    }

    /// Whether both may be the same: what is not named may be any.
    public func mayBe(_ other: TokenScope) -> Bool {
        func mayBe(_ first: String?, _ second: String?) -> Bool {
            first == nil || second == nil || first == second
        }
        return mayBe(topic, other.topic) && mayBe(environment, other.environment)
    }
}
