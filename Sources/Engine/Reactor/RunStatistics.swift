package import BroadsideLedgerFormat
package import BroadsidePayloads

/// What a connection waits for; each instant counts for the first that applies.
package enum LimitedBy: Int, CaseIterable, Sendable {
    // Numbers are stored with telemetry: in the order of precedence, with numbers that stay.
    case input = 0
    case rate = 1
    /// Resolving, connecting, the handshake, up to the server's SETTINGS.
    case connecting = 7
    case retry = 2
    case streams = 3
    case window = 4
    case socket = 5
    case cpu = 6

    /// The name in the summary.
    package var name: String {
        switch self {
        case .input: "input"
        case .rate: "rate"
        case .connecting: "connecting"
        case .retry: "retry"
        case .streams: "streams"
        case .window: "window"
        case .socket: "socket"
        case .cpu: "cpu"
        }
    }
}

/// What one reactor counted in this process. Owned by the reactor's thread; published to others as
/// a whole, four times per second, never field by field.
package struct RunStatistics: Sendable {
    /// Rows settled by this process.
    package var counts = RowCounts()
    /// Rows refused for the credential's sake: not settled, not sent again in this run.
    package var refusedByCredential: UInt64 = 0
    /// Requests beyond each row's first.
    package var retries: UInt64 = 0
    package var requests: UInt64 = 0
    /// Answers without a time of their own: what a legacy gateway says by silence, and its errors.
    package var untimedResponses: UInt64 = 0
    package var connectionsOpened: UInt64 = 0
    package var reconnects: UInt64 = 0
    package var goAways: UInt64 = 0
    /// What was found out about responses that slow down under load.
    package var pace = PaceTally()
    /// Connections that failed, and responses that asked for patience or refused the credential: a
    /// run that finds them does not grow.
    package var failures: UInt64 = 0
    package var pushbacks: UInt64 = 0
    /// Addresses in trouble.
    package var pausedAddresses = 0
    package var openConnections = 0
    package var inFlight = 0
    /// Connection nanoseconds by what they were limited by, indexed by `LimitedBy`.
    package var limited = [UInt64](repeating: 0, count: LimitedBy.allCases.count)

    /// Below this nobody learns anything from the shares: most of it is the beginning.
    package static let shortestToJudgeSeconds = 2.0

    /// Rows whose value has no payload of its own; known when a reactor has ended.
    package var fallbacks = FallbackCounts()

    package init() {}

    /// Adds what another reactor counted.
    package mutating func add(_ other: RunStatistics) {
        counts += other.counts
        refusedByCredential += other.refusedByCredential
        retries += other.retries
        requests += other.requests
        untimedResponses += other.untimedResponses
        connectionsOpened += other.connectionsOpened
        reconnects += other.reconnects
        goAways += other.goAways
        pace.add(other.pace)
        failures += other.failures
        pushbacks += other.pushbacks
        pausedAddresses += other.pausedAddresses
        openConnections += other.openConnections
        inFlight += other.inFlight
        fallbacks.add(other.fallbacks)
        for index in limited.indices { limited[index] += other.limited[index] }
    }
}
