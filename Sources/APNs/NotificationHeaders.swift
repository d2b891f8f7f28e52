/// The `apns-*` headers of a campaign, the same for each of its notifications.
///
/// Source: Apple, "Sending notification requests to APNs".
public struct NotificationHeaders: Sendable, Equatable {
    /// `apns-topic`: bundle ID plus the push type's suffix; not sent where nil.
    public var topic: String?
    /// `apns-push-type`.
    public var pushType: PushType
    /// `apns-priority`.
    public var priority: Priority
    /// `apns-expiration`, Unix seconds, 0 for one attempt; not sent where nil.
    public var expirationUnixSeconds: UInt64?
    /// `apns-collapse-id`, at most 64 octets; not sent where nil.
    public var collapseID: String?

    /// - Parameters:
    ///   - topic: apns-topic; nil: not sent.
    ///   - pushType: apns-push-type.
    ///   - priority: nil stands for the push type's default.
    ///   - expirationUnixSeconds: apns-expiration; nil: not sent.
    ///   - collapseID: apns-collapse-id; nil: not sent.
    public init(
        topic: String? = nil, pushType: PushType = .alert, priority: Priority? = nil,
        expirationUnixSeconds: UInt64? = nil, collapseID: String? = nil
    ) {
        self.topic = topic
        self.pushType = pushType
        self.priority = priority ?? pushType.defaultPriority
        self.expirationUnixSeconds = expirationUnixSeconds
        self.collapseID = collapseID
    }

    /// How the sender proves who it is.
    public enum Credential: Sendable {
        case providerToken
        case certificate
    }

    /// Something about the headers that APNs refuses, or that is most likely a mistake.
    public struct Problem: Sendable, Equatable {
        /// Whether APNs documents an error for it; otherwise it is a warning.
        public var isError: Bool
        /// The long option that holds the value, without dashes.
        public var option: String
        /// What is wrong and how to mend it, one line.
        public var message: String
    }

    /// The most octets a collapse ID may have.
    public static let maximumCollapseIDCount = 64

    /// What is wrong with these headers; empty where nothing is.
    public func validate(credential: Credential) -> [Problem] {
        topicProblems(credential: credential) + valueProblems()
    }

    private func topicProblems(credential: Credential) -> [Problem] {
        var problems: [Problem] = []
        let tokenOnly: [PushType] = [.liveActivity, .location]
        if credential == .certificate, tokenOnly.contains(pushType) {
            problems.append(
                error(
                    "push-type",
                    "\(pushType.rawValue) works with a provider token only: give --auth-key"))
        }
        guard let topic else {
            if credential == .providerToken {
                problems.append(
                    error("topic", "is missing: with a provider token give the app's bundle ID"))
            }
            return problems
        }
        if topic.contains("{{") {
            problems.append(
                error(
                    "topic",
                    "'\(topic)' is the same for all rows, columns are not filled in: two apps are two "
                        + "runs, each with its own list, topic and ledger"))
        } else if topic.isEmpty || !topic.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) {
            problems.append(
                error("topic", "must be a bundle ID: printable ASCII without blanks"))
        } else if let suffix = pushType.topicSuffix, !topic.hasSuffix(suffix) {
            problems.append(
                error(
                    "topic",
                    "'\(topic)' must end in \(suffix) for push type \(pushType.rawValue): add it, or "
                        + "mend --push-type"))
        } else if pushType == .mdm, !topic.hasPrefix("com.apple.mgmt.") {
            problems.append(
                error(
                    "topic",
                    "of push type mdm is the certificate's com.apple.mgmt. name, not '\(topic)'"))
        } else if pushType.topicSuffix == nil, let other = typeOfSuffix(topic) {
            let message =
                "'\(topic)' ends as topics of push type \(other.rawValue) do: give --push-type "
                + "\(other.rawValue), or the app's bundle ID"
            // A bundle ID may end in .voip or .complication by chance, hardly in the others.
            let isByChance = other == .voip || other == .complication
            problems.append(isByChance ? warning("topic", message) : error("topic", message))
        }
        return problems
    }

    /// The push type whose suffix a topic has; nil where it looks like a bundle ID.
    private func typeOfSuffix(_ topic: String) -> PushType? {
        PushType.allCases.first { type in
            type.topicSuffix.map { topic.hasSuffix($0) } ?? false
        }
    }

    private func valueProblems() -> [Problem] {
        var problems: [Problem] = []
        if pushType == .background, priority != .considerate {
            problems.append(
                error("priority", "of a background push must be 5: \(priority.rawValue) is refused")
            )
        }
        if pushType == .liveActivity, priority == .patient {
            problems.append(error("priority", "of a liveactivity push is 5 or 10, not 1"))
        }
        if pushType == .pushToTalk, priority != .immediate || expirationUnixSeconds != 0 {
            problems.append(
                warning("priority", "10 and expiration 0 are Apple's advice for pushtotalk"))
        }
        // 10^11 seconds is the year 5138; milliseconds have been that large since 1973.
        if let expirationUnixSeconds, expirationUnixSeconds >= 100_000_000_000 {
            problems.append(
                warning("expiration", "is in seconds; this looks like milliseconds"))
        }
        if let collapseID {
            problems += collapseProblems(collapseID)
        }
        return problems
    }

    private func collapseProblems(_ collapseID: String) -> [Problem] {
        let octets = Array(collapseID.utf8)
        if octets.isEmpty || octets.count > NotificationHeaders.maximumCollapseIDCount {
            return [
                error("collapse-id", "must have 1 to 64 octets; this has \(octets.count)")
            ]
        }
        guard unsafe NotificationHeaders.isFieldValue(octets.span.bytes) else {
            return [
                error("collapse-id", "holds control characters, or a blank at one of its ends")
            ]
        }
        return []
    }

    /// Whether a text can be a collapse ID.
    public static func isCollapseID(_ text: RawSpan) -> Bool {
        text.byteCount >= 1 && text.byteCount <= maximumCollapseIDCount && isFieldValue(text)
    }

    /// RFC 9113 section 8.2.1: no NUL, CR, LF in a field value, no blank at either end. The other
    /// control characters are left out too (RFC 9110 section 5.5).
    private static func isFieldValue(_ text: RawSpan) -> Bool {
        for offset in 0..<text.byteCount {
            let octet = TokenText.octet(text, offset)
            let isBlank = octet == 0x20 || octet == 0x09
            if isBlank, offset == 0 || offset == text.byteCount - 1 { return false }
            if octet == 0x7f || (octet < 0x20 && !isBlank) { return false }
        }
        return true
    }

    private func error(_ option: String, _ message: String) -> Problem {
        Problem(isError: true, option: option, message: message)
    }

    private func warning(_ option: String, _ message: String) -> Problem {
        Problem(isError: false, option: option, message: message)
    }
}
