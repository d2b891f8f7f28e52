import BroadsideEngine
import BroadsideSupport

/// The texts of the page.
extension ReportPage {
    func words(_ cause: LimitedBy) -> String {
        cause.words(acceptsBySilence: data.summary.acceptsBySilence)
    }

    /// Advice about a bottleneck.
    func advice(_ cause: LimitedBy) -> String {
        guard data.summary.acceptsBySilence else { return cause.advice }
        switch cause {
        case .streams:
            return
                "A notification is in flight until the gateway has been silent about it for long enough. "
                + "More --connections, or a higher --max-streams, allow more notifications in flight."
        case .retry: return "A gateway ends a connection with each notification that it refuses."
        default: return cause.advice
        }
    }

    func meaning(of reason: String) -> String {
        switch reason {
        case "Unregistered", "ExpiredToken": "the app was removed from the device: prune the token"
        case "BadDeviceToken": "not a token of this environment: check the source of the list"
        case "DeviceTokenNotForTopic": "a token of another app"
        case "Timeout": "no response came in time"
        case "ConnectionLost": "the connection ended before the response"
        case "MalformedToken": "not an even number of hexadecimal digits: never sent"
        case "MissingColumn": "the row lacks a column: never sent"
        case "Holdout": "held out of the campaign for comparison: never sent"
        case "Filtered": "the row does not meet --where: never sent"
        case "Late": "the time had passed at the start: never sent"
        case "BadZone": "no known time zone: never sent"
        // Rows of erased devices are skipped as suppressed.
        case "Suppressed" where data.summary.hasSuppressionList:
            "on the suppression list, or erased by ledger forget: never sent"
        case "Suppressed": "the device was erased by ledger forget: never sent"
        case "Duplicate": "an earlier row has the same token: never sent"
        case "DeadToken": "dead in an earlier ledger: prune the token"
        case "FrequencyCap": "earlier campaigns reached the device often enough: never sent"
        case "PayloadTooLarge": "the payload is larger than APNs accepts"
        case "InvalidTokenSize": "not the length of a token"
        case "BadTopic": "not a topic of an app: see --topic"
        case "MalformedRow": "not a row of the list's format: never sent"
        case "MissingTopic", "InvalidTopicSize": "the credential does not name the app"
        case "ProcessingError", "UnknownError": "trouble at the gateway"
        case "ProtocolError": "the gateway could not read the notification"
        case "TooManyRequests": "too many pushes to one device in a row"
        case "InternalServerError", "ServiceUnavailable", "Shutdown": "trouble at APNs"
        default: ""
        }
    }

    /// Time such as `2026-11-21 23:55 UTC`.
    static func time(_ milliseconds: UInt64, withSeconds: Bool = false) -> String {
        let text = timeText(milliseconds)
        let clock = text.dropFirst(11).prefix(withSeconds ? 8 : 5)
        // A time is never wrapped. Narrow tables scroll instead.
        return "\(text.prefix(10))\u{a0}\(clock)\u{a0}UTC"
    }
}

extension LimitedBy {
    /// Advice about the bottleneck.
    fileprivate var advice: String {
        switch self {
        case .input:
            "The connections waited for rows: the list was read too slowly, or it has few rows."
        case .rate: "Raise --rate to finish sooner."
        case .connecting:
            "Look at the connections below, and at name resolution and the network."
        case .retry: "Look at the connections below: they failed, or APNs throttled."
        case .streams: "Raise --connections to finish sooner."
        case .window:
            "The payloads fill the server's windows: raise --connections to finish sooner."
        case .socket: "The network could not take more data."
        case .cpu: "Raise --reactors, or use a machine with more cores, to finish sooner."
        }
    }
}
