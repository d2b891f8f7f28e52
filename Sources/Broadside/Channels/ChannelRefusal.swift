internal import BroadsideAPNs
import BroadsideObservability
import BroadsideSupport

/// Classification of responses that refuse a request about a channel.
enum ChannelRefusal {
    /// What a response means for its request.
    enum Class {
        /// APNs or a gateway certainly did not process the request, and a repeat is safe.
        case busy
        /// The request may have been processed: the response comes from a gateway that had
        /// forwarded the request, or its status has no meaning of APNs'.
        case lost
        /// The credential was refused. The request itself may be right.
        case credential
        /// Another server sent the response, and APNs did not get the request. APNs itself never
        /// redirects a request or asks for a login, and it gives a reason for each refusal.
        case notFromAPNs
        /// The request was refused permanently.
        case request
    }

    /// Classifies a response that does not mean success.
    static func classify(_ response: BlockingConnection.Response) -> Class {
        switch (response.status ?? 0, response.reason) {
        // With 429, 500 and 503, APNs did not accept the request. By HTTP's definition, with 408
        // the server did not receive the whole request (RFC 9110 section 15.5.9), with 421 it can't
        // respond for the host (15.5.20), and with 425 it did not process a request that may be a
        // replay (RFC 8470 section 5.2).
        case (429, _), (500, _), (503, _), (408, _), (421, _), (425, _): .busy
        case (500..., _), (200..<300, _): .lost
        case (403, _): .credential
        case (300..<400, nil), (401, nil), (407, nil): .notFromAPNs
        default: response.reason == nil && response.reasonText == nil ? .notFromAPNs : .request
        }
    }

    /// Advice about TooManyProviderTokenUpdates.
    static let tokenUpdatesAdvice =
        "provider tokens change too often: use each token for at least 20 minutes"

    /// Advice about a response that refuses a request.
    static func advice(
        _ response: BlockingConnection.Response, app: String, environment: Endpoints.Environment
    ) -> String {
        let other =
            "if the channel belongs to the other environment, add --environment "
            + "\(environment.other)"
        switch response.reason {
        case .featureNotEnabled, .broadcastFeatureNotEnabled:
            return "in Apple's developer portal, switch on the broadcast capability of \(app)"
        case .missingChannelID: return "is there a proxy that removes headers? check --endpoint"
        case .badChannelID: return "copy the ID as broadside channel create printed it; \(other)"
        case .channelNotRegistered:
            return "there is no such channel: broadside channel list shows all channels; \(other)"
        case .badRequestParams, .badRequestPayload, .missingChannelQueueSize, .missingPushType,
            .invalidPushType:
            return
                "this version does not send what APNs expects: look for a newer version of broadside"
        case .cannotCreateChannelConfig:
            return "an app has at most \(grouped(BroadcastChannel.countMax)) channels: delete some "
                + "that are no longer used; broadside channel list shows all"
        case .badExpirationDate:
            return "for a channel that stores nothing, --expiration must be 0"
        case .badPriority: return "use --priority 10, 5 or 1"
        case .topicDisallowed: return "write the bundle ID alone after --app, without a suffix"
        case .topicMismatch:
            return
                "the credential is not for \(app): check the bundle ID, and which team owns the app"
        case .payloadTooLarge:
            return "shorten the payload to \(grouped(BroadcastChannel.payloadCountMax)) bytes"
        case .payloadEmpty: return "check --payload with 'broadside payload check --broadcast'"
        case .expiredProviderToken:
            return "correct this machine's clock; with --auth-token-file or --auth-token-command, "
                + "supply a new provider token"
        case .invalidProviderToken:
            return
                "key, --key-id and --team-id do not belong together: broadside doctor checks them"
        case .missingProviderToken:
            return "APNs saw no credential: check --endpoint, and any proxy in between"
        case .badEnvironmentKeyIDInToken, .badEnvironmentKeyInToken, .badCertificateEnvironment:
            return "the credential is for the other environment: use --environment "
                + "\(environment.other), or another credential"
        case .badCertificate: return "the certificate is revoked, or is not a provider certificate"
        case .tooManyProviderTokenUpdates:
            return tokenUpdatesAdvice
        case .badPath, .methodNotAllowed:
            return "is this APNs' host for channels? check --endpoint"
        default:
            if classify(response) == .busy {
                return "APNs is overloaded or has an internal error: try again later"
            } else if response.hasUnknownReason {
                return "\(StopAdvice.unknownReason); if Apple does not document it, check "
                    + "--endpoint"
            } else {
                return "this response was not expected: is this APNs? check --endpoint"
            }
        }
    }
}
