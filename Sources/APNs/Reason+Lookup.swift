extension Reason {
    /// The reasons used by APNs, the frequent ones first, because the lookup searches them in
    /// order.
    static let fromAPNs: [Reason] = [
        .unregistered, .badDeviceToken, .deviceTokenNotForTopic, .expiredToken, .tooManyRequests,
        .serviceUnavailable, .internalServerError, .shutdown, .idleTimeout, .payloadTooLarge,
        .expiredProviderToken, .invalidProviderToken, .tooManyProviderTokenUpdates,
        .topicDisallowed, .badTopic, .missingTopic, .badCollapseID, .badExpirationDate,
        .badMessageID, .badPriority, .duplicateHeaders, .invalidPushType, .missingDeviceToken,
        .payloadEmpty, .badCertificate, .badCertificateEnvironment, .forbidden,
        .missingProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken,
        .badEnvironmentKeyInToken, .badPath, .methodNotAllowed, .channelNotRegistered,
        .missingChannelID, .badChannelID, .featureNotEnabled, .broadcastFeatureNotEnabled,
        .badRequestParams, .badRequestPayload, .missingChannelQueueSize,
        .cannotCreateChannelConfig, .missingPushType, .topicMismatch,
    ]

    /// Creates the reason for which APNs uses `text`; nil for an unknown text, and for the text of
    /// one of Broadside's own reasons.
    ///
    /// Broadside's own reasons are excluded so that a server cannot forge, for example, a
    /// `Timeout`.
    init?(text: RawSpan) {
        for reason in Reason.fromAPNs where reason.matches(text) {
            self = reason
            return
        }
        return nil
    }

    /// Creates the reason with this text, for options such as `prune --reasons`; nil if there is no
    /// such reason. The text may be that of one of Broadside's own reasons.
    public init?(text: String) {
        for reason in Reason.allCases where reason.text == text {
            self = reason
            return
        }
        return nil
    }

    func matches(_ text: RawSpan) -> Bool {
        let staticText = self.staticText
        guard text.byteCount == staticText.utf8CodeUnitCount else { return false }
        for offset in 0..<text.byteCount {
            // SAFETY: both sides have `byteCount` bytes, and static strings are never freed.
            let expected = unsafe staticText.utf8Start[offset]
            if TokenText.byte(text, offset) != expected { return false }
        }
        return true
    }
}
