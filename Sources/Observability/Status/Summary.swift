package import BroadsideEngine
package import BroadsideLedgerFormat
internal import BroadsidePayloads
internal import BroadsidePolicy
internal import BroadsideRows
import BroadsideSupport
import FoundationEssentials
internal import Glibc

/// What became of a run: the JSON that `--summary` writes. Keys are part of the contract.
public struct Summary: Sendable, Encodable {
    /// How the run ended.
    public enum Outcome: String, Sendable, Encodable {
        /// A run is sending.
        case running
        /// Every row is settled.
        case complete
        /// Ended with rows left over.
        case stopped
        /// APNs refuses the campaign.
        case aborted
        /// The run could not go on.
        case error
    }

    /// Milliseconds; nil while nothing was answered.
    public struct Latency: Sendable, Encodable {
        /// Half of the answers came within this.
        public var p50: Double?
        /// Nine of ten did.
        public var p90: Double?
        /// 99 of 100 did.
        public var p99: Double?
        /// 999 of 1,000 did.
        public var p999: Double?
        /// The slowest one.
        public var max: Double?

        private enum CodingKeys: String, CodingKey {
            case p50, p90, p99, p999, max
        }

        /// Nothing is known.
        init() {}

        /// The quantiles of times to answer.
        init(_ counts: LatencyCounts) {
            p50 = Self.milliseconds(counts.quantile(0.5))
            p90 = Self.milliseconds(counts.quantile(0.9))
            p99 = Self.milliseconds(counts.quantile(0.99))
            p999 = Self.milliseconds(counts.quantile(0.999))
            max = counts.count > 0 ? Self.milliseconds(counts.maximumNanoseconds) : nil
        }

        static func milliseconds(_ nanoseconds: UInt64?) -> Double? {
            nanoseconds.map { Double($0 / 1000) / 1000 }
        }

