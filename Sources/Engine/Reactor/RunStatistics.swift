package import BroadsideLedgerFormat
package import BroadsidePayloads
package import BroadsideRows

/// Counters of one reactor in this process. Owned by the reactor's thread and published as a whole,
/// four times per second.
package struct RunStatistics: Sendable {
    /// Rows settled by this process.
    package var counts = RowCounts()
    /// Number of rows that remain because the credential was refused or the server is not APNs.
    /// These rows are not sent again in this run.
    package var refusedByCredential: UInt64 = 0
    /// Number of requests for rows that this run or an earlier run had sent, or may have sent.
    package var retries: UInt64 = 0
    /// Number of `retries` for rows that this pass had sent: after a response that asks for another
    /// request, or after a lost connection.
    package var ownRetries: UInt64 = 0
    /// Number of rows whose payload has a shortened value; nil if no payload shortens values.
    package var shortened: UInt64?
    package var requests: UInt64 = 0
    /// Number of responses without a latency. All are from a legacy gateway: its errors, and its
    /// acceptances, which it does not report.
    package var untimedResponses: UInt64 = 0
    /// Number of rows that a legacy gateway refused or discarded, as it reported when silence had
    /// already settled them as accepted.
    package var refutedAcceptances: UInt64 = 0
    package var connectionsOpened: UInt64 = 0
    package var reconnects: UInt64 = 0
    package var goAways: UInt64 = 0
    /// Findings about responses that slow down under load.
    package var pace = PaceTally()
    /// Number of failed connections, and number of responses that throttle the run or refuse its
    /// credential. A run with failed connections, or with many such responses, opens no additional
    /// connections.
    package var failures: UInt64 = 0
    package var pushbacks: UInt64 = 0
    /// Number of addresses in trouble.
    package var pausedAddresses = 0
    package var openConnections = 0
    package var inFlight = 0
    /// Time that connections spent in each bottleneck, without pauses, nanoseconds, indexed by
    /// `Bottleneck`.
    package var limited = [UInt64](repeating: 0, count: Bottleneck.allCases.count)

    /// Minimum duration of a run for which the shares of its bottlenecks are meaningful. A shorter
    /// run consists mostly of its start.
    package static let shortestToJudgeSeconds = 2.0

    /// Rows of the list that are overwritten with zero bytes, except the first rows of the list.
    package var overwritten = OverwrittenRows()
    /// Row count for each value of the `--payload-by` column that has no payload file. Known only
    /// after the reactor has ended.
    package var fallbacks = FallbackCounts()

    package init() {}

    /// Adds the counters of another reactor.
    package mutating func add(_ other: RunStatistics) {
        counts += other.counts
        refusedByCredential += other.refusedByCredential
        retries += other.retries
        ownRetries += other.ownRetries
        if let more = other.shortened { shortened = (shortened ?? 0) + more }
        requests += other.requests
        untimedResponses += other.untimedResponses
        refutedAcceptances += other.refutedAcceptances
        connectionsOpened += other.connectionsOpened
        reconnects += other.reconnects
        goAways += other.goAways
        pace.add(other.pace)
        failures += other.failures
        pushbacks += other.pushbacks
        pausedAddresses += other.pausedAddresses
        openConnections += other.openConnections
        inFlight += other.inFlight
        overwritten.add(other.overwritten)
        fallbacks.add(other.fallbacks)
        for index in limited.indices { limited[index] += other.limited[index] }
    }
}
