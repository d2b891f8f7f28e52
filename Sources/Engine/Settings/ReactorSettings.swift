package import BroadsideHPACK
package import BroadsideLedgerFormat
package import BroadsideLegacyGateway
package import BroadsidePayloads
package import BroadsidePolicy

/// How requests in flight are chosen.
public enum PaceMode: String, Sendable, CaseIterable {
    /// Fewer where answers slow down under load.
    case adaptive
    /// As many as the server allows.
    case fixed
}

/// What of rows a reactor holds at most. Always these, but in simulations whose lists are short.
package struct ReactorLimits: Sendable {
    /// Rows that may be in flight on all connections of a reactor.
    package var flightRows = 1 << 20
    /// Rows that may wait for another try, beside those in flight. A reactor whose rows are all
    /// waiting takes no new ones.
    package var retryRows = 65_536
    /// From how many bytes of verdicts that wait for the disk on nothing new is sent.
    package var ledgerBacklog = LedgerWriter.highBacklogByteCount

    package init() {}
}

/// What a reactor needs to know of the campaign; the same for all reactors of a run.
package struct ReactorSettings: Sendable {
    /// The campaign's number: the first part of every apns-id.
    var campaign: UInt64
    /// Which of the campaign's lists, from 1; 0 for a campaign of one list.
    package var part: UInt16 = 0
    /// `:authority` of every request: the host name, and the port where it is not 443.
    var authority: [UInt8]
    var topic: [UInt8]?
    var pushType: [UInt8]
    var priority: [UInt8]?
    var expiration: [UInt8]?
    package var collapseIdentifier: [UInt8]?
    /// The payload where it is the same for all rows.
    var payload: [UInt8]
    /// What rows get where they get different things; nil: the payload above.
    package var personal: PayloadSet?
    /// Whose addresses are looked up, for messages.
    package var nameToResolve: String
    /// `HOST:PORT` at the other end of a proxy's tunnel; nil where connections go straight there.
    package var tunnelTarget: String?

    /// Which header fields go into the servers' tables.
    package var indexingPolicy = IndexingPolicy.strict
    /// True where requests have a content-length, for relays that insist on one.
    package var sendsContentLength = false

    /// Connections that each reactor keeps up; the most that it ever does, where the run's
    /// `ConnectionTarget` says how many.
    package var connections: Int
    /// Cap on the streams a connection; the server's limit holds besides.
    var streamsPerConnection: Int
    /// Requests in 1,000 seconds a connection; nil: as many as go.
    var milliRatePerConnection: UInt64?
    /// Whether fewer requests are in flight where answers slow down under load.
    package var pace = PaceMode.fixed
    /// True where requests carry a provider token: one request goes first on each connection.
    package var usesProviderToken: Bool

    var onLost: LostResponsePolicy
    var retryPolicy: RetryPolicy
    /// Durations in nanoseconds.
    var requestTimeout: UInt64
    var giveUpAfter: UInt64
    /// True where the user gave `--give-up-after`: then a start without any reachable server waits
    /// as long as they said, else it ends within seconds.
    var giveUpAfterIsExplicit: Bool
    var abortAfter: Int
    /// Number of reactors in the run; early limits are divided by it.
    var reactors: Int
    /// What jitter is drawn from.
    var seed: UInt64
    /// What of rows a reactor holds at most.
    package var limits = ReactorLimits()
    /// The legacy gateway's protocol in place of HTTP/2; nil: HTTP/2.
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
