import BroadsideAPNs

/// The meaning of each reason, for the report.
extension Reason {
    /// What the reason means for a row, and what to do about it if that is not obvious.
    ///
    /// - Parameter hasSuppressionList: Whether the campaign has a suppression list. Rows of erased
    ///   devices are skipped as suppressed, too.
    func meaning(hasSuppressionList: Bool) -> String {
        switch self {
        case .unregistered, .expiredToken: "the app was removed from the device: prune the token"
        case .badDeviceToken: "not a token of this environment: check the source of the list"
        case .deviceTokenNotForTopic: "a token of another app"
        case .missingDeviceToken: "the request contained no device token"
        case .payloadEmpty: "the payload is empty: see --payload"
        case .payloadTooLarge: "the payload is larger than APNs accepts"
        case .badTopic: "not a topic of an app: see --topic"
        case .missingTopic, .invalidTopicSize: "the credential does not name the app"
        case .badCollapseID: "the collapse ID is longer than 64 bytes: see --collapse-id"
        case .badExpirationDate: "APNs refuses the expiration: see --expiration"
        case .badPriority: "APNs refuses the priority: see --priority"
        case .invalidPushType: "APNs refuses the push type: see --push-type"
        case .badMessageID, .duplicateHeaders, .badPath, .methodNotAllowed, .missingChannelID:
            "the request did not arrive as it was sent: check --endpoint and any proxy in between"
        case .tooManyRequests: "too many pushes to one device in a row"
        case .internalServerError, .serviceUnavailable, .shutdown: "trouble at APNs"
        case .idleTimeout: "APNs closed the connection because it was idle"

        case .badCertificate: "APNs refuses the certificate: is it expired or revoked?"
        case .badCertificateEnvironment, .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
            "the credential is for the other environment: see --environment"
        case .topicDisallowed, .topicMismatch: "the credential is not for the app"
        case .forbidden: "APNs does not allow the request with this credential"
        case .expiredProviderToken: "the provider token is too old: check this machine's clock"
        case .invalidProviderToken: "the key, the key ID and the team ID do not belong together"
        case .missingProviderToken:
            "APNs saw no credential: check --endpoint and any proxy in between"
        case .unrelatedKeyIDInToken: "the connection was first used with another key"
        case .tooManyProviderTokenUpdates:
            "provider tokens change too often: do other programs use the same key?"

        case .featureNotEnabled, .broadcastFeatureNotEnabled:
            "broadcasts are not enabled for the app: see Apple's developer portal"
        case .badChannelID: "not a channel ID: see --channel"
        case .channelNotRegistered: "the app has no such channel: see broadside channel list"
        case .cannotCreateChannelConfig: "the app has too many channels"
        case .badRequestParams, .badRequestPayload, .missingChannelQueueSize, .missingPushType:
            "this version does not send what APNs expects"

        case .processingError, .unknownError: "trouble at the gateway"
        case .invalidTokenSize: "not the length of a token"
        case .protocolError: "the gateway could not read the notification"

        case .timeout: "no response came in time"
        case .connectionLost: "the connection ended before the response"
        case .unparsable: "the response stated no reason: is this APNs?"
        case .malformedToken: "not an even number of hexadecimal digits: never sent"
        case .malformedRow: "not a row of the list's format: never sent"
        case .missingColumn: "the row lacks a column: never sent"
        case .badValue: "a value does not have the required form: never sent"
        case .noPayload: "no payload file matches the row's value: never sent"
        case .badZone: "no known time zone: never sent"
        case .suppressed:
            hasSuppressionList
                ? "on the suppression list, or erased by ledger forget: never sent"
                : "the device was erased by ledger forget: never sent"
        case .duplicate: "an earlier row has the same token: never sent"
        case .filtered: "the row does not meet --where: never sent"
        case .deadToken: "dead in an earlier ledger: prune the token"
        case .frequencyCap: "earlier campaigns reached the device often enough: never sent"
        case .holdout: "held out of the campaign for comparison: never sent"
        case .late: "the time had passed at the start: never sent"
        }
    }
}
