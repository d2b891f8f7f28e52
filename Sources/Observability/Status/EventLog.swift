package import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Event log on stderr: one line per event, as text or as JSON.
package struct EventLog {
    /// Format of the lines.
    let format: EventLogFormat?
    /// Minimum level of events. Events below it are omitted.
    let level: RunEvent.Level

    /// Campaign ID, written to each JSON line.
    let campaign: String
    let name: String?
    let labels: [String: String]

    /// Whether repeated events of one kind on connections are combined into one line.
    private let sumsUp: Bool
    /// Whether times are in this machine's time zone.
    private let hasLocalTimes: Bool

    private var windowStart: UInt64 = 0
    private var linesInWindow = 0
    private var suppressed: UInt64 = 0
    private var lastSuppressed: UInt64 = 0
    /// The streaks of repeated events on connections, by kind. Each streak counts its events that
    /// were not written.
    private var streaks: [RunEvent.Kind: Streak] = [:]

    /// Maximum number of lines per second about single connections. Further events on connections
    /// are only counted. Warnings and events of the whole run do not count, and are always written.
    static let linesLimit = 20
    /// Time, in nanoseconds, for which events of one kind are combined into one line.
    static let streakLength = 10 * second

    /// Creates the log that the options select:
    ///
    /// - If the options name a format, the log has all events.
    /// - Otherwise, if progress is `.auto`, the log has events of level notice and above, as text.
    /// - Otherwise, the log has no events.
    ///
    /// - Parameter isOnTerminal: Whether a person reads the log, not a log collector.
    package init(
        _ asked: EventLogFormat?, progress: ProgressMode, campaign: String, name: String?,
        labels: [String: String] = [:], isOnTerminal: Bool = false
    ) {
        sumsUp = asked == nil
        hasLocalTimes = asked == nil && isOnTerminal
        self.campaign = campaign
        self.name = name
        self.labels = labels
        format = asked ?? (progress == .auto ? .text : nil)
        level = asked == nil ? .notice : .info
    }

    package mutating func write(_ event: RunEvent, now: UInt64) {
        for line in lines(for: event, now: now) { standardError(line) }
    }

    /// Writes the lines that combine events, for each second or streak that has ended.
    ///
    /// - Parameter isEnd: Whether this is the last call, so that all pending lines are written.
    package mutating func flush(now: UInt64, isEnd: Bool = false) {
        for line in linesDue(now: now, isEnd: isEnd) { standardError(line) }
    }

    mutating func linesDue(now: UInt64, isEnd: Bool = false) -> [String] {
        guard let format else { return [] }
        var lines: [String] = []
        for (kind, streak) in streaks.sorted(by: { $0.value.start < $1.value.start })
        where isEnd || now - streak.start >= Self.streakLength {
            streaks[kind] = streak.count > 0 && !isEnd ? Streak(start: now) : nil
            if let event = streak.summary { lines += limited(event, now, format) }
        }
        if suppressed > 0, isEnd || now - windowStart >= second {
            lines += openWindow(now, format)
        }
        return lines
    }

    /// Returns the lines to write for an event. If earlier events were suppressed in an earlier
    /// second, or if the event is the end of the run, a line about them comes first. Empty if the
    /// event is below the level, is suppressed, or will be combined with other events.
    mutating func lines(for event: RunEvent, now: UInt64) -> [String] {
        guard let format, event.level >= level else { return [] }
        if event.kind == .ended {
            return linesDue(now: now, isEnd: true) + limited(event, now, format)
        }
        if sumsUp, event.connection != nil {
            guard streaks[event.kind] == nil else {
                streaks[event.kind]?.add(event)
                return []
            }
            streaks[event.kind] = Streak(start: now)
        }
        return limited(event, now, format)
    }

    private mutating func limited(
        _ event: RunEvent, _ now: UInt64, _ format: EventLogFormat
    ) -> [String] {
        var lines: [String] = []
        if now - windowStart >= second { lines = openWindow(now, format) }
        guard event.connection != nil, event.level < .warning else {
            return lines + [line(event, format)]
        }
        assert(linesInWindow <= Self.linesLimit, "\(linesInWindow) lines within a second")
        guard linesInWindow < Self.linesLimit else {
            suppressed += 1
            lastSuppressed = event.milliseconds
            return lines
        }
        linesInWindow += 1
        return lines + [line(event, format)]
    }

    private mutating func openWindow(_ now: UInt64, _ format: EventLogFormat) -> [String] {
        assert(now >= windowStart, "a second begins before the last one")
        windowStart = now
        linesInWindow = 0
        guard suppressed > 0 else { return [] }
        let event = RunEvent(
            .eventsLost, .notice, "\(suppressed) more events within a second were not logged",
            milliseconds: lastSuppressed, fields: .counting(suppressed))
        suppressed = 0
        linesInWindow = 1
        return [line(event, format)]
    }

    func line(_ event: RunEvent, _ format: EventLogFormat) -> String {
        let time = timeText(event.milliseconds)
        switch format {
        case .text:
            let time = hasLocalTimes ? localClock(event.milliseconds) : time
            let prefix = event.connection.map { "connection \($0): " } ?? ""
            return "\(time) \(event.level.rawValue): \(prefix)\(printable(event.message))"
        case .json:
            var line = JSONLine()
            line.add("time", time)
            line.add("level", event.level.rawValue)
            line.add("campaign", campaign)
            if let name { line.add("name", name) }
            if !labels.isEmpty { line.add("labels", CampaignLabel.json(labels)) }
            line.add("event", event.kind.rawValue)
            if let connection = event.connection { line.add("connection", connection) }
            line.append(event.fields.json)
            line.add("message", event.message)
            return line.object
        }
    }
}

