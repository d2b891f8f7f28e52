import Campaign
package import Engine
import Support

/// The event log on stderr: a line an event, as text or as JSON.
package struct EventLog {
    /// How lines are written.
    let format: EventLogFormat?
    /// Events that matter less are left out.
    let level: RunEvent.Level

    /// Whose events they are: in each line of JSON.
    let campaign: String
    let name: String?
    let labels: [String: String]

    private var windowStart: UInt64 = 0
    private var linesInWindow = 0
    private var suppressed: UInt64 = 0
    private var lastSuppressed: UInt64 = 0

    /// Lines in a second; what goes beyond is counted.
    static let linesLimit = 20

    /// The log that the options ask for: all of it where they name one, else what is worth knowing
    /// to somebody who watches, and nothing where they want silence.
    package init(
        _ asked: EventLogFormat?, progress: ProgressMode, campaign: String, name: String?,
        labels: [String: String] = [:]
    ) {
        self.campaign = campaign
        self.name = name
        self.labels = labels
        format = asked ?? (progress == .auto ? .text : nil)
        level = asked == nil ? .notice : .info
    }

    package mutating func write(_ event: RunEvent, now: UInt64) {
        for line in lines(for: event, now: now) { standardError(line) }
    }

    /// Says what was left out, once its second is over.
    package mutating func flush(now: UInt64) {
        guard let format, suppressed > 0, now - windowStart >= second else { return }
        for line in openWindow(now, format) { standardError(line) }
    }

    /// The lines that an event makes: none where it is left out, and before it a line about others
    /// that were.
    mutating func lines(for event: RunEvent, now: UInt64) -> [String] {
        guard let format, event.level >= level else { return [] }
        var lines: [String] = []
        if now - windowStart >= second { lines = openWindow(now, format) }
        guard linesInWindow < Self.linesLimit else {
            suppressed += 1
            lastSuppressed = event.milliseconds
            return lines
        }
        linesInWindow += 1
        return lines + [line(event, format)]
    }

    private mutating func openWindow(_ now: UInt64, _ format: EventLogFormat) -> [String] {
        windowStart = now
        linesInWindow = 0
        guard suppressed > 0 else { return [] }
        let event = RunEvent(
            .eventsLost, .notice, "\(suppressed) more events within a second",
            milliseconds: lastSuppressed, fields: .counting(suppressed))
        suppressed = 0
        linesInWindow = 1
        return [line(event, format)]
    }

    func line(_ event: RunEvent, _ format: EventLogFormat) -> String {
        let time = timeText(event.milliseconds)
        switch format {
        case .text:
            let place = event.connection.map { "connection \($0): " } ?? ""
            return "\(time) \(event.level.rawValue): \(place)\(printable(event.message))"
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

extension RunEvent.Fields {
    /// Only so many of something.
    package static func counting(_ count: UInt64) -> Self {
        var fields = Self()
        fields.count = count
        return fields
    }

    /// Members of the log's line; those that are nil are left out.
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
