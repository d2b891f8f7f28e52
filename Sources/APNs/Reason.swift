/// The reason for a row's outcome: APNs' own `reason` texts, and Broadside's for rows without a
/// response.
///
/// The raw values are stored in ledgers and never change; 0 means "no reason". Texts that APNs
/// introduces later have no case and are kept as text. Source: Apple, "Handling notification
/// responses from APNs", table of `reason` values.
public enum Reason: UInt8, Sendable, CaseIterable, Hashable {
    // Status 400.
    case badCollapseID = 1
    case badDeviceToken = 2
    case badExpirationDate = 3
    case badMessageID = 4
    case badPriority = 5
    case badTopic = 6
    case deviceTokenNotForTopic = 7
    case duplicateHeaders = 8
    case idleTimeout = 9
    case invalidPushType = 10
    case missingDeviceToken = 11
    case missingTopic = 12
    case payloadEmpty = 13
    case topicDisallowed = 14

    // Status 400, in responses about broadcast channels only.
    case featureNotEnabled = 15
    /// Undocumented variant of `featureNotEnabled`, observed in production.
    case broadcastFeatureNotEnabled = 16
    case missingChannelID = 17
    case badChannelID = 18
    case channelNotRegistered = 19
    case badRequestParams = 20
    case badRequestPayload = 21
    /// APNs sends this reason if the storage policy is missing or unknown. It is not documented,
    /// but was observed in production.
    case missingChannelQueueSize = 22
    case cannotCreateChannelConfig = 23
    case missingPushType = 24

    // Status 403.
    case badCertificate = 32
    case badCertificateEnvironment = 33
    case expiredProviderToken = 34
    case forbidden = 35
    case invalidProviderToken = 36
    case missingProviderToken = 37
    case unrelatedKeyIDInToken = 38
    case badEnvironmentKeyIDInToken = 39
    /// Undocumented variant of `badEnvironmentKeyIDInToken`, observed in production in 2025.
    case badEnvironmentKeyInToken = 40
    /// The credential does not cover the app in the path of a request about channels.
    case topicMismatch = 41

    // Status 404, 405, 410, 413, 429, 500 and 503.
    case badPath = 48
    case methodNotAllowed = 52
    case expiredToken = 56
    case unregistered = 57
    /// APNs' 413 response, and also Broadside's reason for an oversized payload that was never
    /// sent.
    case payloadTooLarge = 64
    case tooManyProviderTokenUpdates = 72
    case tooManyRequests = 73
    case internalServerError = 80
    case serviceUnavailable = 88
    case shutdown = 89

    // Statuses of the legacy gateway without an equivalent in the provider API.
    case processingError = 96
    case invalidTokenSize = 97
    case invalidTopicSize = 98
    case protocolError = 99
    case unknownError = 100

    // Broadside's own reasons, which APNs never sends.
    /// No response within the request timeout.
    case timeout = 128
    /// The connection was lost before the response arrived.
    case connectionLost = 129
    /// The row's text is not a device token.
    case malformedToken = 130
    /// The row lacks a column that the campaign uses, or the column is null.
    case missingColumn = 131
    /// A column's value cannot be converted to the form that the payload requires.
    case badValue = 132
    /// No payload file applies to the row.
    case noPayload = 133
    /// The token is on the suppression list.
    case suppressed = 134
    /// The token occurred earlier in the list.
    case duplicate = 135
    /// The body of the response could not be parsed.
    case unparsable = 136
    /// The row violates its format, so that the boundaries of its fields are unknown.
    case malformedRow = 137
    /// The row does not match `--where`.
    case filtered = 138
    /// An earlier ledger reports the token as dead.
    case deadToken = 139
    /// Earlier campaigns reached the device as often as `--cap` allows.
    case frequencyCap = 140
    /// The token is in the arm of `--split` that receives nothing.
    case holdout = 141
    /// The row's time of delivery had passed at the campaign's first start.
    case late = 142
    /// The row names no time zone that the system knows.
    case badZone = 143

