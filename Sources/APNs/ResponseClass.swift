/// What an answer of APNs means for its row, for its connection and for the campaign.
///
/// One table, after Apple's "Handling notification responses from APNs" and the retry advice there:
///
///     class             answers                                  row            connection campaign
///     accepted          200                                      accepted       -          accepted
///     dead token        410, ExpiredToken                        rejected       -          deadToken
///     bad token         BadDeviceToken                           rejected       -          badDeviceToken
///     wrong topic       DeviceTokenNotForTopic                   rejected       -          wrongTopicToken
///     bad row           MissingDeviceToken                       rejected       -          deadToken
///     too large         413                                      rejected       -          refusesPayload
///     bad request       other 400, 404, 405, unknown 3xx and 4xx rejected       -          refusesRequest
///     credential        403, TopicDisallowed                     remains        (close)    refusesCredential
///     token invalid     InvalidProviderToken                     once, remains  -          refusesCredential
///     token expired     ExpiredProviderToken                     renewed token  close      renewProviderToken
///     too many updates  TooManyProviderTokenUpdates              previous token -          freezeRenewal
///     busy              429                                      after a delay  -          -
///     not processed     408, 421, 425                            after a delay  -          -
///     strange success   other 2xx                                in doubt       -          refusesRequest
///     server trouble    5xx, IdleTimeout, UnrelatedKeyIdInToken  after a delay  replace    pauseAddress
///     lost behind       502, 504                               in doubt       replace    pauseAddress
public struct ResponseClass: Sendable, Equatable {
    /// What becomes of the row.
    public enum RowAction: UInt8, Sendable {
        /// Settled as accepted.
        case accepted
        /// Settled as rejected, with status and reason.
        case rejected
        /// Not settled, and not sent again in this run; it stays `remaining`.
        case remainUnsettled
        /// Sent again once, with the provider token of the moment; then as `remainUnsettled`.
        case retryOnceThenRemain
        /// Sent again with a renewed provider token; the attempt does not count.
        case retryWithRenewedToken
        /// Sent again with the provider token before this one; the attempt does not count.
        case retryWithPreviousToken
        /// Sent again after a short backoff; the attempt does not count. For streams that were not
        /// processed.
        case retryNotCounted
        /// Sent again after a delay; the attempt counts.
        case retryAfterDelay
        /// The request was passed on and its response was lost: as if the connection had been lost.
        case responseLost
    }

    /// What becomes of the connection that carried the answer.
    public enum ConnectionAction: UInt8, Sendable {
        case none
        /// No new requests; closed, and not to be replaced before the credential is in order.
        case close
        /// No new requests; closed once its answers are in, and replaced after the address's pause.
        case drainAndReplace
    }

    /// What the answer tells the campaign's guards and the provider token's keeper.
    public enum CampaignSignal: UInt8, Sendable {
        /// Nothing: the row is sent again.
        case none
        case accepted
        /// This row is refused for what it is; that of others says nothing.
        case deadToken
        /// The request as such is refused; counts for `--abort-after`.
        case refusesRequest
        /// The payload is refused; counts for `--abort-after` as a refused request where all rows have
        /// the same one, else only until a notification was accepted.
        case refusesPayload
        /// The credential is refused; counts for `--abort-after`.
        case refusesCredential
        /// BadDeviceToken; counts for `--max-bad-tokens`, and for the first answers.
        case badDeviceToken
        /// DeviceTokenNotForTopic; counts for the first answers.
        case wrongTopicToken
        /// The provider token is too old: renew it once for the whole process.
        case renewProviderToken
        /// The provider token was renewed too often: no renewal for 20 minutes.
        case freezeRenewal
        /// The server is in trouble: no new connection to this address for a while.
        case pauseAddress
    }

    /// What becomes of the row.
    public var row: RowAction
    /// What becomes of the connection.
    public var connection: ConnectionAction
    /// What the campaign learns.
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
    static var serverTrouble: ResponseClass {
        .init(.retryAfterDelay, .drainAndReplace, .pauseAddress)
    }

    /// A status by which a server says that it took the request, and that APNs never sends: nobody knows
    /// what became of the notification. A server that says nothing else is not APNs.
    static var strangeSuccess: ResponseClass { .init(.responseLost, .none, .refusesRequest) }
    static var lostBehind: ResponseClass { .init(.responseLost, .drainAndReplace, .pauseAddress) }

    /// A stream that the server did not act on (REFUSED_STREAM, or above a GOAWAY's last stream).
    ///
    /// RFC 9113 section 8.7: such a request "has not been processed" and is safe to send again.
    static var notProcessed: ResponseClass { .init(.retryNotCounted, .none, .none) }

    /// Classifies an answer.
    ///
    /// The reason decides where it is known, because Apple has moved reasons between statuses
    /// (ExpiredToken was documented with 400 in 2023, with 410 since); except that 200 always
    /// accepts, 410 is always a dead token, and 5xx is always the server's own trouble, so that no
    /// row is settled by a server that is falling over. 502 and 504 are what a gateway says that has
    /// passed the request on and "received an invalid response", or none in time (RFC 9110 sections
    /// 15.6.3 and 15.6.5): the notification may be on its way. So it may after any other 2xx. 408, 421 and
    /// 425 say of the request that it was not processed and may be sent again (sections 15.5.9 and
    /// 15.5.20, RFC 8470 section 5.2).
    ///
    /// - Parameters:
    ///   - status: the `:status` of the response.
    ///   - reason: the body's reason; nil where it is absent, unknown or unreadable.
    public static func classify(status: UInt16, reason: Reason?) -> ResponseClass {
        switch status {
        case 200: return .accepted
        case _ where isStrangeSuccess(status): return .strangeSuccess
        case 410: return .rejected
        case 502, 504: return .lostBehind
        // RFC 9110, section 15: a status outside 100 to 599 is to be taken for a 5xx.
        case 500...: return .serverTrouble
        default: break
        }
        if let reason, let known = classify(reason: reason) { return known }
        // "New reasons appear": the status class decides.
        switch status {
        case 403: return .credential
        case 408, 421, 425, 429: return .busy
        case 413: return .tooLarge
        default: return .badRequest
        }
    }

    /// Whether a server says by a status that it took a request, and APNs never would.
    public static func isStrangeSuccess(_ status: UInt16) -> Bool {
        (201..<300).contains(status)
    }

    /// What a GOAWAY's reason says about the credential; the connection ends in any case.
    ///
    /// BadCertificateEnvironment usually comes this way, with NO_ERROR, right after connecting.
    public static func classify(goAwayReason reason: Reason?) -> CampaignSignal {
        guard let reason, let known = classify(reason: reason) else { return .none }
        switch known.campaign {
        case .refusesCredential, .renewProviderToken, .freezeRenewal: return known.campaign
        default: return .none
        }
    }

    private static func classify(reason: Reason) -> ResponseClass? {
        switch reason {
        case .expiredToken, .unregistered, .missingDeviceToken: .rejected
        case .payloadTooLarge: .tooLarge
        case .badDeviceToken: .badToken
        case .deviceTokenNotForTopic: .wrongTopic
        case .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic,
            .duplicateHeaders, .invalidPushType, .missingTopic, .payloadEmpty, .badPath,
            .methodNotAllowed:
            .badRequest
        case .badCertificate, .badCertificateEnvironment: .certificate
        case .topicDisallowed, .forbidden, .missingProviderToken, .badEnvironmentKeyIDInToken,
            .badEnvironmentKeyInToken:
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
            .suppressed, .duplicate, .filtered, .deadToken, .frequencyCap, .unparsable,
            .malformedRow:
            nil
        }
    }
}
