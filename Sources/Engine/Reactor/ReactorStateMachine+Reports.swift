import APNs
import Campaign
import HTTP2
import Support

/// What a thread used up to an instant.
package struct ThreadUse: Sendable, Equatable {
    /// User and system time, nanoseconds.
    var cpuNanoseconds: UInt64 = 0
    /// Monotonic nanoseconds.
    var atNanoseconds: UInt64 = 0

    /// The share of the time since an earlier look for which the thread worked; nil where no time
    /// has passed.
    package func share(since earlier: ThreadUse) -> Double? {
        guard atNanoseconds > earlier.atNanoseconds else { return nil }
        let worked = cpuNanoseconds - min(cpuNanoseconds, earlier.cpuNanoseconds)
        return Double(worked) / Double(atNanoseconds - earlier.atNanoseconds)
    }
}

/// What a reactor tells of itself a few times a second: copies, made by its own thread.
package struct ReactorReport: Sendable {
    package var statistics = RunStatistics()
    package var latency = LatencyCounts()
    /// CPU time of the reactor's thread, and when it was read: nanoseconds.
    var threadUse = ThreadUse()
    /// By connection slot; the last one stands for all beyond the limit.
    package var connections: [ConnectionTally] = []

    package init() {}
}

extension ReactorStateMachine where Records: ~Copyable {
    /// Everything that those who watch the run want to know.
    func report() -> ReactorReport {
        var report = ReactorReport()
        report.statistics = snapshot()
        report.latency = metrics.latency.counts
        let limit = max(1, ConnectionTally.rowsLimit / settings.reactors)
        for index in 0..<connections.count where connections[index].tally != ConnectionTally() {
            if report.connections.count < limit {
                var tally = connections[index].tally
                tally.number = number(of: index)
                report.connections.append(tally)
            } else {
                report.connections[limit - 1].add(connections[index].tally)
            }
        }
        return report
    }

    /// Hands over what is worth a line in the log.
    mutating func takeEvents() -> EventBuffer { metrics.events.takeAll() }

    /// The connection slot's number in the run, from 1.
    private func number(of index: Int) -> Int { run.reactor * connections.capacity + index + 1 }

    mutating func tell(
        _ kind: RunEvent.Kind, _ level: RunEvent.Level, connection index: Int, _ message: String,
        status: UInt16? = nil, reason: String? = nil, now: Now
    ) {
        var fields = RunEvent.Fields()
        fields.endpoint = "\(connections.addresses.entries[connections[index].address].address)"
        fields.status = status
        fields.reason = reason
        fields.count = connections[index].responses
        metrics.events.append(
            RunEvent(
                kind, level, connection: number(of: index), message,
                milliseconds: now.wallMilliseconds, fields: fields))
    }

    /// A GOAWAY, in words: the error's name, and APNs' reason where there is one.
    mutating func noteGoAway(_ index: Int, code: ErrorCode, reason: String?, now: Now) {
        var text = code.name?.description ?? "error \(code.rawValue)"
        if let reason { text += ", \(reason)" }
        connections[index].tally.goAways += 1
        connections[index].tally.lastGoAway = text
        let isOrderly = code == .noError && connections[index].responses > 0
        tell(
            .goAway, isOrderly ? .notice : .warning, connection: index,
            "\(connections.peer(index)): GOAWAY \(text) after \(connections[index].responses) responses",
            reason: reason, now: now)
    }

    /// An answer after which its connection carries no more requests. Others that are in flight may be
    /// answered likewise: the first one is the cause.
    mutating func noteDrain(_ index: Int, status: UInt16, reason: Reason?, now: Now) {
        guard connections[index].phase == .open else { return }
        tell(
            .connectionDrained, .notice, connection: index,
            "\(connections.peer(index)): drained after \(connections[index].responses) responses because of "
                + "\(status) \(reason?.text ?? "without a known reason")",
            status: status, reason: reason?.text, now: now)
    }

    /// A connection that is of no use any more.
    mutating func noteFailure(_ index: Int, _ trouble: ConnectionTrouble, now: Now) {
        metrics.statistics.failures += 1
        connections[index].tally.failures += 1
        connections[index].tally.lastFailure = trouble.message
        tell(.connectionLost, .warning, connection: index, trouble.message, now: now)
    }
}
