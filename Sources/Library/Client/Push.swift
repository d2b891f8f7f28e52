public import BroadsideAPNs
public import FoundationEssentials

/// A notification for one device.
public struct Push: Sendable {
    /// Device token, in hexadecimal digits.
    public var token: String
    /// Topic of the app, usually its bundle identifier.
    public var topic: String
    /// JSON of the notification, at most 4,096 bytes (5,120 for VoIP).
    public var payload: Data
    /// Type of the notification.
    public var pushType = PushType.alert
    /// Priority; nil: the default of the type.
    public var priority: Priority?
    /// Time until which APNs keeps the notification for an unavailable device; nil: Apple's
    /// default; 1970: a single attempt.
    public var expiration: Date?
    /// Identifier with which a later notification replaces this one on a device; nil: none.
    public var collapseID: String?
    /// Identifier of the notification (apns-id).
    public var id = UUID()

    /// Creates a notification for a device.
    public init(token: String, topic: String, payload: Data) {
        self.token = token
        self.topic = topic
        self.payload = payload
    }
}

/// APNs' response to a push.
public struct PushResponse: Sendable, Equatable {
    /// Identifier of the notification (apns-id).
    public let id: UUID
    /// HTTP status: 200 if APNs accepted the notification.
    public let status: Int
    /// APNs' reason, such as `BadDeviceToken`; nil if there is none.
    public let reason: String?
    /// Time at which APNs found the token to be unregistered; nil if APNs sent no such time.
    public let unregisteredAt: Date?
    /// What the response means for the device and the sender.
    public let meaning: Meaning
    /// Key of the delivery log in Apple's console (apns-unique-id); nil outside the development
    /// environment.
    public let uniqueID: UUID?

    /// What a response means.
    public enum Meaning: String, Sendable {
        /// The notification was accepted.
        case accepted
        /// The token is dead: send nothing more to it.
        case deadToken
        /// The notification is wrong: token, topic or payload. Sending it again changes nothing.
        case refused
        /// The credential is wrong, or the server is not APNs.
        case refusedCredential
        /// The server is busy or in trouble: the notification may be sent again later.
        case tryLater
        /// A server in between lost the response: the notification may have been delivered.
        case unknown
    }

    /// Whether APNs accepted the notification.
    public var isAccepted: Bool { meaning == .accepted }
}

extension PushResponse.Meaning {
    init(_ response: ResponseClass) {
        self =
            switch response.row {
            case .accepted: .accepted
            case .rejected where response.campaign == .deadToken: .deadToken
            case .rejected: .refused
            case .remainUnsettled, .retryOnceThenRemain: .refusedCredential
            case .retryWithRenewedToken: .refusedCredential
            case .retryWithPreviousToken, .retryNotCounted, .retryAfterDelay: .tryLater
            case .responseLost: .unknown
            }
    }
}
