package import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsideLedgers
package import BroadsidePolicy
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// History of a campaign's runs, for the report. Telemetry is a file of bounded size in the
/// ledger's directory. The run replaces it every few seconds. Only reports, advice, `night` and the
/// value at which a rising rate continues depend on it; for ledgers of earlier versions, the
/// recognition of rehearsals, too.
package struct Telemetry: Codable, Sendable {
    /// Period for which the operator paused a run, in milliseconds since 1970.
    struct Pause: Codable, Sendable, Equatable {
        var startedAtMilliseconds: UInt64
        /// End of the pause; nil during the pause.
        var endedAtMilliseconds: UInt64?
    }

    /// One run of the campaign.
    struct Run: Codable, Sendable {
        var number: UInt32
        /// The start of sending, or of the wait for a wave if nothing was sent.
        var startedAtMilliseconds: UInt64
        /// Sending time.
        var elapsedSeconds = 0.0
        /// Latest time at which the run waited for its wave; nil if it did not wait, or has begun
        /// to send.
        var waitedUntilMilliseconds: UInt64?
        /// Number of passes of the same process before this run, one for each of the runs before
        /// it; nil if there are none, or if an earlier version wrote the file.
        var earlierPasses: Int?
        /// Outcome of the run; nil if it was not recorded.
        var outcome: String?
        /// Cause of an early end.
        var cause: String?
        /// Structured form of `cause`; nil if an earlier version wrote it.
        var stop: StopRecord?
        /// The counts of the campaign's `failed` and `unknown` rows at the run's end; nil if not
        /// recorded.
        var failed: UInt64?
        var unknown: UInt64?
        var pauses: [Pause]?
        /// Indexes of the campaign's waves whose rows the run began to send; nil if there are none,
        /// or if an earlier version wrote the file.
        var waves: [Int]?
        var retries: UInt64 = 0
        /// Rows with a shortened value; nil if no payload shortens a value.
        var shortened: UInt64?
        var reconnects: UInt64 = 0
        /// Nanoseconds that connections spent in each state of `Bottleneck`.
        var limited: [UInt64] = []
        var points: [TimeSeries.Point] = []

        /// Whether the run recorded its end, or the end of the wave that it sent. If not, the run's
        /// latest record counts as its end.
        var hasEnd: Bool { outcome != nil || failed != nil }

        /// Whether a sample of the run was recorded. If not, the run's values are unknown.
        var isSampled: Bool { elapsedSeconds > 0 || waitedUntilMilliseconds != nil }

        /// Time of the run's end, or of its latest record.
        var endedAtMilliseconds: UInt64 {
            let sent = startedAtMilliseconds + UInt64(max(0, wholeNumber(elapsedSeconds * 1000)))
            return max(sent, waitedUntilMilliseconds ?? 0)
        }
    }

    /// Event of the log that the telemetry keeps.
    struct Event: Codable, Sendable {
        var milliseconds: UInt64
        var kind: RunEvent.Kind
        var message: String
    }

    /// Name and value of a setting. The value is never a secret.
    package struct Setting: Codable, Sendable {
        var name: String
        var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A wave, as it was planned at the campaign's first start.
    struct PlannedWave: Codable, Sendable, Equatable {
        var atMilliseconds: UInt64
        var isAtOnce: Bool
        /// Date and time of day in the first of the wave's time zones.
        var localText: String
        /// Human-readable text with the wave's time zones.
        var zones: String
        var rows: UInt64

        init(_ wave: Wave) {
            atMilliseconds = wave.atMilliseconds
            isAtOnce = wave.isAtOnce
            localText = wave.localText
            zones = wave.zonesText
            rows = wave.rows
        }
    }

    /// The progress of a rising rate.
    struct Ramp: Codable, Sendable, Equatable {
        /// First rate, in requests per 1,000 seconds.
        var first: UInt64
        var last: UInt64
        var riseNanoseconds: UInt64
        /// Time spent sending so far, in nanoseconds.
        var sentNanoseconds: UInt64
    }

    private(set) var version = 1
    private(set) var runs: [Run] = []
    private(set) var events: [Event] = []
    /// Number of events dropped because there were too many.
    private(set) var eventsLost: UInt64 = 0
    /// Connections of the latest run.
    var connections: [ConnectionTally] = []
    var settings: [Setting] = []
    /// Host and port of the latest run's server; nil if unknown.
    package var endpoint: String? { settings.first { $0.name == "endpoint" }?.value }
    /// Command line of the latest run; nil if an earlier version wrote the file.
    package var command: RunCommand?
    /// Absolute path of the report page of the latest run with `--report`; nil if no run had this
    /// option.
    private(set) var reportPath: String?
    /// Whether `--endpoint` named the server.
    package var hasEndpoint: Bool?
    /// Kind of the latest run's credential, a raw value of `StopAdvice.CredentialKind`; nil if an
    /// earlier version wrote the file.
    package var credential: String?
    /// Text of the alert. For a template, the text of the first row.
    package var alert: AlertText?
    /// Topic of the first row, if each row names its topic.
    package var firstTopic: String?
    /// Absolute path of the list as the options of the latest run named it; links are not resolved.
    /// nil for standard input, or if an earlier version wrote the file.
    package var givenListPath: String?
    /// Modification time of the list at the first run, in milliseconds since 1970. nil for standard
    /// input, or if an earlier version wrote the file.
    package var listModifiedAtMilliseconds: UInt64?
    /// The first waves of the campaign, in order; nil if rows are not sent in waves.
    private(set) var waves: [PlannedWave]?
    /// The progress of the latest rising rate; nil if no run had a rising rate.
    private(set) var ramp: Ramp?
    /// Latencies over all runs except the current one.
    private var earlierLatency = LatencyCounts()
    package private(set) var latency = LatencyCounts()

    package static let fileName = LedgerDirectory.telemetryName
    static let currentVersion = 1
    /// Maximum number of points over all runs.
    static let pointsLimit = 2 * TimeSeries.limit
    /// Maximum number of runs that are kept. If there are more, the oldest runs are removed.
    static let runsLimit = 100
    /// Maximum number of events. If there are more, only the first and the last events are kept.
    static let eventsLimit = 400
    /// Maximum number of pauses that are kept for each run. Later pauses are dropped.
    static let pausesLimit = 50
    /// Maximum number of waves that are kept. Later waves are dropped.
    static let wavesLimit = 200
    /// Maximum size of a telemetry file, in bytes. Broadside never writes a larger file.
    static let byteLimit = 1 << 24

    package init() {}

    /// Adds a run.
    ///
    /// - Parameter earlierPasses: Number of passes that the same process has ended.
    package mutating func begin(
        _ number: UInt32, atMilliseconds: UInt64, settings: [Setting], earlierPasses: Int = 0
    ) {
        earlierLatency = latency
        connections = []
        self.settings = settings
        if runs.count == Self.runsLimit { runs.removeFirst() }
        runs.append(Run(number: number, startedAtMilliseconds: atMilliseconds))
        if earlierPasses > 0 { runs[runs.count - 1].earlierPasses = earlierPasses }
        assert(runs.count <= Self.runsLimit, "the oldest runs are forgotten")
    }

    /// Records the waves of the campaign.
    package mutating func record(waves: [Wave]) {
        assert(
            zip(waves, waves.dropFirst()).allSatisfy { $0.atMilliseconds < $1.atMilliseconds },
            "waves are in the order of their times")
        self.waves = waves.prefix(Self.wavesLimit).map(PlannedWave.init)
    }

    /// Returns the ledger's runs. The start of each is the time at which it began to send, after
    /// any wait for a wave.
    package func withoutWaits(_ epochs: [Manifest.Epoch]) -> [Manifest.Epoch] {
        guard waves != nil else { return epochs }
        var epochs = epochs
        for index in epochs.indices {
            let end = index + 1 < epochs.count ? epochs[index + 1].startedAtMilliseconds : .max
            guard let run = runs.first(where: { $0.number == epochs[index].number }),
                (epochs[index].startedAtMilliseconds...).contains(run.startedAtMilliseconds),
                run.startedAtMilliseconds <= end
            else { continue }
            epochs[index].startedAtMilliseconds = run.startedAtMilliseconds
        }
        return epochs
    }

    /// Numbers of the runs whose end is not recorded: killed runs, a run in progress, and runs that
    /// this file lacks.
    package func runsWithoutEnd(_ epochs: [Manifest.Epoch]) -> Set<UInt32> {
        Set(epochs.map(\.number)).subtracting(runs.filter(\.hasEnd).map(\.number))
    }

    /// Time of the latest run's end, or of its latest record, in milliseconds since 1970; nil if no
    /// run is recorded.
    package var endedAtMilliseconds: UInt64? { runs.last?.endedAtMilliseconds }

    /// The passes of the latest run's process, in order; nil if this file lacks one of them.
    var latestPasses: ArraySlice<Run>? {
        guard let last = runs.last else { return nil }
        let count = (last.earlierPasses ?? 0) + 1
        let passes = runs.suffix(count)
        guard passes.count == count,
            zip(passes, passes.dropFirst()).allSatisfy({ $0.number < $1.number }),
            passes.first?.earlierPasses == nil
        else { return nil }
        return passes
    }

    /// Outcome of a run that did not record its end because it was killed. `broadside status` uses
    /// the same word.
    static let interrupted = "interrupted"

    /// How a run ended, such as `complete` or `interrupted`; nil if that is unknown. The run must
    /// not be in progress.
    func outcome(of epoch: Manifest.Epoch) -> String? {
        let run = runs.first { $0.number == epoch.number }
        if let outcome = run?.outcome { return outcome }
        if run?.hasEnd == true { return "wave ended" }
        guard epoch.stop == nil else { return nil }
        // The run certainly recorded no end if it is the latest run, or if this file has it or
        // would have it. The file loses only the oldest runs.
        let isKnown =
            run != nil || epoch.segments == nil
            || !runs.isEmpty && (runs.count < Self.runsLimit || epoch.number > runs[0].number)
        return isKnown ? Self.interrupted : nil
    }

    /// Records that the current run waits for its wave.
    package mutating func wait(untilMilliseconds: UInt64) {
        assert(!runs.isEmpty, "a run was begun")
        assert(runs[runs.count - 1].points.isEmpty, "a run waits before it sends")
        runs[runs.count - 1].waitedUntilMilliseconds = untilMilliseconds
    }

    /// Records that the current run begins to send after a wait.
    package mutating func restart(atMilliseconds: UInt64) {
        assert(!runs.isEmpty, "a run was begun")
        assert(runs[runs.count - 1].points.isEmpty, "nothing is recorded while a run waits")
        runs[runs.count - 1].startedAtMilliseconds = atMilliseconds
        runs[runs.count - 1].waitedUntilMilliseconds = nil
    }

    /// Records which of the campaign's waves the current run begins to send.
    package mutating func send(waves: [Int]) {
        assert(!runs.isEmpty, "a run was begun")
        let known = waves.filter { $0 < Self.wavesLimit }
        runs[runs.count - 1].waves = known.isEmpty ? nil : known
    }

    /// Updates the current run from the latest sample.
    package mutating func take(
        _ snapshot: RunSnapshot, _ series: TimeSeries, _ report: ReactorReport
    ) {
        connections = report.connections
        latency = earlierLatency
        latency.add(snapshot.latencyCounts)
        let last = runs.count - 1
        assert(last >= 0, "a run was begun")
        assert(
            runs[last].elapsedSeconds <= snapshot.elapsedSeconds, "a run's time does not go back")
        runs[last].elapsedSeconds = snapshot.elapsedSeconds
        runs[last].retries = report.statistics.retries
        runs[last].shortened = report.statistics.shortened
        runs[last].reconnects = report.statistics.reconnects
        runs[last].limited = report.statistics.limited
        runs[last].points = series.points
        while runs.lazy.map(\.points.count).reduce(0, +) > Self.pointsLimit,
            let longest = runs.indices.dropLast().max(by: {
                runs[$0].points.count < runs[$1].points.count
            })
        {
            runs[longest].points = TimeSeries.halved(runs[longest].points)
        }
    }

    /// Records the progress of a rising rate.
    package mutating func take(_ clock: RampClock) {
        ramp = Ramp(
            first: clock.ramp.first, last: clock.ramp.last,
            riseNanoseconds: clock.ramp.riseNanoseconds, sentNanoseconds: clock.sentNanoseconds)
    }

    /// Returns the recorded sending time during which the rate has risen, in nanoseconds. Returns 0
    /// if the recorded ramp and `other` differ in start, end or rise time.
    package func sentNanoseconds(of other: RateRamp) -> UInt64 {
        guard let ramp, ramp.first == other.first, ramp.last == other.last,
            ramp.riseNanoseconds == other.riseNanoseconds
        else { return 0 }
        return ramp.sentNanoseconds
    }

    /// Records how the latest run ended.
    ///
    /// - Parameter counts: Rows of the campaign by state.
    package mutating func end(
        outcome: String?, cause: String?, stop: StopRecord? = nil, counts: RowCounts? = nil,
        atMilliseconds: UInt64 = 0
    ) {
        assert(!runs.isEmpty, "a run was begun")
        runs[runs.count - 1].outcome = outcome
        runs[runs.count - 1].failed = counts?[.failed]
        runs[runs.count - 1].unknown = counts?[.unknown]
        runs[runs.count - 1].cause = cause
        runs[runs.count - 1].stop = stop
        endPause(atMilliseconds: atMilliseconds)
    }

    /// Records the path to which the run will write its page.
    package mutating func recordReport(_ path: String) {
        reportPath =
            path.starts(withBytes: "/") ? path : "\(RunCommand.workingDirectory)/\(path)"
    }

    /// Records the start of a pause.
    package mutating func beginPause(atMilliseconds: UInt64) {
        assert(!runs.isEmpty, "a run was begun")
        var pauses = runs[runs.count - 1].pauses ?? []
        guard pauses.count < Self.pausesLimit,
            pauses.last.map({ $0.endedAtMilliseconds != nil }) ?? true
        else { return }
        pauses.append(Pause(startedAtMilliseconds: atMilliseconds))
        runs[runs.count - 1].pauses = pauses
    }

    /// Records the end of a pause. The end of the run is also the end of its pause.
    package mutating func endPause(atMilliseconds: UInt64) {
        guard var pauses = runs[runs.count - 1].pauses, let last = pauses.indices.last,
            pauses[last].endedAtMilliseconds == nil
        else { return }
        pauses[last].endedAtMilliseconds = atMilliseconds
        assert(
            pauses.dropLast().allSatisfy { $0.endedAtMilliseconds != nil }, "two pauses at a time")
        runs[runs.count - 1].pauses = pauses
    }

    package mutating func add(_ event: RunEvent) {
        if events.count == Self.eventsLimit {
            events.remove(at: Self.eventsLimit / 2)
            eventsLost += 1
        }
        assert(events.count < Self.eventsLimit, "there is room for one event")
        events.append(
            Event(
                milliseconds: event.milliseconds, kind: event.kind,
                message: (event.connection.map { "connection \($0): " } ?? "")
                    + printable(event.message)))
    }

    /// JSON object whose last member is a hash of the bytes before that member. The hash shows
    /// damage.
    package var encoded: [UInt8] {
        // All numbers are finite, so encoding can't fail.
        assert(isPlausible, "what is written can be read again")
        let text = (try? JSONCoding.encode(self)) ?? []
        return Self.sealed(text.dropLast())
    }

    /// Appends the hash and the closing brace to an object without its closing brace.
    package static func sealed(_ members: ArraySlice<UInt8>) -> [UInt8] {
        TelemetrySeal.sealed(members)
    }

    /// - Returns: nil if the bytes are damaged, or are not telemetry of a known version.
    package init?(decoding bytes: [UInt8]) {
        guard let decoded = try? JSONCoding.decode(Seal.self, from: bytes) else {
            return nil
        }
        self = decoded.telemetry
        guard version == Self.currentVersion, isPlausible else { return nil }
        guard let hash = decoded.hash else {
            guard isOfFirstVersion else { return nil }
            return
        }
        guard TelemetrySeal.members(of: bytes, hash: hash) != nil else { return nil }
    }

    /// Whether version 0.1.0 may have written the file: all fields that version 0.1.0 did not know
    /// are missing. Its files had no hash.
    private var isOfFirstVersion: Bool {
        command == nil && hasEndpoint == nil && alert == nil && reportPath == nil
            && givenListPath == nil && listModifiedAtMilliseconds == nil && ramp == nil
            && runs.allSatisfy {
                $0.stop == nil && $0.pauses == nil && $0.failed == nil && $0.unknown == nil
                    && $0.shortened == nil && $0.waitedUntilMilliseconds == nil
                    && $0.earlierPasses == nil && $0.waves == nil
            }
    }

    /// Content of a file, with its hash.
    private struct Seal: Decodable {
        var telemetry: Telemetry
        var hash: String?

        private enum CodingKeys: CodingKey { case hash }

        init(from decoder: any Decoder) throws {
            telemetry = try Telemetry(from: decoder)
            hash = try decoder.container(keyedBy: CodingKeys.self)
                .decodeIfPresent(String.self, forKey: .hash)
        }
    }

    /// Telemetry in a ledger's directory; nil if there is none or it can't be read.
    package static func read(from directory: LedgerDirectory) -> Telemetry? {
        guard
            let bytes = try? directory.readSmallFile(fileName, limit: byteLimit)
        else { return nil }
        return Telemetry(decoding: bytes)
    }
}