    /// Whether the reason comes from APNs. All other reasons are Broadside's own.
    public var isFromAPNs: Bool { rawValue < 128 }

    /// Whether APNs may have processed a row with this reason, although no response arrived.
    public var leavesDoubt: Bool { self == .timeout || self == .connectionLost }

    /// The reason's text, as shown in exports and summaries; APNs' own text if APNs uses the
    /// reason.
    public var text: String { String(describing: staticText) }

    /// The text as static data, for output without allocation.
    public var staticText: StaticString {
        switch self {
        case .badCollapseID: "BadCollapseId"
        case .badDeviceToken: "BadDeviceToken"
        case .badExpirationDate: "BadExpirationDate"
        case .badMessageID: "BadMessageId"
        case .badPriority: "BadPriority"
        case .badTopic: "BadTopic"
        case .deviceTokenNotForTopic: "DeviceTokenNotForTopic"
        case .duplicateHeaders: "DuplicateHeaders"
        case .idleTimeout: "IdleTimeout"
        case .invalidPushType: "InvalidPushType"
        case .missingDeviceToken: "MissingDeviceToken"
        case .missingTopic: "MissingTopic"
        case .payloadEmpty: "PayloadEmpty"
        case .topicDisallowed: "TopicDisallowed"
        case .featureNotEnabled: "FeatureNotEnabled"
        case .broadcastFeatureNotEnabled: "BroadcastFeatureNotEnabled"
        case .missingChannelID: "MissingChannelId"
        case .badChannelID: "BadChannelId"
        case .channelNotRegistered: "ChannelNotRegistered"
        case .badRequestParams: "BadRequestParams"
        case .badRequestPayload: "BadRequestPayload"
        case .missingChannelQueueSize: "MissingChannelQueueSize"
        case .cannotCreateChannelConfig: "CannotCreateChannelConfig"
        case .missingPushType: "MissingPushType"
        case .badCertificate: "BadCertificate"
        case .badCertificateEnvironment: "BadCertificateEnvironment"
        case .expiredProviderToken: "ExpiredProviderToken"
        case .forbidden: "Forbidden"
        case .invalidProviderToken: "InvalidProviderToken"
        case .missingProviderToken: "MissingProviderToken"
        case .unrelatedKeyIDInToken: "UnrelatedKeyIdInToken"
        case .badEnvironmentKeyIDInToken: "BadEnvironmentKeyIdInToken"
        case .badEnvironmentKeyInToken: "BadEnvironmentKeyInToken"
        case .topicMismatch: "TopicMismatch"
        case .badPath: "BadPath"
        case .methodNotAllowed: "MethodNotAllowed"
        case .expiredToken: "ExpiredToken"
        case .unregistered: "Unregistered"
        case .payloadTooLarge: "PayloadTooLarge"
        case .tooManyProviderTokenUpdates: "TooManyProviderTokenUpdates"
        case .tooManyRequests: "TooManyRequests"
        case .internalServerError: "InternalServerError"
        case .serviceUnavailable: "ServiceUnavailable"
        case .shutdown: "Shutdown"
        case .processingError: "ProcessingError"
        case .invalidTokenSize: "InvalidTokenSize"
        case .invalidTopicSize: "InvalidTopicSize"
        case .protocolError: "ProtocolError"
        case .unknownError: "UnknownError"
        case .timeout: "Timeout"
        case .connectionLost: "ConnectionLost"
        case .malformedToken: "MalformedToken"
        case .missingColumn: "MissingColumn"
        case .badValue: "BadValue"
        case .noPayload: "NoPayload"
        case .suppressed: "Suppressed"
        case .duplicate: "Duplicate"
        case .unparsable: "Unparsable"
        case .malformedRow: "MalformedRow"
        case .filtered: "Filtered"
        case .deadToken: "DeadToken"
        case .frequencyCap: "FrequencyCap"
        case .holdout: "Holdout"
        case .late: "Late"
        case .badZone: "BadZone"
        }
    }
}
