import BroadsideEngine
import BroadsideSupport
public import FoundationEssentials

/// Receives warnings and events of a run. Called on threads of the run; must not block.
public protocol RunLogger: Sendable {
    /// Takes an entry.
    func log(_ entry: RunLogEntry)
}

/// Entry of a run's log. No entry is about a single notification.
public struct RunLogEntry: Sendable {
    /// Importance of an entry.
    public enum Level: String, Sendable {
        /// Normal course of the run.
        case info
        /// Important, but no action is needed.
        case notice
        /// Needs attention.
        case warning
    }

    /// Importance of the entry.
    public let level: Level
    /// Kind of the event, as in the command's JSON log; `notice` for messages that are not events.
    public let kind: String
    /// Message, one line.
    public let message: String
    /// Time of the event.
    public let date: Date

    init(_ event: RunEvent) {
        level =
            switch event.level {
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            }
        kind = event.kind.rawValue
        message = PropertyName.translated(event.message)
        date = Date(milliseconds: event.milliseconds)
    }

    /// Creates an entry from a line that the command would print on standard error.
    init(line: String) {
        let isWarning = line.hasPrefix("broadside: ")
        level = isWarning ? .warning : .notice
        kind = "notice"
        var text = line[...]
        for prefix in ["broadside: ", "warning: "] where text.hasPrefix(prefix) {
            text = text.dropFirst(prefix.count)
        }
        message = PropertyName.translated(String(text))
        date = Date(milliseconds: Clock.now().wallMilliseconds)
    }
}

/// Receives a run's counts once per second, and at its end. Called on a thread of the run; must not
/// block.
public protocol RunMetrics: Sendable {
    /// Takes the current counts.
    func record(_ progress: RunProgress)
}

extension Date {
    init(milliseconds: UInt64) {
        self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}
