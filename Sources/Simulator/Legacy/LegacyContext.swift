internal import BroadsideAPNs
internal import BroadsideLegacyGateway

/// The state of the simulated APNs that its legacy gateway and its feedback service use.
struct LegacyContext: Sendable {
    let outcome: TokenOutcome
    let trust: TokenTrust?
    /// The rule for accepting client certificates.
    let certificates: ClientCertificateRule
    let devices: DeviceStore?
    let feedback = FeedbackLists()
    let shared: EndpointShared
    let journal: JournalFile?
    let start: ClockStart
    /// Treatment of payloads that are not JSON dictionaries.
    let payloadLint: PayloadLintMode
    /// The logs for tests, and the responses of a recording.
    let instruments: Instruments

    /// The gateway settings of the current scenario.
    var script: GatewayScript { shared.scenario?.scenario.gateway ?? GatewayScript() }

    /// Returns the defect of a payload; nil if there is none, or if payloads are not checked. A
    /// payload with a defect may still be accepted.
    func finding(of notification: BinaryNotification) -> RequestFinding? {
        guard payloadLint != .off, !notification.payload.isEmpty else { return nil }
        return RequestFinding(body: notification.payload, claimsCompression: false)
    }

    /// Returns the status of a notification, `.noError` if it is accepted.
    func status(
        of notification: BinaryNotification, topic: [UInt8]?, finding: RequestFinding?
    ) -> UInt8 {
        if let status = script.statuses[notification.token] { return status }
        if let replay = instruments.replay {
            let digits = Self.digits(notification.token)
            if let replayed = replay.take(digits.span.rawBytes, isBinary: true) {
                return UInt8(clamping: replayed.status)
            }
        }
        if notification.token.isEmpty { return BinaryStatus.missingDeviceToken.rawValue }
        if notification.token.count < Self.tokenLimit {
            return BinaryStatus.invalidTokenSize.rawValue
        }
        if notification.payload.isEmpty || finding != nil && payloadLint == .refuse {
            return BinaryStatus.missingPayload.rawValue
        }
        guard let topic, !topic.isEmpty else { return BinaryStatus.missingTopic.rawValue }
        if topic.count > Self.topicLimit { return BinaryStatus.invalidTopicSize.rawValue }
        if let trust {
            switch trust.judge(notification.token, topic: topic) {
            case .good: break
            case .bad, .otherTopic: return BinaryStatus.invalidToken.rawValue
            }
        }
        switch response(to: notification.token).reason {
        case .badDeviceToken: return BinaryStatus.invalidToken.rawValue
        default: return BinaryStatus.noError.rawValue
        }
    }

    /// Minimum token length, bytes: the archived documents describe only tokens of 32 bytes.
    static let tokenLimit = 32
    /// Maximum length of a topic in a certificate, bytes.
    static let topicLimit = 255

    private func response(to token: [UInt8]) -> Response {
        var head: UInt64 = 0
        for index in 0..<8 { head = head << 8 | UInt64(index < token.count ? token[index] : 0) }
        return outcome.response(head: head)
    }

    /// Delivers or stores an accepted notification. If the device no longer has the app, only the
    /// feedback service reports this.
    func deliver(_ notification: BinaryNotification, topic: [UInt8]) {
        let now = start.microsecondsNow()
        if response(to: notification.token).reason == .unregistered {
            feedback.add(
                token: notification.token, topic: topic,
                unixSeconds: UInt32(clamping: now / 1_000_000))
            return
        }
        // A notification with an expiration "less than zero" (Apple's text of 2010) is not stored
        // either.
        let expiration = notification.expiration.map { seconds in
            Int32(bitPattern: seconds) <= 0 ? 0 : UInt64(seconds)
        }
        devices?.take(
            Envelope(
                topic: topic, collapseIdentifier: nil, expirationUnixSeconds: expiration,
                priority: notification.priority ?? 10),
            token: Self.digits(notification.token),
            identifier: Self.identifier(notification.identifier), microseconds: now)
    }

    /// Adds the response to the recording, and the notification to the log of received requests, if
    /// these are in use.
    ///
    /// - Parameters:
    ///   - digits: Digits of the notification's token.
    ///   - topic: The topic of the client's certificate.
    ///   - connection: The connection's number.
    func record(
        _ notification: BinaryNotification, digits: [UInt8], topic: [UInt8]?,
        response: Response, connection: UInt64
    ) {
        instruments.recording?.append(
            response, token: digits.span.rawBytes, isBinary: true,
            now: ClockStart.monotonicNanoseconds())
        guard let log = instruments.received else { return }
        var request = ReceivedRequest()
        request.microseconds = start.microsecondsNow()
        request.connection = connection
        request.token = String(decoding: digits, as: UTF8.self)
        request.response = response
        request.gateway = .init(
            topic: topic.map { String(decoding: $0, as: UTF8.self) },
            identifier: notification.identifier, expiration: notification.expiration,
            priority: notification.priority)
        request.add(body: notification.payload.span.rawBytes)
        log.append(request)
    }

    /// Returns lower-case hexadecimal digits.
    static func digits(_ bytes: [UInt8]) -> [UInt8] {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? value + 0x30 : value + 0x57 }
        return bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }
    }

    /// Formats the notification's identifier as an apns-id: the identifier becomes the last digits
    /// of a UUID.
    static func identifier(_ identifier: UInt32?) -> NotificationIDText {
        let digits = digits(BinaryErrorPacket(status: 0, identifier: identifier ?? 0).encoded)
        return NotificationIDText { index in
            if index == 8 || index == 13 || index == 18 || index == 23 { return 0x2d }
            return index < 28 ? 0x30 : digits[index - 24]
        }
    }
}
