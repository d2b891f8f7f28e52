import BroadsideEngine
import BroadsideLedgers
import BroadsideObservability
internal import BroadsidePolicy
internal import BroadsidePrimitives
public import BroadsideSupport

/// Status of one ledger, for `broadside status`: the state of its run, or how its last run ended.
public struct RunStatus: Sendable {
    /// State of a campaign.
    enum State: String {
        case running, paused, stopping
        /// The run waits for its next wave.
        case waiting
        /// The ledger is locked, and no run responds. A process is starting or ending, or only
        /// reads the ledger.
        case busy
        /// Every row is settled. Failed and unknown rows are shown separately.
        case complete
        /// Rows remain, and a resume can continue.
        case stopped
        /// The last run was killed: rows remain, and some may be in doubt.
        case interrupted
        /// APNs refused the whole campaign.
        case aborted
        /// An error of a file, a disk or the network ended the last run.
        case error
        /// The ledger can't be read.
        case unreadable
    }

    let path: String
    private var state = State.unreadable
    private var campaign: String?
    private var name: String?
    /// Whether the latest run ended at its `--limit`, so that the list may have more rows; nil while
    /// it runs, and if it is not known.
    private var isLimited: Bool?
    private var labels: [String: String] = [:]
    /// Time of the campaign's first start, milliseconds since 1970; nil if the ledger can't be read.
    private var startedAtMilliseconds: UInt64?
    private var progress = Progress()
    /// Error that makes the ledger unreadable; nil if it can be read.
    public private(set) var problem: BroadsideError?
    /// Warning that the ledger is an old copy; nil if it is not known to be one.
    public private(set) var warning: String?

    /// Members of a run's response to `status` that are displayed.
    private struct Progress: Decodable {
        var phase: String?
        var rows: UInt64?
        var rowsEstimated: Bool?
        var settled: UInt64?
        var failed: UInt64?
        var unknown: UInt64?
        var rate: UInt64?
        var limitedBy: String?
        var etaSeconds: Double?
        var waves: Waves?

        private enum CodingKeys: String, CodingKey {
            case phase, rows, settled, failed, unknown, rate, waves
            case rowsEstimated = "rows_estimated"
            case limitedBy = "limited_by"
            case etaSeconds = "eta_seconds"
        }
    }

    /// The progress of a run through its waves.
    private struct Waves: Decodable {
        var count: Int?
        var next: Int?
        var nextAt: String?
        var nextRows: UInt64?

        private enum CodingKeys: String, CodingKey {
            case count, next
            case nextAt = "next_at"
            case nextRows = "next_rows"
        }

        /// Text about the next wave; nil if there is none.
        var text: String? {
            guard let count, let next, let nextAt else { return nil }
            return "wave \(next) of \(count) at \(printable(nextAt, limit: 40))"
        }

        var json: JSONLine {
            var line = JSONLine()
            line.add("count", count.map { UInt64(max(0, $0)) })
            line.add("next", next.map { UInt64(max(0, $0)) })
            line.add("next_at", nextAt)
            line.add("next_rows", nextRows)
            return line
        }
    }

    /// Reads the status of a ledger.
    ///
    /// - Parameter path: Directory of the ledger.
    /// - Throws: Only if a stop signal arrives.
    public init(ledger path: String) throws(BroadsideError) {
        self = try Self.all(ledgers: [path])[0]
    }

    /// Reads the status of several ledgers. Queries all runs concurrently: several runs that do not
    /// respond take no longer than one.
    ///
    /// - Parameter paths: Directories of the ledgers.
    /// - Returns: Their states, in the same order.
    /// - Throws: Only if a stop signal arrives.
    public static func all(ledgers paths: [String]) throws(BroadsideError) -> [RunStatus] {
        let responses = ControlClient.ask(ledgers: paths, request: "status") { response in
            try? JSONCoding.decode(Progress.self, from: Array(response.utf8))
        }
        var all: [RunStatus] = []
        for (path, progress) in zip(paths, responses) {
            all.append(try RunStatus(ledger: path, running: progress))
        }
        return all
    }

    /// - Parameter running: Response of the run that writes the ledger; nil if no run writes it.
    private init(ledger path: String, running: Progress?) throws(BroadsideError) {
        self.path = path
        do throws(BroadsideError) {
            try read(running)
        } catch {
            if error.exitCode == ExitCode.rowsRemain { throw error }
            let message = Self.withoutOption(error.message)
            problem = BroadsideError(
                message.starts(withBytes: path) ? message : "\(path): \(message)",
                exitCode: ExitCode.disk)
        }
    }

    /// Removes the option name at the start of a message, because this command has no such option.
    private static func withoutOption(_ message: String) -> String {
        let option = "--ledger "
        return message.starts(withBytes: option) ? String(message.dropFirst(option.count)) : message
    }

