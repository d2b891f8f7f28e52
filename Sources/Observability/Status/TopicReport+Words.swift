package import BroadsideEngine
package import BroadsidePolicy
import BroadsideSupport

/// What is told of topics that rows name.
extension TopicReport {
    /// Topics that are named in one line; of more, their number.
    private static let namedLimit = 4

    /// Those that a guard has stopped.
    package static func stopped(_ reports: [TopicReport]?) -> [TopicReport] {
        (reports ?? []).filter { $0.stop != nil }
    }

    /// Their names, and why, in one line.
    package static func text(_ stopped: [TopicReport]) -> String {
        let named = stopped.prefix(namedLimit).map { report in
            "\(printable(report.name)) (\(report.stopText ?? ""))"
        }
        let more = stopped.count - named.count
        return named.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
    }

    /// The cause of a run's end that stopped topics are.
    package static func stopCause(_ reports: [TopicReport]?) -> StopCause {
        let stopped = stopped(reports)
        return .topicsRefused(detail: text(stopped), stopped.first?.stop?.refusal)
    }

    /// Why it was stopped; nil if it was not.
    package var stopText: String? {
        guard let stop else { return nil }
        return switch stop.cause {
        case .refusedInARow: "one refusal after the other: \(stop.refusal.text)"
        case .onlyBadTokens: "none of its first tokens accepted: \(stop.refusal.text)"
        case .tooManyBadTokens: "too many BadDeviceToken among its last 10,000 responses"
        }
    }

    /// One member for each topic: what this process counted.
    static func json(_ reports: [TopicReport]) -> JSONLine {
        var line = JSONLine()
        for report in reports {
            var topic = JSONLine()
            topic.add("accepted", report.accepted)
            topic.add("refused", report.refused)
            topic.add("stopped", report.stopText)
            line.add(report.name, topic)
        }
        return line
    }
}
