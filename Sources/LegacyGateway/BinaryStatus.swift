public import BroadsideAPNs

/// Reason for which the legacy gateway closes a connection: the status in its error packet.
///
/// Each status has a meaning for the notification that the packet names. All notifications written
/// later on the connection were discarded; all earlier ones were accepted.
///
///     status  meaning                  row                     campaign
///     1       processing error         after a delay           -
///     2       missing device token     rejected                -
///     3       missing topic            remains                 refusesCredential
///     4       missing payload          rejected                refusesRequest
///     5       invalid token size       rejected                -
///     6       invalid topic size       remains                 refusesCredential
///     7       invalid payload size     rejected                refusesPayload
///     8       invalid token            rejected                badDeviceToken
///     10      shutdown                 accepted: the last one  -
///     128     protocol error           rejected                refusesRequest
///     255     unknown                  after a delay           -
///
/// Any other number is treated like 255. Source: Apple, "Binary Provider API", table of error
/// codes; 10 was added in 2013, 128 later.
public enum BinaryStatus: UInt8, Sendable, CaseIterable {
    case noError = 0
    case processingError = 1
    case missingDeviceToken = 2
    case missingTopic = 3
    case missingPayload = 4
    case invalidTokenSize = 5
    case invalidTopicSize = 6
    case invalidPayloadSize = 7
    case invalidToken = 8
    case shutdown = 10
    case protocolError = 128
    case unknown = 255

    /// Reason in ledgers and exports. It is the provider API's reason if the provider API has an
    /// equivalent.
    public var reason: Reason {
        switch self {
        case .noError, .unknown: .unknownError
        case .processingError: .processingError
        case .missingDeviceToken: .missingDeviceToken
        case .missingTopic: .missingTopic
        case .missingPayload: .payloadEmpty
        case .invalidTokenSize: .invalidTokenSize
        case .invalidTopicSize: .invalidTopicSize
        case .invalidPayloadSize: .payloadTooLarge
        case .invalidToken: .badDeviceToken
        case .shutdown: .shutdown
        case .protocolError: .protocolError
        }
    }

    /// Action for the row that the packet names.
    public var row: ResponseClass.RowAction {
        switch self {
        case .noError, .processingError, .unknown: .retryAfterDelay
        case .missingTopic, .invalidTopicSize: .remainUnsettled
        case .shutdown: .accepted
        case .missingDeviceToken, .missingPayload, .invalidTokenSize, .invalidPayloadSize,
            .invalidToken, .protocolError:
            .rejected
        }
    }

    /// The signal for the campaign.
    public var campaign: ResponseClass.CampaignSignal {
        switch self {
        case .missingTopic, .invalidTopicSize: .refusesCredential
        case .missingPayload, .protocolError: .refusesRequest
        case .invalidPayloadSize: .refusesPayload
        case .invalidToken: .badDeviceToken
        case .missingDeviceToken, .invalidTokenSize: .deadToken
        case .noError, .processingError, .shutdown, .unknown: .none
        }
    }
}

/// The six bytes that the gateway sends before it closes: 8, a status, an identifier.
public struct BinaryErrorPacket: Sendable, Equatable {
    /// Length of the packet on the wire, bytes.
    public static let count = 6
    /// First byte of the packet.
    static let command: UInt8 = 8

    /// The status as received.
    public var status: UInt8
    /// Identifier of the notification; 0 may mean none.
    public var identifier: UInt32

    /// Creates an error packet.
    public init(status: UInt8, identifier: UInt32) {
        self.status = status
        self.identifier = identifier
    }

    /// Parses six bytes; nil if they are not an error packet.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.count, bytes[0] == Self.command else { return nil }
        status = bytes[1]
        identifier = bytes[2...].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The bytes on the wire.
    public var encoded: [UInt8] {
        [Self.command, status] + BinaryNotification.bigEndian(identifier)
    }

    /// Meaning of the status.
    public var meaning: BinaryStatus { BinaryStatus(rawValue: status) ?? .unknown }
}
