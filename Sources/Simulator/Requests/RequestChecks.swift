internal import APNs
internal import HPACK

/// What the header block of a request decides already; the body decides the rest.
struct Verdict: Sendable {
    /// The refusal that comes before any look at the body.
    var early: Answer?
    /// The most bytes that the body may have.
    var payloadLimit = PayloadRules.maximumCount
    /// The answer where the body is in order.
    var late = Answer.accepted
    /// The credential was accepted: the connection's stream limit may rise with the answer.
    var isAuthenticated = false

    /// The method is HEAD: the response has no body.
    var omitsBody = false

    /// The answer to the request once its body had so many bytes.
    ///
    /// - Parameter refusesBody: The body is refused for what it holds. What APNs says then is not
    ///   documented.
    func answer(bodyCount: Int, refusesBody: Bool = false) -> Answer {
        if let early { return early }
        if bodyCount == 0 { return .refused(.payloadEmpty) }
        if bodyCount > payloadLimit { return .refused(.payloadTooLarge) }
        if refusesBody { return .refused(.payloadEmpty) }
        return late
    }
}

/// The checks of a request, in an order in which credential errors never depend on the token:
///
///     method -> path -> token present -> authentication -> duplicate headers -> header syntax
///       -> topic -> payload empty -> payload size -> token syntax -> token for topic -> fate
struct RequestChecks: Sendable {
    let fate: TokenOutcome
    /// Where only issued device tokens are good.
    var trust: TokenTrust?

    /// Examines a header block. `authenticate` is asked when its turn comes; it says nil where the
    /// credential is in order.
    func examine(
        _ head: borrowing RequestHead, topics: TopicTable,
        allows: (_ topic: UnsafeRawBufferPointer?) -> Bool = { _ in true },
        authenticate: () -> Reason?
    ) -> Verdict {
        var verdict = Verdict()
        func refuse(_ reason: Reason) -> Verdict {
            verdict.early = .refused(reason)
            return verdict
        }
        guard let method = unsafe head[.method], unsafe method.spells("POST") else {
            verdict.omitsBody = unsafe head[.method]?.spells("HEAD") ?? false
            return refuse(.methodNotAllowed)
        }
        var token = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        if let reason = unsafe Self.findToken(head[.path], token: &token) { return refuse(reason) }
        if let reason = authenticate() { return refuse(reason) }
        verdict.isAuthenticated = true
        if head.hasDuplicates { return refuse(.duplicateHeaders) }

        var type: PushType?
        if let reason = Self.headerRefusal(head, type: &type) { return refuse(reason) }
        var isForDevice = true
        if let reason = unsafe topics.refusal(
            topic: head[.topic], type: type, isForDevice: &isForDevice)
        {
            return refuse(reason)
        }
        guard unsafe allows(head[.topic]) else { return refuse(.topicDisallowed) }
        // A topic for VoIP takes no other type, so that it says enough.
        if unsafe topics.isVoIP(head[.topic]) {
            verdict.payloadLimit = PayloadRules.maximumVoIPCount
        }
        verdict.late =
            unsafe trustRefusal(token, topic: head[.topic], topics, isForDevice).map(Answer.refused)
            ?? fate.answer(head: TokenOutcome.head(ofDigits: token) ?? 0)
        return verdict
    }

    /// Why a device token is not a token of this topic; nil where it is.
    private func trustRefusal(
        _ token: UnsafeRawBufferPointer, topic: UnsafeRawBufferPointer?, _ topics: TopicTable,
        _ isForDevice: Bool
    ) -> Reason? {
        guard unsafe TokenOutcome.head(ofDigits: token) != nil else { return .badDeviceToken }
        guard let trust else { return isForDevice ? nil : .deviceTokenNotForTopic }
        guard let octets = unsafe TokenTrust.octets(ofDigits: token) else { return .badDeviceToken }
        switch unsafe trust.judge(octets, topic: topics.bundle(of: topic)) {
        case .good: return nil
        case .bad: return .badDeviceToken
        case .otherTopic: return .deviceTokenNotForTopic
        }
    }

    /// What stands behind `/3/device/` in a path.
    static func findToken(
        _ path: UnsafeRawBufferPointer?, token: inout UnsafeRawBufferPointer
    ) -> Reason? {
        let prefix: StaticString = "/3/device/"
        guard let path = unsafe path else { return .badPath }
        // The collection itself, with or without its last slash, names no token.
        if unsafe path.spells("/3/device") || path.spells(prefix) { return .missingDeviceToken }
        guard path.count > prefix.utf8CodeUnitCount,
            unsafe UnsafeRawBufferPointer(rebasing: path[..<prefix.utf8CodeUnitCount])
                .spells(prefix)
        else { return .badPath }
        unsafe token = UnsafeRawBufferPointer(rebasing: path[prefix.utf8CodeUnitCount...])
        for position in 0..<token.count {
            let octet = unsafe token[position]
            if octet == UInt8(ascii: "/") || octet == UInt8(ascii: "?") { return .badPath }
        }
        return nil
    }

    /// The syntax of the `apns-` headers.
    private static func headerRefusal(
        _ head: borrowing RequestHead, type: inout PushType?
    ) -> Reason? {
        if let value = unsafe head[.identifier], unsafe !isUUID(value) { return .badMessageID }
        if let value = unsafe head[.expiration], unsafe !isDecimal(value) {
            return .badExpirationDate
        }
        // "If you omit this header, APNs sets the notification priority to 10."
        var isImmediate = true
        if let value = unsafe head[.priority] {
            isImmediate = unsafe value.spells("10")
            guard unsafe isImmediate || value.spells("5") || value.spells("1") else {
                return .badPriority
            }
        }
        if let value = unsafe head[.collapseIdentifier],
            value.count > NotificationHeaders.maximumCollapseIDCount
        {
            return .badCollapseID
        }
        if let value = unsafe head[.pushType] {
            type = unsafe pushType(value)
            if type == nil { return .invalidPushType }
            // "Always use priority 5. Using priority 10 is an error."
            if type == .background, isImmediate { return .badPriority }
        }
        return nil
    }

    /// A canonical UUID, 8-4-4-4-12 hexadecimal digits of any case.
    static func isUUID(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count == 36 else { return false }
        for position in 0..<36 {
            let octet = unsafe text[position]
            if position == 8 || position == 13 || position == 18 || position == 23 {
                if octet != UInt8(ascii: "-") { return false }
            } else if TokenOutcome.hexValue(octet) == nil {
                return false
            }
        }
        return true
    }

    private static func isDecimal(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count >= 1, text.count <= 19 else { return false }
        for position in 0..<text.count {
            let octet = unsafe text[position]
            if octet < 0x30 || octet > 0x39 { return false }
        }
        return true
    }

    private static func pushType(_ text: UnsafeRawBufferPointer) -> PushType? {
        // The frequent ones without a String.
        if unsafe text.spells("alert") { return .alert }
        if unsafe text.spells("background") { return .background }
        return unsafe PushType(rawValue: String(decoding: text, as: UTF8.self))
    }
}
