public import BroadsideAPNs

/// Options of one arm, which replace the campaign's options.
public struct ArmOptions: Sendable {
    /// Name of the arm.
    public var name: String
    /// File of the arm's payload; nil: the campaign's payload.
    public var payload: String?
    /// Value of apns-collapse-id; nil: the campaign's value.
    public var collapseID: String?
    /// Value of apns-priority; nil: the campaign's value.
    public var priority: Priority?

    /// Creates an arm with the campaign's options.
    public init(name: String) { self.name = name }
}
