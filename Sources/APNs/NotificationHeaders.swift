/// The `apns-*` headers of a campaign, which are the same for each of its notifications.
///
/// Source: Apple, "Sending notification requests to APNs".
public struct NotificationHeaders: Sendable, Equatable {
    /// `apns-topic`: the bundle ID with the push type's suffix; omitted if nil.
    public var topic: String?
    /// `apns-push-type`.
    public var pushType: PushType
    /// `apns-priority`.
    public var priority: Priority
    /// `apns-expiration` in Unix seconds, 0 for a single attempt; omitted if nil.
    var expirationUnixSeconds: UInt64?
    /// `apns-collapse-id`, at most 64 bytes; omitted if nil.
    public var collapseID: String?

    /// Creates the headers.
    ///
    /// - Parameters:
    ///   - topic: apns-topic; omitted if nil.
    ///   - pushType: apns-push-type.
    ///   - priority: apns-priority; nil for the push type's default.
    ///   - expirationUnixSeconds: apns-expiration; omitted if nil.
    ///   - collapseID: apns-collapse-id; omitted if nil.
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

    /// The sender's type of authentication.
    public enum Credential: Sendable {
        case providerToken
        case certificate
    }

    /// A header that a problem concerns.
    public enum Field: Sendable, CaseIterable {
        case topic
        case pushType
        case priority
        case expiration
        case collapseID
    }

    /// A header value that APNs refuses, or that is most likely a mistake.
    public struct Problem: Sendable, Equatable {
        /// The kinds of problems.
        public enum Kind: Sendable, Equatable {
            /// The push type requires a provider token, but the credential is a certificate.
            case needsProviderToken(PushType)
            /// The push type requires an MDM push certificate, but the credential is a provider
            /// token.
            case needsManagementCertificate
            /// Requests with a provider token require a topic.
            case topicMissing
            /// The topic contains a placeholder, which is not replaced in headers.
            case topicIsTemplate(String)
            /// The topic is empty or contains characters other than letters, digits, `-`, `.` and
            /// `_`.
            case topicMalformed(String)
            /// The topic lacks the suffix required by the push type.
            case topicLacksSuffix(String, suffix: String, PushType)
            /// The topic of push type mdm must be the certificate's com.apple.mgmt. name.
            case topicIsNotForManagement(String)
            /// The topic is an MDM push certificate's, but the push type is not mdm.
            case topicIsForManagement(String)
            /// The topic has the suffix of another push type.
            case topicOfOtherType(String, PushType)
            /// The topic is a number, like an App Store ID.
            case topicIsAppNumber(String)
            /// The topic begins with an app ID prefix, such as a team ID, which a topic does not
            /// have.
            case topicHasPrefix(String, prefix: String)
            /// The push type does not permit the priority.
            case priorityNotAllowed(Priority, PushType)
            /// Apple recommends priority 10 and expiration 0 for Push to Talk.
            case pushToTalkAdvice
            /// The expiration is in milliseconds; the associated value is the same time in seconds.
            case expirationInMilliseconds(seconds: UInt64)
            /// A collapse ID must have 1 to 64 bytes; the associated value is the actual count.
            case collapseIDLength(Int)
            /// The collapse ID contains control characters, or begins or ends with a space or tab.
            case collapseIDCharacters
        }

        /// Whether Apple documents an error for the problem; otherwise the problem is a warning.
        public var isError: Bool
        /// The kind of the problem.
        public var kind: Kind

        /// The invalid header.
        public var field: Field {
            switch kind {
            case .needsProviderToken, .needsManagementCertificate: .pushType
            case .topicMissing, .topicIsTemplate, .topicMalformed, .topicLacksSuffix,
                .topicIsNotForManagement, .topicIsForManagement, .topicOfOtherType,
                .topicIsAppNumber, .topicHasPrefix:
                .topic
            case .priorityNotAllowed, .pushToTalkAdvice: .priority
            case .expirationInMilliseconds: .expiration
            case .collapseIDLength, .collapseIDCharacters: .collapseID
            }
        }
    }

