import BroadsideCampaigns
internal import BroadsideLedgerFormat
import BroadsideObservability
import BroadsideRows
public import FoundationEssentials

/// Rows of a campaign by state, over all its runs.
public struct CampaignCounts: Sendable, Equatable {
    /// Rows that APNs accepted.
    public let accepted: UInt64
    /// Rows that APNs refused permanently.
    public let rejected: UInt64
    /// Rows that could not be sent because of their content.
    public let invalid: UInt64
    /// Rows that were skipped on purpose.
    public let skipped: UInt64
    /// Rows whose attempts are exhausted.
    public let failed: UInt64
    /// Rows that were sent and whose response was lost.
    public let unknown: UInt64
    /// Rows that were not accepted, by reason.
    public let reasons: [String: UInt64]

    /// Rows with a final outcome.
    public var settled: UInt64 { accepted + rejected + invalid + skipped + failed + unknown }

    init(_ counts: RowCounts) {
        accepted = counts[.accepted]
        rejected = counts[.rejected]
        invalid = counts[.invalid]
        skipped = counts[.skipped]
        failed = counts[.failed]
        unknown = counts[.unknown]
        reasons = counts.reasons.named
    }
}

/// State of a run at one moment.
public struct RunProgress: Sendable {
    /// Activity of a run.
    public enum Phase: String, Sendable {
        /// `waiting`: no row is due yet.
        case running, waiting, paused, stopping, finished
    }

    /// Activity.
    public let phase: Phase
    /// Time of these values.
    public let date: Date
    /// Time for which the run has sent so far, without waits for waves.
    public let elapsed: Duration
    /// Rows by state.
    public let counts: CampaignCounts
    /// Number of rows; nil until it is known or estimated.
    public let rows: UInt64?
    /// Whether `rows` is an estimate.
    public let isRowsEstimate: Bool
    /// Responses per second, in the last second.
    public let responsesPerSecond: Double
    /// Limit on requests per second; nil: none.
    public let rateLimit: Double?
    /// Number of requests in flight.
    public let inFlight: Int
    /// Open connections.
    public let connections: Int
    /// Median of response times; nil before the first response.
    public let medianLatency: Duration?
    /// 99th percentile of response times; nil before the first response.
    public let highLatency: Duration?
    /// Estimated time until all rows are settled; nil if there is no estimate.
    public let timeLeft: Duration?

    init(_ snapshot: RunSnapshot) {
        phase =
            switch snapshot.phase {
            case .running: .running
            case .waiting: .waiting
            case .paused: .paused
            case .stopping: .stopping
            case .finished: .finished
            }
        date = Date(milliseconds: snapshot.wallMilliseconds)
        elapsed = .seconds(snapshot.sendingSeconds)
        counts = CampaignCounts(snapshot.counts)
        rows = snapshot.rows
        isRowsEstimate = snapshot.isRowsEstimate
        responsesPerSecond = snapshot.rateNow
        rateLimit = snapshot.rateLimit
        inFlight = snapshot.inFlight
        connections = snapshot.openConnections
        medianLatency = snapshot.latency.p50.map { .nanoseconds(Int64(clamping: $0)) }
        highLatency = snapshot.latency.p99.map { .nanoseconds(Int64(clamping: $0)) }
        timeLeft = snapshot.etaSeconds.map { .seconds($0) }
    }
}

/// Result of a run.
public struct RunResult: Sendable {
    /// How a run ended.
    public enum Outcome: String, Sendable {
        /// Every row is settled.
        case complete
        /// Rows remain: a run with `RunOptions.ledgerUse` `.resume` continues.
        case stopped
        /// The run was refused or could not continue: see the error.
        case failed
    }

    /// How the run ended.
    public let outcome: Outcome
    /// Rows by state, over all runs of the campaign.
    public let counts: CampaignCounts
    /// Number of rows; nil if a stop interrupted the count.
    public let rows: UInt64?
    /// Rows that are not settled; nil if a stop interrupted the count.
    public let remaining: UInt64?
    /// Time for which this run has sent, without waits for waves.
    public let elapsed: Duration
    /// Message for the operator about how the run ended; nil if all is well.
    public let message: String?
    /// Outcome of each row.
    public let ledger: CampaignLedger
    /// All values of the run, as `--summary` writes them.
    public let summary: Summary

    init(_ end: RunEnd, ledger: CampaignLedger) {
        outcome =
            switch end.exitCode {
            case 0, 6: .complete
            case 3: .stopped
            default: .failed
            }
        counts = CampaignCounts(end.summary.counts)
        rows = end.summary.rows
        remaining = end.summary.remaining
        elapsed = .seconds(end.summary.elapsedSeconds ?? 0)
        message = end.message.map(PropertyName.translated)
        self.ledger = ledger
        summary = end.summary
    }
}
