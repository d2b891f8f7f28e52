extension Reason {
    /// Those of APNs, the frequent ones first, since the look-up goes through them in order.
    static let fromAPNs: [Reason] = [
        .unregistered, .badDeviceToken, .deviceTokenNotForTopic, .expiredToken, .tooManyRequests,
        .serviceUnavailable, .internalServerError, .shutdown, .idleTimeout, .payloadTooLarge,
        .expiredProviderToken, .invalidProviderToken, .tooManyProviderTokenUpdates,
        .topicDisallowed, .badTopic, .missingTopic, .badCollapseID, .badExpirationDate,
        .badMessageID, .badPriority, .duplicateHeaders, .invalidPushType, .missingDeviceToken,
        .payloadEmpty, .badCertificate, .badCertificateEnvironment, .forbidden,
        .missingProviderToken, .unrelatedKeyIDInToken, .badEnvironmentKeyIDInToken,
        .badEnvironmentKeyInToken, .badPath, .methodNotAllowed,
    ]

    /// The reason that APNs spells as `text`; nil for texts of ours and for new ones.
    ///
    /// Our own words are left out so that a server cannot forge, say, a `Timeout`.
    init?(text: RawSpan) {
        for reason in Reason.fromAPNs where reason.matches(text) {
            self = reason
            return
        }
        return nil
    }

    /// The reason whose text this is, ours included: for options such as `prune --reasons`.
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
            // SAFETY: both sides have `byteCount` bytes; static strings live for ever.
            let expected = unsafe staticText.utf8Start[offset]
            if TokenText.byte(text, offset) != expected { return false }
        }
        return true
    }
}
