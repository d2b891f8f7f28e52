internal import BroadsideAPNs
import BroadsideEngine
import BroadsideObservability

/// Judges credential and topic by the response to a request with an impossible device token, or by
/// the GOAWAY of a connection that ended without one.
enum DoctorVerdict {
    /// Advice about a request that the server did not process, as it says itself.
    static let notProcessedAdvice =
        "the server did not process the request: try again later; if it never does, check --endpoint"

    /// - Returns: The exit code.
    static func judge(
        _ response: BlockingConnection.Response, credential: Credential,
        _ headers: NotificationHeaders, isFast: Bool, _ report: inout DoctorReport
    ) -> Int32 {
        let topic = headers.topic ?? credential.onlyTopic ?? "none"
        let words = response.summary
        // APNs checks the device token after credential and topic.
        switch (response.status, response.reason) {
        case (400, .badDeviceToken), (400, .deviceTokenNotForTopic), (400, .missingDeviceToken),
            (400, .expiredToken), (410, _):
            report.add("credential", .ok, "accepted by APNs")
            report.add("topic", .ok, "\(topic) is allowed")
            report.add("environment", .ok, "the credential is valid at this endpoint")
            // If the clock differs from the server's date, the report already has a finding about
            // it.
            let isClockJudged = report.checks.contains { $0.name == "clock" }
            if credential.kind == .providerToken, !isClockJudged {
                report.add("clock", .ok, "near enough to APNs' clock")
            }
            return 0
        case (let status?, let reason) where status == 429 || status >= 500:
            report.add(
                "request", .warning, words,
                advice: reason == .tooManyProviderTokenUpdates
                    ? ChannelRefusal.tokenUpdatesAdvice
                    : status == 429
                        ? "too many requests: try again later"
                        : "APNs is overloaded or has an internal error: try again later")
            return 1
        case (408?, _), (421?, _), (425?, _):
            report.add("request", .warning, words, advice: notProcessedAdvice)
            return 1
        case (nil, let reason) where reason?.asRefusal == nil:
            report.add(
                "request", .warning, words,
                advice: "the server ended the connection before it responded: "
                    + (response.hasUnknownReason ? "\(StopAdvice.unknownReason), or " : "")
                    + "try again later")
            return 1
        default: break
        }
        if isFast {
            report.add(
                "clock", .failed, words,
                advice: "set this machine's clock, which is one to three hours fast: APNs "
                    + "refused a token with the current time, but accepted one dated two hours "
                    + "earlier")
            return 4
        }
        if response.status == 411 {
            report.add(
                "request", .failed, words,
                advice: "the server insists on a content-length header: add --content-length")
            return 4
        }
        let finding = finding(response, topic: topic, credential)
        report.add(finding.name, .failed, words, advice: finding.advice)
        return 4
    }

    private static func finding(
        _ response: BlockingConnection.Response, topic: String, _ credential: Credential
    ) -> (name: String, advice: String) {
        switch response.reason {
        case .expiredProviderToken:
            if case .suppliedToken(let token) = credential {
                return ("clock", "the token is older than an hour: \(token.source.renewalAdvice)")
            }
            return (
                "clock",
                "set this machine's clock, which is more than 25 minutes slow: APNs "
                    + "refuses the token as expired, although it was made at most 35 minutes ago"
            )
        case .invalidProviderToken:
            return ("credential", invalidTokenAdvice(credential))
        case .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken:
            return (
                "environment",
                "the key is for the other environment: change --environment, or use another key"
            )
        case .badCertificateEnvironment:
            return (
                "environment",
                "the certificate is for the other environment: change --environment, or use "
                    + "another one"
            )
        case .badCertificate:
            return ("credential", "the certificate is revoked, or is not a provider certificate")
        case .missingProviderToken where credential.kind == .providerToken:
            return ("credential", StopAdvice.missingToken)
        case .missingProviderToken:
            return (
                "credential",
                "APNs saw no credential, because the endpoint's server did not ask for "
                    + "the certificate, or did not accept it: check --endpoint"
            )
        case .unrelatedKeyIDInToken, .forbidden:
            return ("credential", "APNs does not accept this key here: check it in Apple's portal")
        case .topicDisallowed, .badTopic, .missingTopic:
            return (
                "topic",
                "'\(topic)' does not belong to this credential: check the bundle "
                    + "ID, the push type's suffix, and which team owns the app"
            )
        case nil where response.hasUnknownReason:
            return (
                response.status == 403 ? "credential" : "request",
                "\(StopAdvice.unknownReason); if Apple does not document it, is this APNs?"
            )
        default:
            return ("request", "this response was not expected: is this APNs?")
        }
    }

    /// Advice about InvalidProviderToken, which has several causes.
    private static func invalidTokenAdvice(_ credential: Credential) -> String {
        switch credential {
        case .key(_, let keyID, let teamID):
            "key, key ID and team ID do not belong together, or this machine's clock is "
                + "more than an hour fast: check the clock, that the file is key \(keyID), "
                + "that this key is not revoked, and that it belongs to team \(teamID) "
                + "(are the two IDs swapped?)"
        case .suppliedToken(let token):
            "the token's signature, its key ID \(token.claims.keyID) and its team ID "
                + "\(token.claims.teamID) do not belong together, or the clock of the machine that "
                + "made the token is fast"
        case .certificate:
            "a proxy in between seems to decrypt TLS: APNs saw no certificate"
        }
    }
}

extension Reason {
    /// Whether APNs refused the provider token rather than the request.
    var refusesToken: Bool {
        switch self {
        case .invalidProviderToken, .expiredProviderToken, .missingProviderToken,
            .tooManyProviderTokenUpdates:
            true
        default: false
        }
    }
}