/// Consecutive events of one kind on connections. The first one was written; the others are
/// combined into one line.
private struct Streak {
    /// The start time, in nanoseconds.
    let start: UInt64
    /// Number of events not written.
    private(set) var count: UInt64 = 0
    private var last: RunEvent?
    /// Whether all events have the same status and reason.
    private var isUniform = true

    init(start: UInt64) { self.start = start }

    mutating func add(_ event: RunEvent) {
        assert(last == nil || last?.kind == event.kind, "two kinds of events in one line")
        if let last {
            isUniform =
                isUniform && last.fields.status == event.fields.status
                && last.fields.reason == event.fields.reason
        }
        count += 1
        last = event
    }

    /// Event that combines all unwritten events; nil if there are none.
    var summary: RunEvent? {
        guard let last, count > 1 else { return last }
        var summary = RunEvent(
            last.kind, last.level, message(last), milliseconds: last.milliseconds,
            fields: .counting(count))
        summary.fields.status = isUniform ? last.fields.status : nil
        summary.fields.reason = isUniform ? last.fields.reason : nil
        return summary
    }

    private func message(_ last: RunEvent) -> String {
        let time = "within \(EventLog.streakLength / second) s"
        switch (last.kind, last.fields.status) {
        case (.connectionDrained, let status?):
            let response = "\(status) \(last.fields.reason ?? "without a known reason")"
            return isUniform
                ? "\(count) more connections were replaced \(time) after \(response)"
                : "\(count) more connections were replaced \(time), the last one after \(response)"
        case (.connectionLost, _):
            return "\(count) more connections were lost \(time), the last one: \(last.message)"
        case (.goAway, _):
            return
                "\(count) more connections ended by GOAWAY \(time), the last one: \(last.message)"
        default:
            return
                "\(count) more \(last.kind.rawValue) events \(time), the last one: \(last.message)"
        }
    }
}

extension RunEvent.Fields {
    /// Returns fields in which only the count is set.
    package static func counting(_ count: UInt64) -> Self {
        var fields = Self()
        fields.count = count
        return fields
    }

    /// Members of the JSON line; nil fields are omitted.
    fileprivate var json: JSONLine {
        var line = JSONLine()
        if let endpoint { line.add("endpoint", endpoint) }
        if let status { line.add("status", Int(status)) }
        if let reason { line.add("reason", reason) }
        if let outcome { line.add("outcome", outcome) }
        if let cause { line.add("cause", cause) }
        if let count { line.add("count", count) }
        if let counts {
            var rows = JSONLine()
            for state in RowState.settledStates { rows.add(state.name, counts[state]) }
            line.add("counts", rows)
        }
        return line
    }
}
