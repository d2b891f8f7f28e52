import Engine
import Support

/// What the page says in words.
extension ReportPage {
    func words(_ cause: LimitedBy) -> String {
        cause.words(acceptsBySilence: data.summary.acceptsBySilence)
    }

    /// What to do about it.
    func advice(_ cause: LimitedBy) -> String {
        guard data.summary.acceptsBySilence else { return cause.advice }
        switch cause {
        case .streams:
            return
                "Each notification is out until the gateway was silent about it for long enough: "
                + "with more --connections, or a higher --max-streams, more are out at a time."
        case .retry: return "A gateway ends a connection with each notification that it refuses."
        default: return cause.advice
        }
    }

    static func meaning(of reason: String) -> String {
        switch reason {
        case "Unregistered", "ExpiredToken": "the app is gone from the device: prune the token"
        case "BadDeviceToken": "no token of this environment: check where the list comes from"
        case "DeviceTokenNotForTopic": "a token of another app"
        case "Timeout": "no answer came in time"
        case "ConnectionLost": "the connection ended before the answer"
        case "MalformedToken": "not hexadecimal digits in pairs: never sent"
        case "MissingColumn": "the row lacks a column: never sent"
        case "PayloadTooLarge": "the payload is larger than APNs takes"
        case "InvalidTokenSize": "no length that a token has"
        case "MissingTopic", "InvalidTopicSize": "the credential does not say for which app"
        case "ProcessingError", "UnknownError": "trouble at the gateway"
        case "ProtocolError": "the gateway could not read it"
        case "TooManyRequests": "too many pushes to one device in a row"
        case "InternalServerError", "ServiceUnavailable", "Shutdown": "trouble at APNs"
        default: ""
        }
    }

    /// `2026-11-21 23:55 UTC`.
    static func time(_ milliseconds: UInt64, withSeconds: Bool = false) -> String {
        let text = timeText(milliseconds)
        let clock = text.dropFirst(11).prefix(withSeconds ? 8 : 5)
        // On one line: narrow tables scroll instead.
        return "\(text.prefix(10))\u{a0}\(clock)\u{a0}UTC"
    }
}

extension LimitedBy {
    /// What to do about it.
    fileprivate var advice: String {
        switch self {
        case .input: "Rows came no faster: a short list, or its end."
        case .rate: "A higher --rate would have been faster."
        case .connecting:
            "Names, connections and handshakes: look at the connections below, and at the network."
        case .retry: "Look at the connections below: they failed, or APNs asked to wait."
        case .streams: "More --connections would have carried more at the same time."
        case .window: "Longer payloads than the server's windows hold: more --connections help."
        case .socket: "The way to the server carried no more."
        case .cpu: "More --reactors, or a machine with more cores, would have been faster."
        }
    }
}
