package import BroadsideEngine
package import BroadsideLedgerFormat
import BroadsideLedgers
internal import BroadsidePayloads
internal import BroadsidePolicy
internal import BroadsidePrimitives
package import BroadsideRows
import BroadsideSupport
internal import Glibc

/// Result of a run: the JSON that `--summary` writes. Keys are part of the contract.
public struct Summary: Sendable, Encodable {
    /// Outcome of the run.
    public enum Outcome: String, Sendable, Encodable {
        /// A run is sending.
        case running
        /// Every row is settled.
        case complete
        /// The run ended with rows remaining.
        case stopped
        /// Sending was refused: by APNs or by a guard, or because of the credential or the list.
        case aborted
        /// The run could not continue.
        case error
    }

    /// Response times in milliseconds; nil until the first response.
    public struct Latency: Sendable, Encodable {
        /// 50th percentile.
        public var p50: Double?
        /// 90th percentile.
        public var p90: Double?
        /// 99th percentile.
        public var p99: Double?
        /// 99.9th percentile.
        public var p999: Double?
        /// Slowest response.
        public var max: Double?

        private enum CodingKeys: String, CodingKey {
            case p50, p90, p99, p999, max
        }

        /// Creates latencies that are all unknown.
        init() {}

        /// Creates the quantiles of counted response times.
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

