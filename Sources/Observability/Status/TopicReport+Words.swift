package import BroadsideEngine
package import BroadsidePolicy
import BroadsideSupport

/// The texts about the topics that rows name.
extension TopicReport {
    /// Maximum number of topics that a text names. Other topics are only counted.
    private static let namedLimit = 4

    /// Returns the topics that a guard stopped.
    package static func stopped(_ reports: [TopicReport]?) -> [TopicReport] {
        (reports ?? []).filter { $0.stop != nil }
    }

    /// Returns the topics that APNs refused. Some rows of these topics are still remaining.
    package static func refused(_ reports: [TopicReport]?) -> [TopicReport] {
        (reports ?? []).filter { $0.stop != nil || $0.disallowed != nil }
    }

    /// Number of rows that are still remaining because APNs refused their topic.
    package static func disallowedRows(_ reports: [TopicReport]?) -> UInt64 {
        (reports ?? []).reduce(0) { $0 + ($1.disallowed?.rows ?? 0) }
    }

    /// Returns the names of refused topics with the causes, on one line.
    package static func text(_ refused: [TopicReport]) -> String {
        let named = refused.prefix(namedLimit).map { report in
            "\(printable(report.name)) (\(report.stopText ?? report.disallowedText ?? ""))"
        }
        let more = refused.count - named.count
        return named.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
    }

    /// Returns the cause of a run's end if topics were refused; nil if none were.
    package static func stopCause(_ reports: [TopicReport]?) -> StopCause? {
        let refused = refused(reports)
        guard let first = refused.first else { return nil }
        return .topicsRefused(
            detail: text(refused), first.stop?.refusal ?? first.disallowed?.refusal)
    }

    /// Text with the reason why a guard stopped the topic; nil if none did.
    package var stopText: String? {
        guard let stop else { return nil }
        return switch stop.cause {
        case .refusedInARow: "one refusal after another: \(stop.refusal.text)"
        case .onlyBadTokens: "none of its first tokens was accepted: \(stop.refusal.text)"
        case .tooManyBadTokens: "too many BadDeviceToken among its last 10,000 responses"
        }
    }

    /// Text with the number of rows that were refused because of the topic; nil if there are none.
    private var disallowedText: String? {
        disallowed.map {
            "\($0.rows == 1 ? "1 row" : "\(grouped($0.rows)) rows"): \($0.refusal.text)"
        }
    }

    /// JSON object with one member per topic: its counts in this process.
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
