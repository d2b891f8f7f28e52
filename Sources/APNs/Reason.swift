/// Why a row ended as it did: APNs' own `reason` texts, and ours for what never got an answer.
///
/// The raw values are written to ledgers and never change; 0 stands for "no reason". Texts that
/// APNs invents later have no case and are kept as text.
/// Source: Apple, "Handling notification responses from APNs", table of `reason` values.
public enum Reason: UInt8, Sendable, CaseIterable, Hashable {
    // With status 400.
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

    // With status 403.
    case badCertificate = 32
    case badCertificateEnvironment = 33
    case expiredProviderToken = 34
    case forbidden = 35
    case invalidProviderToken = 36
    case missingProviderToken = 37
    case unrelatedKeyIDInToken = 38
    case badEnvironmentKeyIDInToken = 39
    /// Undocumented spelling of `badEnvironmentKeyIDInToken`, seen in production in 2025.
    case badEnvironmentKeyInToken = 40

    // With status 404, 405, 410, 413, 429, 500 and 503.
    case badPath = 48
    case methodNotAllowed = 52
    case expiredToken = 56
    case unregistered = 57
    /// APNs' answer 413, and ours for a payload that was never sent because it is too large.
    case payloadTooLarge = 64
    case tooManyProviderTokenUpdates = 72
    case tooManyRequests = 73
    case internalServerError = 80
    case serviceUnavailable = 88
    case shutdown = 89

    // Statuses of the legacy gateway that the provider API has no word for.
    case processingError = 96
    case invalidTokenSize = 97
    case invalidTopicSize = 98
    case protocolError = 99
    case unknownError = 100

    // Ours: nothing APNs said.
    /// No answer within the request timeout.
    case timeout = 128
    /// The connection died before the answer came.
    case connectionLost = 129
    /// The row's text is not a device token.
    case malformedToken = 130
    /// The row lacks a column that the campaign uses, or holds a null there.
    case missingColumn = 131
    /// A column's value cannot be turned into what the payload wants there.
    case badValue = 132
    /// No payload file fits the row.
    case noPayload = 133
    /// The token is on the suppress list.
    case suppressed = 134
    /// The token occurred earlier in the list.
    case duplicate = 135
    /// The answer's body could not be read.
    case unparsable = 136
    /// The row breaks the rules of its format, so that nobody knows where its fields end.
    case malformedRow = 137
    /// The row does not match `--where`.
    case filtered = 138
    /// An earlier ledger reports the token as dead.
    case deadToken = 139
    /// Earlier campaigns reached the device as often as `--cap` allows.
    case frequencyCap = 140

    /// Whether APNs uses this text; the others are ours.
    public var isFromAPNs: Bool { rawValue < 128 }

    /// Whether a row that ended by it may have been processed: its response was lost.
    public var leavesDoubt: Bool { self == .timeout || self == .connectionLost }

    /// The text as APNs spells it, and as exports and summaries show it.
    public var text: String { String(describing: staticText) }

    /// The text as static data, for output that must not allocate.
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
        case .badCertificate: "BadCertificate"
        case .badCertificateEnvironment: "BadCertificateEnvironment"
        case .expiredProviderToken: "ExpiredProviderToken"
        case .forbidden: "Forbidden"
        case .invalidProviderToken: "InvalidProviderToken"
        case .missingProviderToken: "MissingProviderToken"
        case .unrelatedKeyIDInToken: "UnrelatedKeyIdInToken"
        case .badEnvironmentKeyIDInToken: "BadEnvironmentKeyIdInToken"
        case .badEnvironmentKeyInToken: "BadEnvironmentKeyInToken"
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
        }
    }
}