        /// All keys are always there, as in the whole.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(p50, forKey: .p50)
            try container.encode(p90, forKey: .p90)
            try container.encode(p99, forKey: .p99)
            try container.encode(p999, forKey: .p999)
            try container.encode(max, forKey: .max)
        }
    }

    /// 16 hexadecimal digits; empty where the run was stopped before its campaign had any, null in
    /// the JSON then.
    public var campaign: String
    /// What people call the campaign; nil: nothing.
    public var name: String?
    /// The campaign's labels, by key.
    public var labels: [String: String] = [:]
    /// How the run ended.
    public var outcome: Outcome
    /// All rows of the list; nil where a second signal cut the count short.
    public var rows: UInt64?
    /// Rows over all runs; of those that are not settled only what is in doubt.
    package var counts = RowCounts()
    /// Rows that APNs accepted (200).
    public var accepted: UInt64 { counts[.accepted] }
    /// Rows that APNs refused for good.
    public var rejected: UInt64 { counts[.rejected] }
    /// Rows that could not be sent as they are.
    public var invalid: UInt64 { counts[.invalid] }
    /// Rows left out on purpose.
    public var skipped: UInt64 { counts[.skipped] }
    /// Rows whose attempts are used up.
    public var failed: UInt64 { counts[.failed] }
    /// Rows that were sent and whose answer was lost.
    public var unknown: UInt64 { counts[.unknown] }
    /// Rows that a run reserved and said no more about; a resume settles them. They are among those
    /// that are not settled.
    public var inDoubt: UInt64 { counts[.inDoubt] }
    /// False if nobody has counted them; they are null in the JSON then.
    package var isInDoubtKnown = true
    /// The most requests that were in flight at any time that was recorded. No key of the JSON.
    var inFlightMost: Int?
    /// Rows that are not settled; nil where `rows` is.
    public var remaining: UInt64?
    /// Reason -> rows, of all rows that were not accepted.
    public var reasons: [String: UInt64] { counts.reasons.named }
    /// Requests beyond each row's first, over all runs.
    public var retries: UInt64 = 0
    /// Connections that this run kept up; nil if nobody knows, as in what follows.
    public var connections: Int?
    /// Why these, where the run chose them. No key of the JSON.
    package var connectionsReason: String?
    /// Connections that took another's place, over all runs.
    public var reconnects: UInt64 = 0
    /// How long this run took.
    public var elapsedSeconds: Double?
    /// Answers a second in this run.
    public var notificationsPerSecond: Double?
    /// User and system time of this process a request; nil where none was made.
    public var cpuMicrosecondsPerNotification: Double?
    /// How long answers took in this run.
    public var latency = Latency()
    /// The most memory that this process had in use.
    public var peakResidentBytes: UInt64?
    /// Shares, adding up to 1, of what the connections' time went to; nil where none was measured.
    public var limitedBy: [String: Double]?
    /// A legacy gateway was spoken to: what it said nothing of was accepted. No key of the JSON.
    public var acceptsBySilence = false
    /// Why fewer requests were in flight than the server allowed; nil where they were not. No key
    /// of the JSON.
    public var paced: String?

    /// What the guards have counted; nil for a merged ledger, and before a campaign is begun.
    public var guards: GuardStatus?
    /// What this process counted of each topic, where rows name their topics; nil: they name none.
    package var topics: [TopicReport]?

    /// Rows of this process without a payload of their value's own; nil if no process counted them.
    var fallbacks: FallbackCounts?

    package init(campaign: UInt64, outcome: Outcome) {
        self.campaign = hexadecimal(campaign)
        self.outcome = outcome
    }

    /// A campaign that was not begun.
    package init(unbegun outcome: Outcome) {
        campaign = ""
        self.outcome = outcome
    }

    private enum CodingKeys: String, CodingKey {
        case campaign, name, labels, outcome, rows, accepted, rejected, invalid, skipped, failed,
            unknown
        case inDoubt = "in_doubt"
        case remaining, reasons, retries, connections, reconnects
        case elapsedSeconds = "elapsed_seconds"
        case notificationsPerSecond = "notifications_per_second"
        case cpuMicrosecondsPerNotification = "cpu_microseconds_per_notification"
        case latency = "latency_ms"
        case peakResidentBytes = "peak_rss_bytes"
        case limitedBy = "limited_by"
        case guards
        case payloadFallbacks = "payload_fallbacks"
        case topics
    }

    /// All keys are always there; what is not known is null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(campaign.isEmpty ? nil : campaign, forKey: .campaign)
        try container.encode(name, forKey: .name)
        try container.encode(labels, forKey: .labels)
        try container.encode(outcome, forKey: .outcome)
        try container.encode(rows, forKey: .rows)
        try container.encode(accepted, forKey: .accepted)
        try container.encode(rejected, forKey: .rejected)
        try container.encode(invalid, forKey: .invalid)
        try container.encode(skipped, forKey: .skipped)
        try container.encode(failed, forKey: .failed)
        try container.encode(unknown, forKey: .unknown)
        try container.encode(isInDoubtKnown ? inDoubt : nil, forKey: .inDoubt)
        try container.encode(remaining, forKey: .remaining)
        try container.encode(reasons, forKey: .reasons)
        try container.encode(retries, forKey: .retries)
        try container.encode(connections, forKey: .connections)
        try container.encode(reconnects, forKey: .reconnects)
        try container.encode(elapsedSeconds, forKey: .elapsedSeconds)
        try container.encode(notificationsPerSecond, forKey: .notificationsPerSecond)
        try container.encode(
            cpuMicrosecondsPerNotification, forKey: .cpuMicrosecondsPerNotification)
        try container.encode(latency, forKey: .latency)
        try container.encode(peakResidentBytes, forKey: .peakResidentBytes)
        try container.encode(limitedBy, forKey: .limitedBy)
        try container.encode(guards, forKey: .guards)
        try container.encode(fallbacks.map(PayloadFallbacks.init), forKey: .payloadFallbacks)
        // Only in a run whose rows name their topics.
        if let topics {
            try container.encode(
                Dictionary(
                    topics.map { ($0.name, TopicCounts($0)) },
                    uniquingKeysWith: { first, _ in first }),
                forKey: .topics)
        }
    }

    /// What this process counted of a topic, as JSON.
    private struct TopicCounts: Encodable {
        let report: TopicReport

        init(_ report: TopicReport) { self.report = report }

        private enum CodingKeys: CodingKey { case accepted, refused, stopped }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(report.accepted, forKey: .accepted)
            try container.encode(report.refused, forKey: .refused)
            try container.encode(report.stopText, forKey: .stopped)
        }
    }

    /// The JSON text, with a line end.
    public func json() -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        guard let data = try? encoder.encode(self) else {
            preconditionFailure("a summary is plain numbers and texts")
        }
        let text = JSONLine.escapingControls(String(decoding: data, as: UTF8.self))
        return Array(text.utf8) + [0x0a]
    }

    /// Where the values of the lines for people begin.
    package static let valueColumn = 14

    private func line(_ name: String, _ value: some CustomStringConvertible) -> String {
        let blanks = max(1, Self.valueColumn - 2 - name.count)
        // A server's reasons are among them.
        return ForeignText.escaped("  \(name)\(String(repeating: " ", count: blanks))\(value)")
            + "\n"
    }

    /// The counts, for people.
    public var countsText: String {
        var text = "campaign \(campaign): \(outcome.rawValue)\n"
        text += line("rows", rows.map { grouped($0) } ?? "not known before the list is read")
        text += line("accepted", "\(grouped(accepted))\(acceptsBySilence ? ", by silence" : "")")
        for state in RowState.settledStates.dropFirst() where counts[state] > 0 {
            text += line(state.name, grouped(counts[state]))
        }
        if let remaining, remaining > 0 { text += line("remaining", grouped(remaining)) }
        if inDoubt > 0 { text += line("in doubt", "\(grouped(inDoubt))\(inDoubtText)") }
        for (reason, count) in reasons.sorted(by: { ($0.value, $1.key) > ($1.value, $0.key) }) {
            text += line("  \(reason)", grouped(count))
        }
        return text
    }

    /// What rows in doubt mean, and what a resume does with them; nil if there are none, or if the
    /// run that has them is still running.
    package var doubtAdvice: String? {
        guard inDoubt > 0, outcome != .running else { return nil }
        return "rows in doubt may have been sent: --resume records them as unknown, or sends them "
            + "again with --on-lost resend\n"
    }

    /// What rows in doubt are, as far as it is known.
    private var inDoubtText: String {
        guard outcome != .running else { return " of them, being sent right now" }
        let words = remaining == nil ? "" : " of them"
        // Rows are reserved well before they are sent.
        guard let inFlightMost, UInt64(inFlightMost) < inDoubt / 2 else { return words }
        return "\(words), most of them reserved and never sent: at most \(grouped(inFlightMost)) "
            + "requests were seen in flight at a time"
    }

    /// What to do about rows that a relay rejected for want of a content-length; nil: there are none.
    package var lengthAdvice: String? {
        guard let count = reasons["\(LengthRequired.reason)"], count > 0 else { return nil }
        return "\(grouped(count)) rows were rejected with \(LengthRequired.status) "
            + "\(LengthRequired.reason): \(StopAdvice.lengthRequired), in a new run"
    }

    /// A few lines for people.
    public var text: String {
        var text = countsText
        // Nothing was done by this process: nothing is to be said of its speed.
        guard let elapsedSeconds, elapsedSeconds > 0 else { return text }
        let notificationsPerSecond = notificationsPerSecond ?? 0
        text += line("time", "\(decimal(elapsedSeconds, places: 2)) s")
        let isSlow = notificationsPerSecond > 0 && notificationsPerSecond < 10
        let rate =
            isSlow
            ? decimal(notificationsPerSecond, places: 1)
            : grouped(wholeNumber(notificationsPerSecond))
        text += line("rate", "\(rate) per second")
        if let p50 = latency.p50, let p99 = latency.p99 {
            text += line(
                "latency", "p50 \(decimal(p50, places: 1)) ms, p99 \(decimal(p99, places: 1)) ms")
        }
        if let connectionsReason, let connections {
            text += line("connections", "\(connections) (\(connectionsReason))")
        }
        if let causes = LimitedBy.text(
            limitedBy, seconds: elapsedSeconds, acceptsBySilence: acceptsBySilence)
        {
            text += line("bottleneck", causes)
        }
        if let paced { text += line("paced", paced) }
        if let words = fallbacks?.words { text += line("other values", words) }
        return text
    }
}

