package import BroadsideLedgerFormat

/// Something worth a line in the event log: never one notification.
package struct RunEvent: Sendable, Equatable {
    /// How much it matters.
    package enum Level: String, Sendable, Codable, Comparable {
        case info, notice, warning

        private var rank: Int {
            switch self {
            case .info: 0
            case .notice: 1
            case .warning: 2
            }
        }

        package static func < (one: Level, other: Level) -> Bool { one.rank < other.rank }
    }

    /// What kind of thing happened; the text is the log's and the report's name for it.
    package enum Kind: String, Sendable, Codable {
        case started
        case ledgerCopied = "ledger-copied"
        case lookup
        case connectionOpen = "connection-open"
        case connectionDrained = "connection-drained"
        case connectionClosed = "connection-closed"
        case connectionLost = "connection-lost"
        case goAway = "goaway"
        case errorPacket = "error-packet"
        case growth
        case tokenRenewed = "token-renewed"
        case tokenHeld = "token-held"
        case listSilent = "list-silent"
        case retries
        case pace
        case control
        case stopping
        case eventsLost = "events-lost"
        case ended
    }

    /// Milliseconds since 1970.
    package var milliseconds: UInt64
    package var level: Level
    package var kind: Kind
    /// The connection slot's number in the run, from 1.
    package var connection: Int?
    package var message: String
    /// What the message says, for programs.
    package var fields = Fields()

    /// What an event is about; nil for what it is not about.
    package struct Fields: Sendable, Equatable {
        /// The address that a connection goes to, or the endpoint of the run.
        package var endpoint: String?
        /// Of a response.
        package var status: UInt16?
        /// APNs' word, of a response or a GOAWAY.
        package var reason: String?
        /// How the run ended.
        package var outcome: String?
        /// Why it stops: a `StopRecord`'s kind.
        package var cause: String?
        /// How many of what the event is about: responses of a connection, retries, lost events.
        package var count: UInt64?
        /// Rows so far, over all runs.
        package var counts: RowCounts?

        package init() {}
    }

    package init(
        _ kind: Kind, _ level: Level, connection: Int? = nil, _ message: String,
        milliseconds: UInt64, fields: Fields = Fields()
    ) {
        self.milliseconds = milliseconds
        self.level = level
        self.kind = kind
        self.connection = connection
        self.message = message
        self.fields = fields
    }
}

/// Events on their way out of a reactor, between two looks of the main thread. Bounded: a storm
/// leaves its beginning and a count.
package struct EventBuffer: Sendable {
    package private(set) var events: [RunEvent] = []
    package private(set) var lost: UInt64 = 0

    /// Events that are kept between two looks.
    static let limit = 128

    package init() {}

    mutating func append(_ event: RunEvent) {
        guard events.count < Self.limit else {
            lost += 1
            return
        }
        events.append(event)
    }

    /// Hands over what is there.
    mutating func takeAll() -> EventBuffer {
        defer { self = EventBuffer() }
        return self
    }

    package mutating func add(_ other: EventBuffer) {
        for event in other.events { append(event) }
        lost += other.lost
    }
}
