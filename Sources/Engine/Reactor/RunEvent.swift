package import BroadsideLedgerFormat

/// An event for the log. No event is about a single notification.
package struct RunEvent: Sendable, Equatable {
    /// Importance of an event.
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

    /// Type of event; the raw value is its name in the log and the report.
    package enum Kind: String, Sendable, Codable {
        case started
        case wave
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
        case topicStopped = "topic-stopped"
        case requestsLost = "requests-lost"
        case listSilent = "list-silent"
        case listHeader = "list-header"
        case listDamage = "list-damage"
        case retries
        case pace
        case control
        case stopping
        case eventsLost = "events-lost"
        case ended
    }

    /// Time of the event, milliseconds since 1970.
    package var milliseconds: UInt64
    package var level: Level
    package var kind: Kind
    /// Number of the connection slot in the run, from 1.
    package var connection: Int?
    package var message: String
    /// The values that the message contains, for programs.
    package var fields = Fields()

    /// The values of an event; nil for values that the event does not have.
    package struct Fields: Sendable, Equatable {
        /// Address of a connection, or endpoint of the run.
        package var endpoint: String?
        /// Status of a response.
        package var status: UInt16?
        /// APNs' reason, from a response or a GOAWAY.
        package var reason: String?
        /// Outcome of the run.
        package var outcome: String?
        /// Cause of the stop: the kind of a `StopRecord`.
        package var cause: String?
        /// Number that belongs to the event: responses of a connection, retries, or lost events.
        package var count: UInt64?
        /// Rows by state so far, over all runs.
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

/// Events that a reactor passes to the main thread. The buffer is bounded. If there are too many
/// events, it keeps the first ones and counts the rest. An event that is not about a connection
/// replaces the latest event on a connection.
package struct EventBuffer: Sendable {
    package private(set) var events: [RunEvent] = []
    package private(set) var lost: UInt64 = 0

    /// Limit on events between two calls of `takeAll`.
    static let limit = 128

    package init() {}

    mutating func append(_ event: RunEvent) {
        guard events.count < Self.limit else {
            lost += 1
            let replaced = events.lastIndex { $0.connection != nil }
            guard event.connection == nil, let replaced else { return }
            events.remove(at: replaced)
            events.append(event)
            return
        }
        events.append(event)
    }

    /// Removes and returns all events.
    mutating func takeAll() -> EventBuffer {
        defer { self = EventBuffer() }
        return self
    }

    package mutating func add(_ other: EventBuffer) {
        for event in other.events { append(event) }
        lost += other.lost
    }
}
