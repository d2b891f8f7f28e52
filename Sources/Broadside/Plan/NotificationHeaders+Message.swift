package import BroadsideAPNs
package import BroadsideSupport

extension NotificationHeaders.Field {
    /// Name of the option that sets the header, without dashes.
    var option: String {
        switch self {
        case .topic: "topic"
        case .pushType: "push-type"
        case .priority: "priority"
        case .expiration: "expiration"
        case .collapseID: "collapse-id"
        }
    }
}

extension NotificationHeaders.Problem {
    /// Problem and fix, as one line to print after the option's name.
    var message: String {
        switch kind {
        case .needsProviderToken(let type):
            "\(type.rawValue) works with a provider token only: add --auth-key"
        case .needsManagementCertificate:
            "mdm works with an MDM push certificate only: use --certificate instead of a key or token"
        case .topicMissing: "is missing, but provider tokens need it: write the app's bundle ID"
        case .topicIsTemplate(let topic):
            "'\(topic)' has a placeholder: name one topic, because only broadside send and "
                + "broadside probe replace placeholders, and only over HTTP/2"
        case .topicMalformed(let topic):
            "'\(topic)' is not a bundle ID: write ASCII letters, digits, '-' and '.', such as "
                + "com.example.MyApp"
        case .topicLacksSuffix(let topic, let suffix, let type):
            "'\(topic)' must end in \(suffix) for push type \(type.rawValue): add it, or "
                + "fix --push-type"
        case .topicIsNotForManagement(let topic):
            "of push type mdm must be the name in the certificate (com.apple.mgmt...), not '\(topic)'"
        case .topicIsForManagement(let topic):
            "'\(topic)' is for device management: add --push-type mdm, or write the app's bundle ID"
        case .topicOfOtherType(let topic, let type):
            "'\(topic)' has the suffix of push type \(type.rawValue): add "
                + "--push-type \(type.rawValue), or write the app's bundle ID"
        case .topicIsAppNumber(let topic):
            "'\(topic)' looks like an App Store ID: write the app's bundle ID, such as "
                + "com.example.MyApp"
        case .topicHasPrefix(let topic, let prefix):
            "'\(topic)' begins with an app ID prefix: the bundle ID is the rest, "
                + topic.dropFirst(prefix.utf8.count + 1)
        case .priorityNotAllowed(let priority, let type):
            "of a \(type.rawValue) push must be "
                + type.rules.priorities.all.reversed().map { "\($0.rawValue)" }
                .joined(separator: " or ")
                + ": \(priority.rawValue) is refused"
        case .pushToTalkAdvice: "10 and expiration 0 are what Apple recommends for pushtotalk"
        case .expirationInMilliseconds(let seconds):
            "is in seconds, but this is milliseconds: did you mean \(seconds)?"
        case .collapseIDLength(let count): "must have 1 to 64 bytes; this has \(count)"
        case .collapseIDCharacters:
            "contains control characters, or begins or ends with a blank"
        }
    }

    /// The problem as an error of its option.
    package var asError: BroadsideError { .usage(field.option, message) }

    /// The problem as an error of an option of the command that has the options.
    func asError(of options: SendOptions) -> BroadsideError {
        guard options.isProbe else { return asError }
        return switch kind {
        case .topicOfOtherType(let topic, let type):
            .usage(
                field.option,
                "'\(topic)' has the suffix of push type \(type.rawValue), whose tokens can't be "
                    + "probed: \(Self.probeAdvice)")
        case .topicIsForManagement(let topic):
            .usage(
                field.option,
                "'\(topic)' is for device management, whose tokens can't be probed: "
                    + Self.probeAdvice)
        default: asError
        }
    }

    private static let probeAdvice =
        "name the app's bundle ID, and a list of tokens for ordinary notifications"
}

extension CertificateScope.TopicProblem {
    /// Problem and fix, as one line to print after `--topic`.
    var message: String {
        switch self {
        case .isNoneOf(let topic, let topics):
            "'\(topic)' is not a topic of the certificate: use one of "
                + topics.joined(separator: ", ")
        case .severalTopics(let topics):
            "is missing, and the certificate has several topics: name one of "
                + topics.joined(separator: ", ")
        case .needsSuffix(let suffix, let type):
            "is missing: push type \(type.rawValue) needs a topic that ends in \(suffix)"
        case .isForManagement(let topic):
            "is missing, and the certificate is for device management ('\(topic)'): add --push-type "
                + "mdm, or use the app's certificate"
        }
    }
}