    private mutating func read(_ running: Progress?) throws(BroadsideError) {
        let reader = try LedgerReader(path: path)
        campaign = reader.campaign
        name = reader.name
        labels = reader.manifest.labels ?? [:]
        startedAtMilliseconds = reader.manifest.firstStartedAtMilliseconds
        if let running {
            progress = running
            state = running.phase.flatMap(State.init(rawValue:)) ?? .stopping
            return
        }
        if reader.directory.isInUse {
            state = .busy
            progress.rows = reader.manifest.knownRowCount
            return
        }
        warning = reader.oldCopyWarning
        isLimited = reader.endsAtLimit
        let isAborted = reader.ledgers.contains {
            $0.manifest.epochs.last?.stop?.cause?.isAbort == true
        }
        if reader.isFinished, !isAborted, reader.broadcast == nil,
            let rows = reader.manifest.knownRowCount
        {
            // All rows are settled, so counting them is unnecessary.
            state = .complete
            (progress.rows, progress.settled) = (rows, rows)
            (progress.failed, progress.unknown) = try reader.openRows()
            return
        }
        let summary = try reader.statistics()
        progress.rows = summary.rows
        progress.settled = summary.counts.settled
        (progress.failed, progress.unknown) = (summary.failed, summary.unknown)
        state = State(summary.outcome, wasKilled: reader.wasKilled)
    }

    // MARK: Output

    /// One line of JSON; unknown values are null.
    public var json: String {
        var line = JSONLine()
        line.add("ledger", path)
        line.add("campaign", campaign)
        line.add("name", name)
        line.add("labels", CampaignLabel.json(labels))
        line.add("state", state.rawValue)
        line.add("started_at_ms", startedAtMilliseconds)
        line.add("rows", progress.rows)
        line.add("rows_estimated", progress.rowsEstimated ?? false)
        line.add("settled", progress.settled)
        line.add("failed", progress.failed)
        line.add("unknown", progress.unknown)
        line.addRaw("limited", isLimited.map { "\($0)" } ?? "null")
        line.add("rate", progress.rate)
        line.add("limited_by", progress.limitedBy)
        line.add("eta_seconds", progress.etaSeconds, places: 0)
        if let waves = progress.waves { line.add("waves", waves.json) }
        line.add("error", problem?.message)
        return line.object + "\n"
    }

    /// Human-readable table, one row per ledger.
    public static func table(_ all: [RunStatus]) -> String {
        let head = [
            "ledger", "name", "state", "started", "progress", "per second", "bottleneck", "left",
        ]
        var rows = [head] + all.map(\.cells)
        assert(rows.allSatisfy { $0.count == head.count }, "a run has a cell in each column")
        if all.allSatisfy({ $0.name == nil }) {
            for index in rows.indices { rows[index].remove(at: 1) }
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { cells in
            var line = ""
            for (cell, width) in zip(cells, widths) {
                line += cell + String(repeating: " ", count: width - cell.count + 2)
            }
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }.joined()
    }

    private var cells: [String] {
        [
            printable(path), name.map { printable($0, limit: 40) } ?? "-",
            state.rawValue,
            startedAtMilliseconds.map(localDateAndTime) ?? "-",
            progressText, progress.rate.map { grouped($0) } ?? "-",
            progress.limitedBy.flatMap { name in Bottleneck.allCases.first { $0.name == name } }?
                .description() ?? "-",
            progress.etaSeconds.map { durationText($0) } ?? progress.waves?.text ?? "-",
        ]
    }

    private var progressText: String {
        let open =
            Self.openText(progress.failed, "failed") + Self.openText(progress.unknown, "unknown")
        guard let settled = progress.settled else {
            return open.isEmpty ? "-" : String(open.dropFirst(2))
        }
        guard let rows = progress.rows else { return "\(grouped(settled)) settled\(open)" }
        let share = rows > 0 ? Double(settled) / Double(rows) : 1
        let about = progress.rowsEstimated == true ? "about " : ""
        let limit = isLimited == true ? " (--limit)" : ""
        return "\(percentText(share)) of \(about)\(grouped(rows))\(limit)\(open)"
    }

    /// Text to append about the number of failed or unknown rows; empty if there are none.
    private static func openText(_ count: UInt64?, _ state: String) -> String {
        guard let count, count > 0 else { return "" }
        return ", \(grouped(count)) \(state)"
    }
}

extension RunStatus.State {
    /// - Parameter wasKilled: Whether the last run did not record its end.
    fileprivate init(_ outcome: Summary.Outcome, wasKilled: Bool) {
        switch outcome {
        case .complete: self = .complete
        case .aborted: self = .aborted
        case .error: self = .error
        case .running: self = .busy
        case .stopped: self = wasKilled ? .interrupted : .stopped
        }
    }
}
