/// The consequences of an APNs response for its row, its connection and the campaign.
///
/// A single table, based on Apple's "Handling notification responses from APNs" and its retry
/// recommendations:
///
///     class             responses                                row            connection campaign
///     accepted          200                                      accepted       -          accepted
///     dead token        410 with a reason, ExpiredToken          rejected       -          deadToken
///     bad token         BadDeviceToken                           rejected       -          badDeviceToken
///     wrong topic       DeviceTokenNotForTopic                   rejected       -          wrongTopicToken
///     bad row           MissingDeviceToken                       rejected       -          deadToken
///     too large         413                                      rejected       -          refusesPayload
///     bad request       other 400, 410, 411, 431, other reasons  rejected       -          refusesRequest
///     not from APNs     3xx, 401, 407, other 4xx, no reason      remains        -          refusesCredential
///     credential        403, TopicDisallowed                     remains        (close)    refusesCredential
///     token invalid     InvalidProviderToken                     retry, remains -          refusesCredential
///     token expired     ExpiredProviderToken                     renewed token  close      renewProviderToken
///     too many updates  TooManyProviderTokenUpdates              previous token -          freezeRenewal
///     busy              425, 429                                 after a delay  -          -
///     wrong connection  408, 421                                 after a delay  at once    -
///     strange success   other 2xx                                in doubt       -          refusesRequest
///     server trouble    5xx, IdleTimeout, UnrelatedKeyIdInToken  after a delay  replace    pauseAddress
///     lost behind       502, 504                                 in doubt       replace    pauseAddress
///
/// In the column `row`, "after a delay", "renewed token" and "previous token" mean that the row is
/// retried in this way. "Retry, remains" means that the row is retried once, and then stays
/// `remaining`. "Lost behind" means that the response was lost behind a gateway that forwarded the
/// request. In the column `connection`, "at once" means that it is replaced without a pause. The
/// cases of the enumerations below describe each entry.
public struct ResponseClass: Sendable, Equatable {
    /// The consequence for the row.
    public enum RowAction: UInt8, Sendable {
        /// Settled as accepted.
        case accepted
        /// Settled as rejected, with status and reason.
        case rejected
        /// Not settled and not retried in this run; the row stays `remaining`.
        case remainUnsettled
        /// Retried once with the current provider token; then like `remainUnsettled`.
        case retryOnceThenRemain
        /// Retried with a renewed provider token; does not count against `--max-attempts`.
        case retryWithRenewedToken
        /// Retried with the previous provider token; does not count against `--max-attempts`.
        case retryWithPreviousToken
        /// Retried after a short backoff; does not count against `--max-attempts`. Used for streams
        /// that the server did not process.
        case retryNotCounted
        /// Retried after a delay; counts against `--max-attempts`.
        case retryAfterDelay
        /// The request was forwarded and its response was lost: equivalent to a lost connection.
        case responseLost
    }

    /// The consequence for the connection that carried the response.
    public enum ConnectionAction: UInt8, Sendable {
        case none
        /// Carries no new requests, is closed, and is not replaced until the credential is valid.
        case close
        /// Carries no new requests, is closed after its outstanding responses, and is replaced
        /// after the address's pause. Not if the row may be the cause, because it had a server error
        /// before, and the server responds otherwise to other rows.
        case drainAndReplace
        /// Like `drainAndReplace`, but without a pause, because the request needs another
        /// connection. Not if one connection after another gets such a response.
        case replaceAtOnce
    }

