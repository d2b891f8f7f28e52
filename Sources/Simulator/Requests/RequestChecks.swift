internal import BroadsideAPNs
internal import BroadsideHPACK

/// The result of examining a request's header block. The body may still change the response.
struct Verdict: Sendable {
    /// A refusal that does not depend on the body.
    var early: Response?
    /// Maximum byte count of the body.
    var payloadLimit = PayloadRules.maximumCount
    /// The response if the body is valid.
    var late = Response.accepted
    /// True if the credential was accepted, so that the connection's stream limit may be raised.
    var isAuthenticated = false

    /// True for HEAD, whose response has no body.
    var omitsBody = false

    /// Returns the response to a request with a body of the given byte count.
    ///
    /// - Parameter refusesBody: True to refuse the body because of its content. The documentation
    ///   does not specify APNs' response in this case.
    func response(bodyCount: Int, refusesBody: Bool = false) -> Response {
        if let early { return early }
        if bodyCount == 0 { return .refused(.payloadEmpty) }
        if bodyCount > payloadLimit { return .refused(.payloadTooLarge) }
        if refusesBody { return .refused(.payloadEmpty) }
        return late
    }
}

/// The checks of a request. Their order makes credential errors independent of the device token:
///
///     method -> path -> token present -> authentication -> duplicate headers -> header syntax
///       -> topic -> payload empty -> payload size -> token syntax -> token for topic -> outcome
struct RequestChecks: Sendable {
    let outcome: TokenOutcome
    /// Checks whether this simulator issued a device token; nil if all tokens are valid.
    var trust: TokenTrust?

    /// Examines a header block. `authenticate` checks the credential, and returns nil if the
    /// credential is valid. This closure is called only if method and path are valid.
    func examine(
        _ head: borrowing RequestHead, topics: TopicTable,
        allows: (_ topic: RawSpan?) -> Bool = { _ in true },
        authenticate: () -> Reason?
    ) -> Verdict {
        var verdict = Verdict()
        func refuse(_ reason: Reason) -> Verdict {
            verdict.early = .refused(reason)
            return verdict
        }
        guard let method = head[.method], method.matches("POST") else {
            verdict.omitsBody = head[.method]?.matches("HEAD") ?? false
            return refuse(.methodNotAllowed)
        }
        var token = RawSpan()
        if let reason = Self.findToken(head[.path], token: &token) { return refuse(reason) }
        if let reason = authenticate() { return refuse(reason) }
        verdict.isAuthenticated = true
        if head.hasDuplicates { return refuse(.duplicateHeaders) }

        var type: PushType?
        if let reason = Self.headerRefusal(head, type: &type) { return refuse(reason) }
        var isForDevice = true
        if let reason = topics.refusal(
            topic: head[.topic], type: type, isForDevice: &isForDevice)
        {
            return refuse(reason)
        }
        guard allows(head[.topic]) else { return refuse(.topicDisallowed) }
        // A VoIP topic permits no other type, so the topic alone is conclusive.
        if topics.isVoIP(head[.topic]) {
            verdict.payloadLimit = PushType.voip.rules.maximumPayloadCount
        }
        verdict.late =
            trustRefusal(token, topic: head[.topic], topics, isForDevice).map(Response.refused)
            ?? outcome.response(head: TokenOutcome.head(ofDigits: token) ?? 0)
        return verdict
    }

    /// Returns the reason for refusing a device token for this topic; nil if the token is valid.
    private func trustRefusal(
        _ token: RawSpan, topic: RawSpan?, _ topics: TopicTable,
        _ isForDevice: Bool
    ) -> Reason? {
        guard TokenOutcome.head(ofDigits: token) != nil else { return .badDeviceToken }
        guard let trust else { return isForDevice ? nil : .deviceTokenNotForTopic }
        guard let bytes = TokenTrust.bytes(ofDigits: token) else { return .badDeviceToken }
        switch trust.judge(bytes, topic: topics.tokenTopic(of: topic)) {
        case .good: return nil
        case .bad: return .badDeviceToken
        case .otherTopic: return .deviceTokenNotForTopic
        }
    }

    /// Sets `token` to the part of a path after `/3/device/`. Returns the reason for refusing the
    /// path; nil if it is valid.
    @_lifetime(token: copy path)
    static func findToken(_ path: RawSpan?, token: inout RawSpan) -> Reason? {
        let prefix: StaticString = "/3/device/"
        guard let path else { return .badPath }
        // The path names the collection of devices, with or without a slash at the end, so it has
        // no token.
        if path.matches("/3/device") || path.matches(prefix) { return .missingDeviceToken }
        guard path.byteCount > prefix.utf8CodeUnitCount,
            path.extracting(first: prefix.utf8CodeUnitCount).matches(prefix)
        else { return .badPath }
        token = path.extracting(droppingFirst: prefix.utf8CodeUnitCount)
        for position in 0..<token.byteCount {
            let byte = token[position]
            if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") { return .badPath }
        }
        return nil
    }

    /// Checks the syntax of the `apns-` headers.
    private static func headerRefusal(
        _ head: borrowing RequestHead, type: inout PushType?
    ) -> Reason? {
        if let value = head[.identifier], !isUUID(value) { return .badMessageID }
        if let value = head[.expiration], !isDecimal(value) {
            return .badExpirationDate
        }
        // "If you omit this header, APNs sets the notification priority to 10."
        var priority = Priority.high
        if let value = head[.priority] {
            guard let named = Self.priority(value) else { return .badPriority }
            priority = named
        }
        if let value = head[.collapseIdentifier],
            value.byteCount > NotificationHeaders.maximumCollapseIDCount
        {
            return .badCollapseID
        }
        if let value = head[.pushType] {
            type = pushType(value)
            if type == nil { return .invalidPushType }
            if let type, !type.rules.priorities.allows(priority) { return .badPriority }
        }
        return nil
    }

    /// Returns whether a text is a canonical UUID: 8-4-4-4-12 hexadecimal digits of either case.
    static func isUUID(_ text: RawSpan) -> Bool {
        guard text.byteCount == 36 else { return false }
        for position in 0..<36 {
            let byte = text[position]
            if position == 8 || position == 13 || position == 18 || position == 23 {
                if byte != UInt8(ascii: "-") { return false }
            } else if TokenOutcome.hexValue(byte) == nil {
                return false
            }
        }
        return true
    }

    /// Returns whether a text is an unsigned decimal number of at most 19 digits.
    static func isDecimal(_ text: RawSpan) -> Bool {
        guard text.byteCount >= 1, text.byteCount <= 19 else { return false }
        for position in 0..<text.byteCount {
            let byte = text[position]
            if byte < 0x30 || byte > 0x39 { return false }
        }
        return true
    }

    /// Returns the priority that a text names; nil if it names none.
    static func priority(_ text: RawSpan) -> Priority? {
        if text.matches("10") { return .high }
        if text.matches("5") { return .normal }
        return text.matches("1") ? .low : nil
    }

    private static func pushType(_ text: RawSpan) -> PushType? {
        // The frequent types are matched without creating a String.
        if text.matches("alert") { return .alert }
        if text.matches("background") { return .background }
        return PushType(rawValue: String(decoding: text))
    }
}
