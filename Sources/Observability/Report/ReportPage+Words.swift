import BroadsideAPNs
import BroadsideEngine
import BroadsidePolicy
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

    /// Returns what a row's reason means, and what to do about it.
    func meaning(of reason: String) -> String {
        if let known = Reason(text: reason) {
            return known.meaning(hasSuppressionList: data.summary.hasSuppressionList)
        }
        return reason == "\(LengthRequired.reason)"
            ? StopAdvice.lengthRequired : StopAdvice.unknownReason
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