    /// The consequence for the campaign: an input to its guards and to the renewal of the provider
    /// token.
    public enum CampaignSignal: UInt8, Sendable {
        /// No signal: the row is retried.
        case none
        case accepted
        /// The row itself is refused, which implies nothing about other rows.
        case deadToken
        /// The request as such is refused. This counts for `--abort-after`.
        case refusesRequest
        /// The payload is refused. If all rows share one payload, this counts for `--abort-after`
        /// like a refused request. Otherwise, it counts only until a notification was accepted.
        case refusesPayload
        /// The credential is refused, or the server is not APNs. This counts for `--abort-after`.
        case refusesCredential
        /// The response is BadDeviceToken. It counts for `--max-bad-tokens`. It also counts for
        /// `--abort-after` as long as all counted responses are BadDeviceToken or
        /// DeviceTokenNotForTopic (see `RefusalGuard`).
        case badDeviceToken
        /// The response is DeviceTokenNotForTopic. It counts for `--abort-after` as long as all
        /// counted responses are BadDeviceToken or DeviceTokenNotForTopic (see `RefusalGuard`).
        case wrongTopicToken
        /// The provider token is too old and must be renewed once for the whole process.
        case renewProviderToken
        /// The provider token was renewed too often, so it is not renewed for 20 minutes.
        case freezeRenewal
        /// The server has failed, so no new connection to this address is opened for some time.
        case pauseAddress
    }

    /// The consequence for the row.
    public var row: RowAction
    /// The consequence for the connection.
    public var connection: ConnectionAction
    /// The signal to the campaign.
    public var campaign: CampaignSignal

    init(_ row: RowAction, _ connection: ConnectionAction, _ campaign: CampaignSignal) {
        self.row = row
        self.connection = connection
        self.campaign = campaign
    }

    static var accepted: ResponseClass { .init(.accepted, .none, .accepted) }
    static var rejected: ResponseClass { .init(.rejected, .none, .deadToken) }
    static var tooLarge: ResponseClass { .init(.rejected, .none, .refusesPayload) }
    static var badToken: ResponseClass { .init(.rejected, .none, .badDeviceToken) }
    static var wrongTopic: ResponseClass { .init(.rejected, .none, .wrongTopicToken) }
    static var badRequest: ResponseClass { .init(.rejected, .none, .refusesRequest) }
    static var credential: ResponseClass { .init(.remainUnsettled, .none, .refusesCredential) }
    static var notFromAPNs: ResponseClass { .init(.remainUnsettled, .none, .refusesCredential) }
    static var certificate: ResponseClass { .init(.remainUnsettled, .close, .refusesCredential) }
    static var tokenInvalid: ResponseClass {
        .init(.retryOnceThenRemain, .none, .refusesCredential)
    }
    static var tokenExpired: ResponseClass {
        .init(.retryWithRenewedToken, .close, .renewProviderToken)
    }
    static var tooManyUpdates: ResponseClass {
        .init(.retryWithPreviousToken, .none, .freezeRenewal)
    }
    static var busy: ResponseClass { .init(.retryAfterDelay, .none, .none) }
    static var wrongConnection: ResponseClass { .init(.retryAfterDelay, .replaceAtOnce, .none) }
    static var serverTrouble: ResponseClass {
        .init(.retryAfterDelay, .drainAndReplace, .pauseAddress)
    }

    /// A success status that APNs never sends: the outcome of the notification is unknown. A server
    /// that sends nothing else is not APNs.
    static var strangeSuccess: ResponseClass { .init(.responseLost, .none, .refusesRequest) }
    static var lostBehind: ResponseClass { .init(.responseLost, .drainAndReplace, .pauseAddress) }

    /// A stream that the server did not process (REFUSED_STREAM, or above a GOAWAY's last stream).
    ///
    /// RFC 9113 section 8.7: such a request "has not been processed" and is safe to retry.
    static var notProcessed: ResponseClass { .init(.retryNotCounted, .none, .none) }

