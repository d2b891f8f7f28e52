import BroadsideEngine
import BroadsideLedgers
import BroadsideObservability
internal import BroadsidePolicy
public import BroadsideSupport
import FoundationEssentials

/// What `broadside status` says about one ledger: what its run does now, or how the last one ended.
public struct RunStatus: Sendable {
    /// What a campaign is doing.
    enum State: String {
        case running, paused, stopping
        /// The ledger is locked, and no run responds: it begins, ends, or only reads.
        case busy
        /// Every row is settled; rows that failed or are unknown are counted beside it.
        case complete
        /// Rows remain, and a resume continues.
        case stopped
        /// The last run was killed: rows remain, and some may be in doubt.
        case interrupted
        /// APNs refused the campaign as a whole.
        case aborted
        /// The last run ended by an error of a file, a disk or the network.
        case error
        /// The ledger can't be read.
        case unreadable
    }

    let path: String
    private var state = State.unreadable
    private var campaign: String?
    private var name: String?
    private var labels: [String: String] = [:]
    private var startedAtMilliseconds: UInt64?
    private var progress = Progress()
    /// Why the ledger can't be read; nil if it can.
    public private(set) var problem: BroadsideError?

    /// The members of a run's response to `status` that are shown.
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

        private enum CodingKeys: String, CodingKey {
            case phase, rows, settled, failed, unknown, rate
            case rowsEstimated = "rows_estimated"
            case limitedBy = "limited_by"
            case etaSeconds = "eta_seconds"
        }
    }

    /// Looks at a ledger.
    ///
    /// - Parameter path: Its directory.
    /// - Throws: Only if a signal asks for the end.
    public init(ledger path: String) throws(BroadsideError) {
        self = try Self.all(ledgers: [path])[0]
    }

    /// Looks at ledgers; all runs are asked at the same time, so that those that do not respond cost as
    /// much time as one of them.
    ///
    /// - Parameter paths: Their directories.
    /// - Returns: Their states, in the same order.
    /// - Throws: Only if a signal asks for the end.
    public static func all(ledgers paths: [String]) throws(BroadsideError) -> [RunStatus] {
        let responses = ControlClient.ask(ledgers: paths, request: "status") { response in
            try? JSONDecoder().decode(Progress.self, from: Data(response.utf8))
        }
        var all: [RunStatus] = []
        for (path, progress) in zip(paths, responses) {
            all.append(try RunStatus(ledger: path, running: progress))
        }
        return all
    }

    /// - Parameter running: What a run says that is writing the ledger; nil if none does.
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

    /// The option that such a message begins with is not one of this command's call.
    private static func withoutOption(_ message: String) -> String {
        let option = "--ledger "
        return message.starts(withBytes: option) ? String(message.dropFirst(option.count)) : message
    }

    private mutating func read(_ running: Progress?) throws(BroadsideError) {
        let reader = try LedgerReader(path: path)
        campaign = reader.campaign
        name = reader.manifest.name
        labels = reader.manifest.labels ?? [:]
        startedAtMilliseconds = reader.manifest.epochs.last?.startedAtMilliseconds
        if let running {
            progress = running
            state = running.phase.flatMap(State.init(rawValue:)) ?? .stopping
            return
        }
        progress.rows = reader.manifest.rowCount.map { reader.manifest.rows.count(upTo: $0) }
        if reader.directory.isInUse {
            state = .busy
            return
        }
        if reader.isFinished, reader.manifest.epochs.last?.stop?.cause?.isAbort != true {
            // Its rows are all settled: they need not be counted.
            state = .complete
            progress.settled = progress.rows
            (progress.failed, progress.unknown) = try reader.openRows()
            return
        }
        let summary = try reader.statistics()
        progress.rows = summary.rows
        progress.settled = summary.counts.settled
        (progress.failed, progress.unknown) = (summary.failed, summary.unknown)
        state = State(summary.outcome, wasKilled: reader.manifest.epochs.last?.segments == nil)
    }

    // MARK: Output

    /// One line of JSON; what is not known is null.
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
        line.add("rate", progress.rate)
        line.add("limited_by", progress.limitedBy)
        line.add("eta_seconds", progress.etaSeconds, places: 0)
        line.add("error", problem?.message)
        return line.object + "\n"
    }

    /// A table for people, a row for each ledger.
    public static func table(_ all: [RunStatus]) -> String {
        let head = [
            "ledger", "name", "state", "started", "progress", "per second", "bottleneck", "left",
        ]
        var rows = [head] + all.map(\.cells)
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
            progress.limitedBy.flatMap { name in LimitedBy.allCases.first { $0.name == name } }?
                .words() ?? "-",
            progress.etaSeconds.map { durationText($0) } ?? "-",
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
        return "\(percentText(share)) of \(about)\(grouped(rows))\(open)"
    }

    /// Rows that failed or are unknown, behind the others; empty if there are none.
    private static func openText(_ count: UInt64?, _ state: String) -> String {
        guard let count, count > 0 else { return "" }
        return ", \(grouped(count)) \(state)"
    }
}

extension RunStatus.State {
    /// - Parameter wasKilled: The last run did not record its end.
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
