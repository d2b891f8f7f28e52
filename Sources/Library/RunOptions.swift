public import BroadsideCampaigns
public import BroadsideLedgerFormat
public import BroadsideRows
internal import BroadsideSupport
public import FoundationEssentials

/// Options of a run. The defaults are those of the command.
public struct RunOptions: Sendable {
    /// Server that notifications go to.
    public var server = APNsServer.production
    /// Requests per second; nil: unlimited.
    public var rate: Double?
    /// Time from the campaign's first start until the run stops sending requests; nil: no deadline.
    public var deadline: Duration?
    /// Whether to begin a campaign or to continue the campaign in the ledger.
    public var ledgerUse = SendOptions.LedgerUse.begin
    /// The states whose rows a continued campaign sends again.
    public var retry: ReopenedStates = []
    /// Number of connections; nil: chosen by the run.
    public var connections: Int?
    /// Number of threads that send; nil: chosen by the run.
    public var reactors: Int?
    /// Number of requests for a row before it may become `failed`; nil: the command's default.
    public var maxAttempts: Int?
    /// Time for which a row is retried before it may become `failed`; nil: the command's default.
    public var retryFor: Duration?
    /// Time limit for a response.
    public var requestTimeout: Duration?
    /// Time without any response after which the run ends.
    public var giveUpAfter: Duration?
    /// Handling of rows whose response was lost.
    public var onLost = LostResponsePolicy.record
    /// Number of rows that are sent first. Their responses decide whether all other rows are sent.
    /// nil: none.
    public var canary: Int?
    /// Maximum number of rows of the campaign, from the start of the list; nil: all rows.
    public var limit: UInt64?
    /// File with tokens that are skipped; nil: none.
    public var suppress: URL?
    /// Whether duplicates of a token are skipped.
    public var skipsDuplicates = false
    /// Maximum size, in bytes, of the ledger's copy of the tokens. There is a copy only if the
    /// tokens come from a sequence.
    public var tokensByteLimit: UInt64 = 8 << 30
    /// Receives warnings and events; nil: they are dropped.
    public var logger: (any RunLogger)?
    /// Receives counts each second; nil: they are dropped.
    public var metrics: (any RunMetrics)?
    /// Whether to raise this process's limits on open files and locked memory to the permitted
    /// maximum. Otherwise, the run opens only as many connections as the limits allow.
    public var raisesProcessLimits = false
    /// Sets any other option of the command. It is called after all other options are set. A run
    /// refuses `isDryRun`, `preview`, `summary` of `-` and `progress` of `.auto`, which print.
    public var configure: (@Sendable (inout SendOptions) -> Void)?

    /// Creates options; options that are not given have their defaults.
    public init(
        server: APNsServer = .production, rate: Double? = nil, deadline: Duration? = nil,
        ledgerUse: SendOptions.LedgerUse = .begin
    ) {
        self.server = server
        self.rate = rate
        self.deadline = deadline
        self.ledgerUse = ledgerUse
    }

    func apply(to options: inout SendOptions) throws(BroadsideError) {
        server.apply(to: &options)
        options.rate = rate.map { SendRate($0) }
        options.deadline = deadline?.wholeNanoseconds
        options.ledgerUse = ledgerUse
        options.retry = retry
        options.connections = connections
        options.reactors = reactors
        if let maxAttempts { options.maxAttempts = maxAttempts }
        if let retryFor { options.retryFor = retryFor.wholeNanoseconds }
        if let requestTimeout { options.requestTimeout = requestTimeout.wholeNanoseconds }
        options.giveUpAfter = giveUpAfter?.wholeNanoseconds
        options.onLost = onLost
        options.canary = canary
        options.limit = limit
        options.suppress = try optionalPath(suppress, of: "suppress")
        options.skipsDuplicates = skipsDuplicates
        configure?(&options)
    }
}

extension Duration {
    /// The duration in nanoseconds: 0 if it is negative, and the largest number if it is too long.
    var wholeNanoseconds: UInt64 {
        let (whole, fraction) = components
        guard whole >= 0, fraction >= 0 else { return 0 }
        let (product, isFar) = UInt64(whole).multipliedReportingOverflow(by: second)
        let (sum, isTooFar) = product.addingReportingOverflow(UInt64(fraction) / 1_000_000_000)
        return isFar || isTooFar ? .max : sum
    }
}