    /// Classifies a response.
    ///
    /// A known reason takes precedence over the status, because Apple has moved reasons between
    /// statuses (ExpiredToken was documented with 400 in 2023, and later with 410). These statuses
    /// take precedence over the reason:
    ///
    /// - 200 always accepts.
    /// - Any other 2xx leaves the outcome unknown: the notification may be in delivery.
    /// - 410 with any reason means an invalid token.
    /// - 502 and 504 also leave the outcome unknown. A gateway forwarded the request, but "received
    ///   an invalid response", or none in time (RFC 9110 sections 15.6.3 and 15.6.5).
    /// - Any other 5xx is a server failure, so that a failing server settles no row.
    ///
    /// 408, 421 and 425 mean that the request was not processed and may be retried (RFC 9110
    /// sections 15.5.9 and 15.5.20, RFC 8470 section 5.2). After 421, it may be retried "over a
    /// different connection", and 408 also concerns the connection. 400, 410, 411, 413 and 431
    /// refuse the row even without a reason, because they may apply to one request only.
    ///
    /// APNs neither redirects a request nor asks for a login, and it states a reason for each
    /// refusal. Any other response is from another server, such as a web server at a wrong
    /// endpoint. That server did not process the notification, so a later run can send it.
    ///
    /// - Parameters:
    ///   - status: The `:status` of the response.
    ///   - body: The body of the response.
    public static func classify(status: UInt16, body: ReasonBody) -> ResponseClass {
        switch status {
        case 200: return .accepted
        case _ where isStrangeSuccess(status): return .strangeSuccess
        case 410: return body.hasReason ? .rejected : .badRequest
        case 502, 504: return .lostBehind
        // RFC 9110 section 15: a status outside 100 to 599 is treated as a 5xx.
        case 500...: return .serverTrouble
        default: break
        }
        if let reason = body.reason, let known = classify(reason: reason) { return known }
        // "New reasons appear": if the reason is unknown, the class of the status decides.
        switch status {
        case ..<400, 401, 407: return .notFromAPNs
        case 400, 411, 431: return .badRequest
        case 403: return .credential
        case 408, 421: return .wrongConnection
        case 425, 429: return .busy
        case 413: return .tooLarge
        default: return body.hasReason ? .badRequest : .notFromAPNs
        }
    }

    /// Returns whether a status claims success but is never sent by APNs.
    public static func isStrangeSuccess(_ status: UInt16) -> Bool {
        (201..<300).contains(status)
    }

    /// Returns what the reason of a GOAWAY means for the credential. The connection ends in any
    /// case.
    ///
    /// BadCertificateEnvironment usually arrives this way, with NO_ERROR, right after connecting.
    public static func classify(goAwayReason reason: Reason?) -> CampaignSignal {
        guard let reason, let known = classify(reason: reason) else { return .none }
        switch known.campaign {
        case .refusesCredential, .renewProviderToken, .freezeRenewal: return known.campaign
        default: return .none
        }
    }

    /// Returns whether the reason of a GOAWAY refuses the certificate, so that no later connection
    /// with the same certificate can succeed. One server's GOAWAY with another reason shows nothing
    /// about other connections.
    public static func refusesCertificate(goAwayReason reason: Reason?) -> Bool {
        reason == .badCertificate || reason == .badCertificateEnvironment
    }

    private static func classify(reason: Reason) -> ResponseClass? {
        switch reason {
        case .expiredToken, .unregistered, .missingDeviceToken: .rejected
        case .payloadTooLarge: .tooLarge
        case .badDeviceToken: .badToken
        case .deviceTokenNotForTopic: .wrongTopic
        case .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic,
            .duplicateHeaders, .invalidPushType, .missingTopic, .payloadEmpty, .badPath,
            .methodNotAllowed, .featureNotEnabled, .broadcastFeatureNotEnabled, .missingChannelID,
            .badChannelID, .channelNotRegistered, .badRequestParams, .badRequestPayload,
            .missingChannelQueueSize, .cannotCreateChannelConfig, .missingPushType:
            .badRequest
        case .badCertificate, .badCertificateEnvironment: .certificate
        case .topicDisallowed, .forbidden, .missingProviderToken, .badEnvironmentKeyIDInToken,
            .badEnvironmentKeyInToken, .topicMismatch:
            .credential
        case .invalidProviderToken: .tokenInvalid
        case .expiredProviderToken: .tokenExpired
        case .tooManyProviderTokenUpdates: .tooManyUpdates
        case .tooManyRequests: .busy
        case .idleTimeout, .unrelatedKeyIDInToken, .internalServerError, .serviceUnavailable,
            .shutdown:
            .serverTrouble
        case .processingError, .invalidTokenSize, .invalidTopicSize, .protocolError, .unknownError,
            .timeout, .connectionLost, .malformedToken, .missingColumn, .badValue, .noPayload,
            .suppressed, .duplicate, .filtered, .deadToken, .frequencyCap, .holdout, .unparsable,
            .malformedRow, .late, .badZone:
            nil
        }
    }
}
