package import BroadsideHPACK
package import BroadsideLedgerFormat
package import BroadsideLegacyGateway
package import BroadsidePayloads
package import BroadsidePolicy

/// Strategy that determines the number of requests in flight.
public enum PaceMode: String, Sendable, CaseIterable {
    /// Fewer requests when responses slow down under load.
    case adaptive
    /// The maximum number of requests that the server allows.
    case fixed
}

/// Row limits of a reactor. Only simulations with short lists change them.
package struct ReactorLimits: Sendable {
    /// Limit on rows in flight over all connections of the reactor.
    package var flightRows = 1 << 20
    /// Limit on rows that wait for a retry, in addition to the limit on rows in flight. A reactor
    /// takes no new rows while all of its rows wait.
    package var retryRows = 65_536
    /// No new request is sent while at least this many bytes of verdicts are unwritten.
    package var ledgerBacklog = LedgerWriter.highBacklogByteCount

    package init() {}
}

/// Settings of a campaign that a reactor needs; the same for all reactors of a run.
package struct ReactorSettings: Sendable {
    /// Number of the campaign, which is the first part of each apns-id.
    var campaign: UInt64
    /// Number of this list within the campaign, from 1; 0 if the campaign has one list.
    package var part: UInt16 = 0
    /// `:authority` of each request: the host name, and the port unless it is 443.
    var authority: [UInt8]
    var topic: [UInt8]?
    var pushType: [UInt8]
    var priority: [UInt8]?
    var expiration: [UInt8]?
    package var collapseIdentifier: [UInt8]?
    /// Payload if it is the same for all rows.
    var payload: [UInt8]
    /// Templated payloads that differ per row; nil: all rows get `payload`.
    package var personal: PayloadSet?
    /// Name whose addresses are resolved, for messages.
    package var nameToResolve: String
    /// `HOST:PORT` at the far end of a proxy tunnel; nil for direct connections.
    package var tunnelTarget: String?

    /// Policy that decides which header fields enter the server's dynamic table.
    package var indexingPolicy = IndexingPolicy.strict
    /// Whether the ledger has tokens and fingerprints.
    package var keepsTokens = true
    /// Whether requests carry content-length, for relays that require it.
    package var sendsContentLength = false

    /// Connections that each reactor keeps open. If the run has a `ConnectionTarget`, this is the
    /// maximum.
    package var connections: Int
    /// Limit on streams per connection, in addition to the server's limit.
    var streamsPerConnection: Int
    /// Requests per 1,000 seconds and connection; nil: unlimited.
    var milliRatePerConnection: UInt64?
    /// Strategy for the number of requests in flight.
    package var pace = PaceMode.fixed
    /// Whether requests carry a provider token. If so, each connection starts with a single
    /// request.
    package var usesProviderToken: Bool

    var onLost: LostResponsePolicy
    var retryPolicy: RetryPolicy
    /// The request timeout in nanoseconds.
    var requestTimeout: UInt64
    var giveUpAfter: UInt64
    /// Whether the user gave `--give-up-after`. If so, a run that reaches no server at its start
    /// waits for this duration; otherwise, it ends within seconds.
    var giveUpAfterIsExplicit: Bool
    var abortAfter: Int
    /// Number of reactors in the run. Limits at the start of the run are divided by it.
    var reactors: Int
    /// Seed of the generator for jitter.
    var seed: UInt64
    /// Whether an invalid row counts as refused for the canary. False with `--deliver-at` or
    /// `--quiet`: the canary then sends only some of the valid rows that it reads, so invalid rows
    /// would count too much.
    package var canaryCountsInvalid = true
    /// Whether rows of the list may be masked. `ledger forget` erased the devices of such rows.
    /// They do not count as invalid for `--max-invalid`.
    package var mayHaveMaskedRows = false
    /// Row limits of the reactor.
    package var limits = ReactorLimits()
    /// Settings of the legacy gateway's protocol; nil: HTTP/2.
    package var binary: BinarySettings?

    package init(
        campaign: UInt64, authority: [UInt8], topic: [UInt8]?, pushType: [UInt8],
        priority: [UInt8]?, expiration: [UInt8]?, collapseIdentifier: [UInt8]?, payload: [UInt8],
        connections: Int, streamsPerConnection: Int, milliRatePerConnection: UInt64?,
        usesProviderToken: Bool, onLost: LostResponsePolicy, retryPolicy: RetryPolicy,
        requestTimeout: UInt64, giveUpAfter: UInt64, giveUpAfterIsExplicit: Bool, abortAfter: Int,
        reactors: Int, seed: UInt64
    ) {
        self.campaign = campaign
        self.authority = authority
        nameToResolve = String(decoding: authority, as: UTF8.self)
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseIdentifier = collapseIdentifier
        self.payload = payload
        self.connections = connections
        self.streamsPerConnection = streamsPerConnection
        self.milliRatePerConnection = milliRatePerConnection
        self.usesProviderToken = usesProviderToken
        self.onLost = onLost
        self.retryPolicy = retryPolicy
        self.requestTimeout = requestTimeout
        self.giveUpAfter = giveUpAfter
        self.giveUpAfterIsExplicit = giveUpAfterIsExplicit
        self.abortAfter = abortAfter
        self.reactors = reactors
        self.seed = seed
    }
}