/// What this process used, as the kernel counts it.
package struct ProcessUse {
    var cpuMicroseconds: Double
    var peakResidentBytes: UInt64

    package static func now() -> ProcessUse {
        var usage = rusage()
        // SAFETY: getrusage(2) sets the structure, which is ours during the call.
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func microseconds(_ value: timeval) -> Double {
            Double(value.tv_sec) * 1e6 + Double(value.tv_usec)
        }
        return ProcessUse(
            cpuMicroseconds: microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
            // Linux counts kibibytes here (getrusage(2)).
            peakResidentBytes: peakOfThisProgram() ?? UInt64(usage.ru_maxrss) * 1024)
    }

    /// `VmHWM` of /proc/self/status (proc(5)). The kernel lets a process keep the `ru_maxrss` of
    /// the program that it was before exec: started by a large one, a small one would seem large.
    private static func peakOfThisProgram() -> UInt64? {
        guard let status = try? readFile("/proc/self/status", option: "", limit: 1 << 16) else {
            return nil
        }
        for line in status.split(separator: 0x0a) where line.starts(with: "VmHWM:".utf8) {
            let digits = line.filter { $0 >= 0x30 && $0 <= 0x39 }
            return UInt64(String(decoding: digits, as: UTF8.self)).map { $0 * 1024 }
        }
        return nil
    }
}