    /// Maximum byte count of a collapse ID.
    public static let maximumCollapseIDCount = 64

    /// Returns the problems of these headers; empty if there are none.
    public func validate(credential: Credential) -> [Problem] {
        topicProblems(credential: credential) + valueProblems()
    }

    private func topicProblems(credential: Credential) -> [Problem] {
        var problems: [Problem] = []
        switch (credential, pushType.rules.credential) {
        case (.certificate, .providerToken): problems.append(error(.needsProviderToken(pushType)))
        case (.providerToken, .managementCertificate):
            problems.append(error(.needsManagementCertificate))
        default: break
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
        } else if pushType == .mdm, !Self.isForManagement(topic) {
            problems.append(error(.topicIsNotForManagement(topic)))
        } else if pushType.topicSuffix == nil, pushType != .mdm, Self.isForManagement(topic) {
            problems.append(error(.topicIsForManagement(topic)))
        } else if pushType.topicSuffix == nil, let other = typeOfSuffix(topic) {
            // A bundle ID may end in .voip or .complication by chance. The other suffixes are too
            // unlikely for that.
            let isByChance = other == .voip || other == .complication
            problems.append(
                Problem(isError: !isByChance, kind: .topicOfOtherType(topic, other)))
        } else if topic.utf8.allSatisfy(Self.isDigit) {
            problems.append(warning(.topicIsAppNumber(topic)))
        } else if let prefix = Self.appIDPrefix(topic) {
            problems.append(warning(.topicHasPrefix(topic, prefix: prefix)))
        }
        return problems
    }

    /// Returns whether a topic is the name in an MDM push certificate.
    static func isForManagement(_ topic: String) -> Bool { topic.hasPrefix("com.apple.mgmt.") }

    /// Returns the first part of a topic if it looks like an app ID prefix: ten digits and capital
    /// letters, at least one of each.
    private static func appIDPrefix(_ topic: String) -> String? {
        guard let end = topic.firstIndex(of: ".") else { return nil }
        let prefix = topic[..<end].utf8
        let capitals = prefix.count { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        let digits = prefix.count(where: isDigit)
        guard prefix.count == 10, capitals + digits == 10, capitals > 0, digits > 0 else {
            return nil
        }
        return String(topic[..<end])
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    /// Returns whether a byte may occur in a topic. Bundle IDs consist of letters, digits, hyphens
    /// and periods; some old ones contain an underscore.
    private static func isOfTopic(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Returns the push type whose suffix a topic has; nil if the topic appears to be a bundle ID.
    private func typeOfSuffix(_ topic: String) -> PushType? {
        PushType.allCases.first { type in
            type.topicSuffix.map { topic.hasSuffix($0) } ?? false
        }
    }

    private func valueProblems() -> [Problem] {
        var problems: [Problem] = []
        if !pushType.rules.priorities.allows(priority) {
            problems.append(error(.priorityNotAllowed(priority, pushType)))
        }
        if pushType == .pushToTalk, priority != .high || expirationUnixSeconds != 0 {
            problems.append(warning(.pushToTalkAdvice))
        }
        // 10^11 seconds are reached in the year 5138; milliseconds have exceeded that value since
        // 1973.
        if let expirationUnixSeconds, expirationUnixSeconds >= 100_000_000_000 {
            problems.append(
                error(.expirationInMilliseconds(seconds: expirationUnixSeconds / 1000)))
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

    /// Returns whether a text is a valid collapse ID.
    public static func isCollapseID(_ text: RawSpan) -> Bool {
        text.byteCount >= 1 && text.byteCount <= maximumCollapseIDCount && isFieldValue(text)
    }

    /// Returns whether a text is a valid field value. RFC 9113 section 8.2.1 prohibits NUL, CR and
    /// LF, and a space or tab at either end. Other control characters are rejected, too (RFC 9110
    /// section 5.5).
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
