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
    var expirationUnixSeconds: UInt64?
    /// `apns-collapse-id`, at most 64 bytes; not sent where nil.
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

    /// One of the headers.
    public enum Field: Sendable, CaseIterable {
        case topic
        case pushType
        case priority
        case expiration
        case collapseID
    }

    /// Something about the headers that APNs refuses, or that is most likely a mistake.
    public struct Problem: Sendable, Equatable {
        /// What it is.
        public enum Kind: Sendable, Equatable {
            /// The push type works with a provider token only, and this is a certificate.
            case needsProviderToken(PushType)
            /// Requests with a provider token name their topic.
            case topicMissing
            /// The topic has a placeholder, and columns are not filled in.
            case topicIsTemplate(String)
            /// The topic is empty, or has characters other than letters, digits, `-`, `.` and `_`.
            case topicMalformed(String)
            /// The push type wants a suffix that the topic lacks.
            case topicLacksSuffix(String, suffix: String, PushType)
            /// A topic of push type mdm is the certificate's com.apple.mgmt. name.
            case topicIsNotForManagement(String)
            /// The topic has another push type's suffix.
            case topicOfOtherType(String, PushType)
            /// A background push has priority 5.
            case backgroundPriority(Priority)
            /// A Live Activity has priority 5 or 10.
            case liveActivityPriority
            /// Apple's advice for Push to Talk is priority 10 and expiration 0.
            case pushToTalkAdvice
            /// The expiration looks like milliseconds.
            case expirationInMilliseconds
            /// A collapse ID has 1 to 64 bytes; this one has so many.
            case collapseIDLength(Int)
            /// The collapse ID holds control characters, or a blank at one of its ends.
            case collapseIDCharacters
        }

        /// Whether APNs documents an error for it; otherwise it is a warning.
        public var isError: Bool
        /// What it is.
        public var kind: Kind

        /// The header that is wrong.
        public var field: Field {
            switch kind {
            case .needsProviderToken: .pushType
            case .topicMissing, .topicIsTemplate, .topicMalformed, .topicLacksSuffix,
                .topicIsNotForManagement, .topicOfOtherType:
                .topic
            case .backgroundPriority, .liveActivityPriority, .pushToTalkAdvice: .priority
            case .expirationInMilliseconds: .expiration
            case .collapseIDLength, .collapseIDCharacters: .collapseID
            }
        }
    }

    /// The most bytes a collapse ID may have.
    public static let maximumCollapseIDCount = 64

    /// What is wrong with these headers; empty where nothing is.
    public func validate(credential: Credential) -> [Problem] {
        topicProblems(credential: credential) + valueProblems()
    }

    private func topicProblems(credential: Credential) -> [Problem] {
        var problems: [Problem] = []
        let tokenOnly: [PushType] = [.liveActivity, .location]
        if credential == .certificate, tokenOnly.contains(pushType) {
            problems.append(error(.needsProviderToken(pushType)))
        }
        guard let topic else {
            if credential == .providerToken { problems.append(error(.topicMissing)) }
            return problems
        }
        if topic.contains("{{") {
            problems.append(error(.topicIsTemplate(topic)))
        } else if topic.isEmpty || !topic.utf8.allSatisfy(Self.isOfTopic) {
            problems.append(error(.topicMalformed(topic)))
        } else if let suffix = pushType.topicSuffix, !topic.hasSuffix(suffix) {
            problems.append(error(.topicLacksSuffix(topic, suffix: suffix, pushType)))
        } else if pushType == .mdm, !topic.hasPrefix("com.apple.mgmt.") {
            problems.append(error(.topicIsNotForManagement(topic)))
        } else if pushType.topicSuffix == nil, let other = typeOfSuffix(topic) {
            // A bundle ID may end in .voip or .complication by chance, hardly in the others.
            let isByChance = other == .voip || other == .complication
            problems.append(
                Problem(isError: !isByChance, kind: .topicOfOtherType(topic, other)))
        }
        return problems
    }

    /// Bundle IDs have letters, digits, hyphens and periods; some old ones an underscore.
    private static func isOfTopic(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// The push type whose suffix a topic has; nil where it looks like a bundle ID.
    private func typeOfSuffix(_ topic: String) -> PushType? {
        PushType.allCases.first { type in
            type.topicSuffix.map { topic.hasSuffix($0) } ?? false
        }
    }

    private func valueProblems() -> [Problem] {
        var problems: [Problem] = []
        if pushType == .background, priority != .normal {
            problems.append(error(.backgroundPriority(priority)))
        }
        if pushType == .liveActivity, priority == .low {
            problems.append(error(.liveActivityPriority))
        }
        if pushType == .pushToTalk, priority != .high || expirationUnixSeconds != 0 {
            problems.append(warning(.pushToTalkAdvice))
        }
        // 10^11 seconds is the year 5138; milliseconds have been that large since 1973.
        if let expirationUnixSeconds, expirationUnixSeconds >= 100_000_000_000 {
            problems.append(warning(.expirationInMilliseconds))
        }
        if let collapseID {
            problems += collapseProblems(collapseID)
        }
        return problems
    }

    private func collapseProblems(_ collapseID: String) -> [Problem] {
        let bytes = Array(collapseID.utf8)
        if bytes.isEmpty || bytes.count > NotificationHeaders.maximumCollapseIDCount {
            return [error(.collapseIDLength(bytes.count))]
        }
        // SAFETY: bytes have no padding; the span ends with the statement.
        guard unsafe NotificationHeaders.isFieldValue(bytes.span.bytes) else {
            return [error(.collapseIDCharacters)]
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
            let byte = TokenText.byte(text, offset)
            let isBlank = byte == 0x20 || byte == 0x09
            if isBlank, offset == 0 || offset == text.byteCount - 1 { return false }
            if byte == 0x7f || (byte < 0x20 && !isBlank) { return false }
        }
        return true
    }

    private func error(_ kind: Problem.Kind) -> Problem { Problem(isError: true, kind: kind) }

    private func warning(_ kind: Problem.Kind) -> Problem { Problem(isError: false, kind: kind) }
}
