public import BroadsideAPNs
public import BroadsideRows

/// Arms of a campaign, and what each of them sends in place of the campaign's own.
public struct ArmPayloads: Sendable {
    /// Own values of an arm.
    public struct Own: Sendable {
        /// Index of the arm's payload in `PayloadSet.templates`; nil: that of the campaign.
        public var template: Int?
        /// The arm's apns-collapse-id; nil: that of the campaign.
        public var collapse: TextTemplate?
        /// The arm's apns-priority; nil: that of the campaign.
        public var priority: Priority?

        /// Creates an arm that sends what the campaign sends.
        public init() {}
    }

    /// Rule that puts devices into arms.
    public let split: ArmSplit
    /// Own values, in the order of the arms' numbers.
    public let own: [Own]

    /// Creates the arms of a campaign.
    public init(split: ArmSplit, own: [Own]) {
        precondition(own.count == split.arms.count, "each arm has its own values")
        self.split = split
        self.own = own
    }

    /// Whether any arm has its own collapse ID.
    public var haveCollapse: Bool { own.contains { $0.collapse != nil } }

    /// An arm's own priority; nil for number 0, and if it has that of the campaign.
    public func priority(of arm: UInt8) -> Priority? {
        arm == 0 ? nil : own[Int(arm) - 1].priority
    }
}