        /// Encodes all keys, like the summary itself.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(p50, forKey: .p50)
            try container.encode(p90, forKey: .p90)
            try container.encode(p99, forKey: .p99)
            try container.encode(p999, forKey: .p999)
            try container.encode(max, forKey: .max)
        }
    }

    /// Campaign ID of 16 hexadecimal digits. Empty, and null in the JSON, if the run stopped before
    /// the campaign had an ID.
    public var campaign: String
    /// Name of the campaign; nil if it has none.
    public var name: String?
    /// The labels of the campaign, by key.
    public var labels: [String: String] = [:]
    /// Outcome of the run.
    public var outcome: Outcome
    /// Whether the latest run did not record its end because it was killed. Not a key of the JSON.
    package var wasKilled = false
    /// Number of rows in the list; nil if a second signal interrupted their count.
    public var rows: UInt64?
    /// Row counts by state, over all runs. Of the unsettled states, only `inDoubt` is counted.
    package var counts = RowCounts()
    /// Failed and unknown rows that the option `--retry` does not send again.
    package var unsendable = UnsendableRows()
    /// Rows that APNs accepted (200).
    public var accepted: UInt64 { counts[.accepted] }
    /// Rows that APNs refused permanently.
    public var rejected: UInt64 { counts[.rejected] }
    /// Rows that could not be sent because of their content.
    public var invalid: UInt64 { counts[.invalid] }
    /// Rows skipped on purpose.
    public var skipped: UInt64 { counts[.skipped] }
    /// Rows whose attempts are exhausted.
    public var failed: UInt64 { counts[.failed] }
    /// Rows that were sent and whose response was lost.
    public var unknown: UInt64 { counts[.unknown] }
    /// Number of rows that a run reserved without recording a verdict. They are part of
    /// `remaining`, and a resume settles them.
    public var inDoubt: UInt64 { counts[.inDoubt] }
    /// The apns-unique-id of the run's only device; nil if the run has several devices, or APNs
    /// returned no ID.
    package var uniqueID: String?
    /// Whether rows in doubt were counted. If not, their number is null in the JSON.
    package var isInDoubtKnown = true
    /// Whether the rows were counted. If not, all counts over all runs are null in the JSON.
    package var areCountsKnown = true
    /// Whether `retries`, `shortened` and `reconnects` include those of the latest run. If not, they
    /// are null in the JSON.
    package var areRequestsKnown = true
    /// Whether the rows that were not sent were counted. If not, the invalid and skipped rows, and
    /// the reasons, are null in the JSON.
    package var areUnsentCountsKnown = true
    /// Rows that are not settled; nil if `rows` is nil.
    public var remaining: UInt64?
    /// Rows that were not accepted, by reason.
    public var reasons: [String: UInt64] { counts.reasons.named }
    /// Number of requests over all runs for rows that were sent before, or may have been.
    public var retries: UInt64 = 0
    /// Number of rows whose value was shortened so that the payload fits, over all runs; nil if no
    /// payload shortens a value. A row that a later run sends again counts again.
    package var shortened: UInt64?
    /// Number of connections that this run maintained; nil if unknown.
    public var connections: Int?
    /// Why the run chose the number in `connections`; nil if the user chose it. Not a key of the
    /// JSON.
    package var connectionsReason: String?
    /// Connections that replaced another connection, over all runs.
    public var reconnects: UInt64 = 0
    /// Time for which this run has sent, without waits for waves, in seconds; nil if unknown.
    public var elapsedSeconds: Double?
    /// Responses per second in this run; nil if unknown.
    public var notificationsPerSecond: Double?
    /// CPU time of this process per request, user and system together; nil if unknown, or if it
    /// sent no request.
    public var cpuMicrosecondsPerNotification: Double?
    /// Response times in this run.
    public var latency = Latency()
    /// Peak resident memory of this process; nil if unknown.
    public var peakResidentBytes: UInt64?
    /// The shares of the connections' time by bottleneck, with a sum of 1; nil if nothing was
    /// measured.
    public var limitedBy: [String: Double]?
    /// Whether the server was a legacy gateway, which sends no response to an accepted
    /// notification. Not a key of the JSON.
    public var acceptsBySilence = false
    /// Whether the campaign has a suppression list. If not, the rows that are skipped as suppressed
    /// are those of devices that `ledger forget` erased. Not a key of the JSON.
    package var hasSuppressionList = true
    /// The broadcast; nil if the ledger is not that of a broadcast.
    var broadcast: BroadcastRecord?
    /// Why fewer requests were in flight than the server allowed; nil if this was not the case. Not
    /// a key of the JSON.
    public var paced: String?

    /// The counts of the guards; nil for a merged ledger, and before the campaign begins.
    public var guards: GuardStatus?
    /// The counts of this process per topic; nil if rows name no topics.
    package var topics: [TopicReport]?
    /// Settled rows of each topic over all runs, according to the ledger. Nil in the summary of a
    /// run, and nil if rows name no topics.
    package var topicTotals: TopicTotals?
    /// The waves of the campaign; nil if rows are not sent in waves, or if the waves are unknown.
    package var waves: [Wave]?

    /// The split of devices into arms; nil if the campaign has no arms.
    package var split: ArmSplit?
    /// Settled rows of each arm over all runs; nil if the campaign has no arms.
    package var arms: ArmTotals? { ArmTotals(split, counts.arms) }

    /// Number of rows by value of the `--payload-by` column, only for values without a payload
    /// file; nil if this process did not count these rows.
    var fallbacks: FallbackCounts?

    package init(campaign: UInt64, outcome: Outcome) {
        self.campaign = hexadecimal(campaign)
        self.outcome = outcome
    }

    /// Creates the summary of a campaign that did not start.
    package init(unbegun outcome: Outcome) {
        campaign = ""
        self.outcome = outcome
    }

    private enum CodingKeys: String, CodingKey {
        case campaign, name, labels, outcome, rows, accepted, rejected, invalid, skipped, failed,
            unknown
        case inDoubt = "in_doubt"
        case remaining, reasons, retries, shortened, connections, reconnects
        case elapsedSeconds = "elapsed_seconds"
        case notificationsPerSecond = "notifications_per_second"
        case cpuMicrosecondsPerNotification = "cpu_microseconds_per_notification"
        case latency = "latency_ms"
        case peakResidentBytes = "peak_rss_bytes"
        case limitedBy = "limited_by"
        case guards
        case payloadFallbacks = "payload_fallbacks"
        case topics, arms, waves
        case rowsByTopic = "rows_by_topic"
        case uniqueID = "unique_id"
        case channel
        case requestID = "request_id"
        case payloadSHA256 = "payload_sha256"
    }

    /// Encodes all keys, except those that exist only for some campaigns; unknown values are null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(campaign.isEmpty ? nil : campaign, forKey: .campaign)
        try container.encode(name, forKey: .name)
        try container.encode(labels, forKey: .labels)
        try container.encode(outcome, forKey: .outcome)
        try container.encode(rows, forKey: .rows)
        func known<Value>(_ count: Value) -> Value? { areCountsKnown ? count : nil }
        try container.encode(known(accepted), forKey: .accepted)
        try container.encode(known(rejected), forKey: .rejected)
        try container.encode(areUnsentCountsKnown ? known(invalid) : nil, forKey: .invalid)
        try container.encode(areUnsentCountsKnown ? known(skipped) : nil, forKey: .skipped)
        try container.encode(known(failed), forKey: .failed)
        try container.encode(known(unknown), forKey: .unknown)
        try container.encode(isInDoubtKnown ? known(inDoubt) : nil, forKey: .inDoubt)
        try container.encode(remaining, forKey: .remaining)
        try container.encode(areUnsentCountsKnown ? known(reasons) : nil, forKey: .reasons)
        try container.encode(areRequestsKnown ? known(retries) : nil, forKey: .retries)
        // This key exists only if a payload shortens a value.
        if let shortened {
            try container.encode(areRequestsKnown ? shortened : nil, forKey: .shortened)
        }
        try container.encode(connections, forKey: .connections)
        try container.encode(areRequestsKnown ? known(reconnects) : nil, forKey: .reconnects)
        try container.encode(elapsedSeconds, forKey: .elapsedSeconds)
        try container.encode(notificationsPerSecond, forKey: .notificationsPerSecond)
        try container.encode(
            cpuMicrosecondsPerNotification, forKey: .cpuMicrosecondsPerNotification)
        try container.encode(latency, forKey: .latency)
        try container.encode(peakResidentBytes, forKey: .peakResidentBytes)
        try container.encode(limitedBy, forKey: .limitedBy)
        try container.encode(guards, forKey: .guards)
        try container.encode(fallbacks.map(PayloadFallbacks.init), forKey: .payloadFallbacks)
        // This key exists only if rows name their topics.
        if let topics {
            try container.encode(
                Dictionary(
                    topics.map { ($0.name, TopicCounts($0)) },
                    uniquingKeysWith: { first, _ in first }),
                forKey: .topics)
        }
        // This key exists only in the summary of a ledger whose rows name their topics.
        if let topicTotals {
            try container.encode(
                Dictionary(
                    topicTotals.topics.map { ($0.name, $0) },
                    uniquingKeysWith: { first, _ in first }),
                forKey: .rowsByTopic)
        }
        // This key exists only if the campaign has arms.
        if let arms {
            try container.encode(
                Dictionary(
                    arms.arms.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first }),
                forKey: .arms)
        }
        // This key exists only if rows are sent at their local time.
        if let waves { try container.encode(waves.map(WaveEntry.init), forKey: .waves) }
        // This key exists only for one device, in the development environment.
        if let uniqueID { try container.encode(uniqueID, forKey: .uniqueID) }
        // These keys exist only for a broadcast.
        if let broadcast {
            try container.encode(broadcast.channel, forKey: .channel)
            try container.encode(broadcast.requestID, forKey: .requestID)
            try container.encode(broadcast.uniqueID, forKey: .uniqueID)
            try container.encode(broadcast.payloadSHA256, forKey: .payloadSHA256)
        }
    }

    /// A wave, as JSON.
    private struct WaveEntry: Encodable {
        let wave: Wave

        private enum CodingKeys: String, CodingKey {
            case at, rows, zones
            case atOnce = "at_once"
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(universalTime(wave.atMilliseconds), forKey: .at)
            try container.encode(wave.isAtOnce, forKey: .atOnce)
            try container.encode(wave.rows, forKey: .rows)
            try container.encode(wave.zones, forKey: .zones)
        }
    }

    /// The counts of this process for a topic, as JSON.
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

    /// JSON text that ends with a newline.
    public func json() -> [UInt8] {
        guard let data = try? JSONCoding.encode(self, [.pretty, .escapedSlashes]) else {
            preconditionFailure("a summary is plain numbers and texts")
        }
        let text = JSONLine.escapingControls(String(decoding: data, as: UTF8.self))
        return Array(text.utf8) + [0x0a]
    }

    /// Column at which values begin in human-readable lines.
    package static let valueColumn = 14

    private func line(_ name: String, _ value: some CustomStringConvertible) -> String {
        let blanks = max(1, Self.valueColumn - 2 - name.count)
        // Values can contain reasons from a server.
        return ForeignText.escaped("  \(name)\(String(repeating: " ", count: blanks))\(value)")
            + "\n"
    }

    /// Human-readable text with the counts.
    public var countsText: String {
        // `broadside status` and the report use the same word.
        let word = outcome == .stopped && wasKilled ? Telemetry.interrupted : outcome.rawValue
        var text = "campaign \(campaign): \(word)\n"
        text += line("rows", rows.map { grouped($0) } ?? "not known before the list is read")
        text += line("accepted", "\(grouped(accepted))\(acceptsBySilence ? ", by silence" : "")")
        if let uniqueID { text += line("unique id", uniqueID) }
        for state in RowState.settledStates.dropFirst() where counts[state] > 0 {
            text += line(state.name, grouped(counts[state]))
        }
        if let remaining, remaining > 0 { text += line("remaining", grouped(remaining)) }
        if inDoubt > 0 { text += line("in doubt", "\(grouped(inDoubt))\(inDoubtText)") }
        for (reason, count) in reasons.sorted(by: { ($0.value, $1.key) > ($1.value, $0.key) }) {
            text += line("  \(reason)", grouped(count))
        }
        if let shortened, areRequestsKnown {
            text += line("shortened", Self.shortenedText(shortened))
        }
        for arm in arms?.arms ?? [] { text += line("arm \(arm.name)", arm.words) }
        for topic in topicTotals?.topics ?? [] {
            text += line("topic \(topic.name)", topic.words)
        }
        return text
    }

    /// Human-readable number of rows with a shortened value.
    static func shortenedText(_ rows: UInt64) -> String {
        rows == 1 ? "1 row's value" : "\(grouped(rows)) rows' values"
    }

    /// The text that explains rows in doubt, and how a resume handles them; nil if there are none,
    /// or if the run that reserved them is still active.
    package var doubtAdvice: String? {
        guard inDoubt > 0, outcome != .running else { return nil }
        guard broadcast == nil else {
            return "the broadcast may have been sent: start it again with the same --ledger to "
                + "record it as unknown, or with --retry unknown to send it again\n"
        }
        return "rows in doubt may have been sent: a resume records them as unknown, or sends them "
            + "again with --on-lost resend\n"
    }

    /// Text after the number of rows in doubt. No record shows how many of them were sent. A run
    /// also reserves rows before it sends them, and keeps them reserved while it is paused.
    private var inDoubtText: String {
        (remaining == nil ? "" : " of them") + (outcome == .running ? ", reserved by the run" : "")
    }

    /// Advice for rows that a relay rejected because they have no content-length; nil if there are
    /// none.
    package var lengthAdvice: String? {
        guard let count = reasons["\(LengthRequired.reason)"], count > 0 else { return nil }
        return "\(grouped(count)) rows were rejected with \(LengthRequired.status) "
            + "\(LengthRequired.reason): \(StopAdvice.lengthRequired), in a new run"
    }

    /// Human-readable summary of a few lines.
    public var text: String {
        var text = countsText
        // This process sent nothing, so it has no throughput to report.
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
        if let causes = Bottleneck.text(
            limitedBy, seconds: elapsedSeconds, acceptsBySilence: acceptsBySilence)
        {
            text += line("bottleneck", causes)
        }
        if let paced { text += line("paced", paced) }
        if let words = fallbacks?.words { text += line("other values", words) }
        return text
    }
}

/// CPU time and memory that the kernel attributes to this process.
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
            // Linux reports kibibytes here (getrusage(2)).
            peakResidentBytes: peakOfThisProgram() ?? UInt64(usage.ru_maxrss) * 1024)
    }

    /// Returns `VmHWM` of /proc/self/status (proc(5)). The kernel preserves `ru_maxrss` across
    /// exec, so `ru_maxrss` would be too large for a small program that a large one started.
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
