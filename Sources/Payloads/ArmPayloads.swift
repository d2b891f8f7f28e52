public import BroadsideAPNs
public import BroadsideRows

/// Arms of a campaign. An arm may have its own payload, collapse ID and priority, which replace
/// those of the campaign.
public struct ArmPayloads: Sendable {
    /// The values that an arm sends in place of the campaign's.
    public struct Own: Sendable {
        /// Index of the arm's payload in `PayloadSet.templates`; nil: that of the campaign.
        public var template: Int?
        /// The arm's apns-collapse-id; nil: that of the campaign.
        public var collapse: TextTemplate?
        /// The arm's apns-priority; nil: that of the campaign.
        public var priority: Priority?

        /// Creates an arm without values of its own.
        public init() {}
    }

    /// Rule that puts devices into arms.
    public let split: ArmSplit
    /// The values of each arm, in the order of the arms' numbers.
    public let own: [Own]

    /// Creates the arms of a campaign.
    public init(split: ArmSplit, own: [Own]) {
        precondition(own.count == split.arms.count, "each arm has its own values")
        self.split = split
        self.own = own
    }

    /// Whether any arm has its own collapse ID.
    public var haveCollapse: Bool { own.contains { $0.collapse != nil } }

    /// Priority of an arm; nil if the arm has the campaign's priority. Number 0 means no arm, so it
    /// also gives nil.
    public func priority(of arm: UInt8) -> Priority? {
        arm == 0 ? nil : own[Int(arm) - 1].priority
    }
}
