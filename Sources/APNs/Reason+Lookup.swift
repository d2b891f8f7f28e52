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

    /// Returns the reason with APNs' text `text`; nil for Broadside's own reasons and for unknown
    /// ones.
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

    /// Returns the reason with this text, including Broadside's own: for options such as `prune
    /// --reasons`.
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
