package import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsideLedgers
package import BroadsidePolicy
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport
import FoundationEssentials

/// What a ledger's directory keeps besides its rows: how the runs went, for the report. A file of
/// bounded size, replaced every few seconds; only reports, and the value at which a rising
/// rate continues, depend on it.
package struct Telemetry: Codable, Sendable {
    /// A time for which the operator held a run: milliseconds since 1970.
    struct Pause: Codable, Sendable, Equatable {
        var startedAtMilliseconds: UInt64
        /// nil while it lasts.
        var endedAtMilliseconds: UInt64?
    }

    /// One process's part in the campaign.
    struct Run: Codable, Sendable {
        var number: UInt32
        var startedAtMilliseconds: UInt64
        var elapsedSeconds = 0.0
        /// How it ended; nil: it did not say.
        var outcome: String?
        /// Why, where it did not simply reach its end.
        var cause: String?
        /// The same as a value; nil where an earlier version wrote it.
        var stop: StopRecord?
        /// The campaign's rows in these states at the run's end; nil if it did not say them.
        var failed: UInt64?
        var unknown: UInt64?
        var pauses: [Pause]?
        var retries: UInt64 = 0
        var reconnects: UInt64 = 0
        /// Connection nanoseconds by `LimitedBy`.
        var limited: [UInt64] = []
        var points: [TimeSeries.Point] = []
    }

    /// A line of the event log that is worth keeping.
    struct Event: Codable, Sendable {
        var milliseconds: UInt64
        var kind: RunEvent.Kind
        var message: String
    }

    /// A setting and its value; never a secret.
    package struct Setting: Codable, Sendable {
        var name: String
        var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// How far a rate has risen by itself.
    struct Ramp: Codable, Sendable, Equatable {
        /// Requests in 1,000 seconds.
        var first: UInt64
        var last: UInt64
        var riseNanoseconds: UInt64
        /// The time of sending so far.
        var sentNanoseconds: UInt64
    }

    private(set) var version = 1
    private(set) var runs: [Run] = []
    private(set) var events: [Event] = []
    /// Events that were too many.
    private(set) var eventsLost: UInt64 = 0
    /// Of the latest run.
    var connections: [ConnectionTally] = []
    var settings: [Setting] = []
    /// How the latest run was called; nil where an earlier version wrote it.
    package var command: RunCommand?
    /// Where the latest run that had `--report` wrote its page, absolute; nil if none had.
    private(set) var reportPath: String?
    /// Whether `--endpoint` named its server.
    package var hasEndpoint: Bool?
    /// What an alert shows, of a template the first row's.
    package var alert: AlertText?
    /// When the list was last written to, milliseconds since 1970, as the first run found it; nil for
    /// standard input, and if an earlier version wrote it.
    package var listModifiedAtMilliseconds: UInt64?
    /// How far the rate has risen by itself, in the latest run whose did; nil if none was.
    private(set) var ramp: Ramp?
    /// Over all runs but the one under way.
    private var earlierLatency = LatencyCounts()
    package private(set) var latency = LatencyCounts()

    package static let fileName = "telemetry.json"
    static let currentVersion = 1
    /// Points over all runs.
    static let pointsLimit = 2 * TimeSeries.limit
    /// Runs that are told apart; the oldest ones go.
    static let runsLimit = 100
    /// Events; of more, the first and the last stay.
    static let eventsLimit = 400
    /// Pauses of a run; later ones are not kept.
    static let pausesLimit = 50
    /// No file of ours is larger.
    static let byteLimit = 1 << 24

    package init() {}

    /// Begins the part of a new process.
    package mutating func begin(_ number: UInt32, atMilliseconds: UInt64, settings: [Setting]) {
        earlierLatency = latency
        connections = []
        self.settings = settings
        if runs.count == Self.runsLimit { runs.removeFirst() }
        runs.append(Run(number: number, startedAtMilliseconds: atMilliseconds))
        assert(runs.count <= Self.runsLimit, "the oldest runs are forgotten")
    }

    /// Takes the latest look over.
    package mutating func take(
        _ snapshot: RunSnapshot, _ series: TimeSeries, _ report: ReactorReport
    ) {
        connections = report.connections
        latency = earlierLatency
        latency.add(snapshot.latencyCounts)
        let last = runs.count - 1
        assert(last >= 0, "a run was begun")
        runs[last].elapsedSeconds = snapshot.elapsedSeconds
        runs[last].retries = report.statistics.retries
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

    /// How far the rate has risen.
    package mutating func take(_ clock: RampClock) {
        ramp = Ramp(
            first: clock.ramp.first, last: clock.ramp.last,
            riseNanoseconds: clock.ramp.riseNanoseconds, sentNanoseconds: clock.sentNanoseconds)
    }

    /// The time of sending that counts for a rate that rises, nanoseconds; 0 if it was another one.
    package func sentNanoseconds(of other: RateRamp) -> UInt64 {
        guard let ramp, ramp.first == other.first, ramp.last == other.last,
            ramp.riseNanoseconds == other.riseNanoseconds
        else { return 0 }
        return ramp.sentNanoseconds
    }

    /// How the latest run ended.
    ///
    /// - Parameter counts: The campaign's rows by state.
    package mutating func end(
        outcome: String, cause: String?, stop: StopRecord? = nil, counts: RowCounts? = nil,
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

    /// The run will write its page to this path.
    package mutating func recordReport(_ path: String) {
        reportPath =
            path.starts(withBytes: "/") ? path : "\(RunCommand.workingDirectory)/\(path)"
    }

    /// The operator holds the run.
    package mutating func beginPause(atMilliseconds: UInt64) {
        assert(!runs.isEmpty, "a run was begun")
        var pauses = runs[runs.count - 1].pauses ?? []
        guard pauses.count < Self.pausesLimit,
            pauses.last.map({ $0.endedAtMilliseconds != nil }) ?? true
        else { return }
        pauses.append(Pause(startedAtMilliseconds: atMilliseconds))
        runs[runs.count - 1].pauses = pauses
    }

    /// The operator lets it continue, or it ends.
    package mutating func endPause(atMilliseconds: UInt64) {
        guard var pauses = runs[runs.count - 1].pauses, let last = pauses.indices.last,
            pauses[last].endedAtMilliseconds == nil
        else { return }
        pauses[last].endedAtMilliseconds = atMilliseconds
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

    /// One JSON object. Its last member is a hash of the bytes before it, so that damage is found.
    package var encoded: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers are finite: there is nothing that could not be encoded.
        let text = (try? encoder.encode(self)).map { Array($0) } ?? []
        return Self.sealed(text.dropLast())
    }

    /// An object without its last brace, with its hash and the brace.
    package static func sealed(_ members: ArraySlice<UInt8>) -> [UInt8] {
        members + Array("\(hashMember(of: members))}\n".utf8)
    }

    private static func hashMember(of members: ArraySlice<UInt8>) -> String {
        // SAFETY: bytes have no padding.
        let hash = MixingHash.hash(Array(members).rawSpan)
        return ",\"hash\":\"\(hexadecimal(hash))\""
    }

    /// nil where the bytes are not telemetry that this version knows, or are not what was written.
    package init?(decoding bytes: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(Seal.self, from: Data(bytes)) else {
            return nil
        }
        self = decoded.telemetry
        guard version == Self.currentVersion, isPlausible else { return nil }
        guard let hash = decoded.hash else {
            guard isOfFirstVersion else { return nil }
            return
        }
        let end = ",\"hash\":\"\(hash)\"}\n".utf8.count
        guard bytes.count > end, Self.sealed(bytes.dropLast(end)) == bytes else { return nil }
    }

    /// Whether version 0.1.0 may have written it, which wrote no hash: nothing that it did not know
    /// is there.
    private var isOfFirstVersion: Bool {
        command == nil && hasEndpoint == nil && alert == nil && reportPath == nil
            && listModifiedAtMilliseconds == nil && ramp == nil
            && runs.allSatisfy {
                $0.stop == nil && $0.pauses == nil && $0.failed == nil && $0.unknown == nil
            }
    }

    /// A file: what it tells, and the hash behind it.
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

    /// What a directory keeps; nil where there is none, or none that can be read.
    package static func read(from directory: LedgerDirectory) -> Telemetry? {
        guard
            let bytes = try? directory.readSmallFile(fileName, limit: byteLimit)
        else { return nil }
        return Telemetry(decoding: bytes)
    }
}
