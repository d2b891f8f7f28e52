public import BroadsideAPNs

/// Options of one arm of a campaign, in place of the campaign's own.
public struct ArmOptions: Sendable {
    /// Name of the arm.
    public var name: String
    /// File of the arm's payload; nil: the campaign's payload.
    public var payload: String?
    /// Value of apns-collapse-id; nil: the campaign's value.
    public var collapseID: String?
    /// Value of apns-priority; nil: the campaign's value.
    public var priority: Priority?

    /// Creates an arm that sends what the campaign sends.
    public init(name: String) { self.name = name }
}
