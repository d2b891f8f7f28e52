/// Apple's rules for one push type. `PushType.rules` is the only table of them: `send`, `payload
/// check`, the simulator, the help and the documents use it.
public struct PushTypeRules: Sendable, Equatable {
    /// The credentials with which a push type works.
    public enum Credential: Sendable {
        /// A provider token, or a certificate that lists the topic.
        case any
        /// A provider token only.
        case providerToken
        /// A certificate for device management only.
        case managementCertificate
    }

    /// The suffix that the topic has after the bundle ID; nil if the topic is the bundle ID itself.
    ///
    /// Apple's page omits the dot of two suffixes. The suffixes here have the dot, because only
    /// this form works.
    public let topicSuffix: String?
    /// The permitted priorities.
    public let priorities: Priorities
    /// Maximum byte count of a payload, inclusive.
    public let maximumPayloadCount: Int
    /// The credentials with which the push type works.
    public let credential: Credential

    init(
        _ topicSuffix: String?, priorities: Priorities = .all,
        maximumPayloadCount: Int = PayloadRules.maximumCount, credential: Credential = .any
    ) {
        assert(topicSuffix?.hasPrefix(".") ?? true, "a suffix begins with its dot")
        assert(!priorities.isEmpty, "a push type has a default priority")
        self.topicSuffix = topicSuffix
        self.priorities = priorities
        self.maximumPayloadCount = maximumPayloadCount
        self.credential = credential
    }
}

extension PushTypeRules {
    /// A set of priorities.
    public struct Priorities: OptionSet, Sendable {
        /// One bit per priority.
        public let rawValue: UInt8

        /// Creates a set from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Priority 10.
        public static let high = Priorities(rawValue: 1)
        /// Priority 5.
        public static let normal = Priorities(rawValue: 2)
        /// Priority 1.
        public static let low = Priorities(rawValue: 4)
        /// Priorities 10, 5 and 1.
        public static let all: Priorities = [.high, .normal, .low]

        /// Returns whether the set has this priority.
        @inlinable
        public func allows(_ priority: Priority) -> Bool {
            switch priority {
            case .high: contains(.high)
            case .normal: contains(.normal)
            case .low: contains(.low)
            }
        }

        /// The permitted priorities, the most urgent one first. The first one is the default.
        public var all: [Priority] { Priority.allCases.filter(allows) }
    }
}

extension PushType {
    /// The rules of this push type.
    public var rules: PushTypeRules {
        switch self {
        case .alert: PushTypeRules(nil)
        // "Always use priority 5. Using priority 10 is an error."
        case .background: PushTypeRules(nil, priorities: .normal)
        case .voip: PushTypeRules(".voip", maximumPayloadCount: PayloadRules.maximumVoIPCount)
        case .complication: PushTypeRules(".complication")
        case .fileProvider: PushTypeRules(".pushkit.fileprovider")
        // "Set the apns-topic header to the UID attribute from the subject of your MDM push
        // certificate."
        case .mdm: PushTypeRules(nil, credential: .managementCertificate)
        case .liveActivity:
            PushTypeRules(
                ".push-type.liveactivity", priorities: [.high, .normal], credential: .providerToken)
        case .location:
            PushTypeRules(
                ".location-query", priorities: [.high, .normal], credential: .providerToken)
        case .pushToTalk: PushTypeRules(".voip-ptt")
        case .controls: PushTypeRules(".push-type.controls")
        case .widgets: PushTypeRules(".push-type.widgets")
        case .accessory: PushTypeRules(".push-type.accessory")
        }
    }

    /// The suffix that the topic has after the bundle ID; nil if the topic is the bundle ID itself.
    public var topicSuffix: String? { rules.topicSuffix }

    /// The default priority: 10, or 5 for a push type that does not permit 10.
    public var defaultPriority: Priority { rules.priorities.contains(.high) ? .high : .normal }
}
