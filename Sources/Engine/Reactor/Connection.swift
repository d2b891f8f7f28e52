import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// A connection slot of a reactor, used for one connection after the other.
///
///     idle -> connecting -> handshaking -> open -> draining -> flushing -> closing -> idle
///                 |              |           |         |           |          ^
///                 '--------------'-----------'---------'-----------'----------'
///
/// Requests start only in `open`. After a GOAWAY, or a response that requires another connection,
/// `draining` awaits the responses in flight. `flushing` sends the last bytes. `closing` waits
/// until the driver has no operation on the socket.
@safe struct Connection<Records: RecordLayer & ~Copyable>: ~Copyable {
    enum Phase {
        case idle, connecting, handshaking, open, draining, flushing, closing
    }

    enum Closure {
        case none
        /// It follows the session's last output.
        case due
        /// It is in the buffer. Nothing may be encrypted after it.
        case written
    }

    private(set) var phase = Phase.idle
    /// Index of the connection's address in the reactor's `AddressBook`.
    private(set) var address = 0
    var records: Records?
    var session = ProtocolSession()
    var rateLimiter: RateLimiter
    /// Limit on requests in flight, which falls if responses slow down under load.
    var pace = ConcurrencyLimiter(now: 0)
    /// Earliest time of the next "responses slow down" event, monotonic nanoseconds.
    var nextPaceEventTime: UInt64 = 0
    var limitedBy = Bottleneck.connecting
    /// Whether all streams are in use and nothing has happened since. If so, the connection can be
    /// skipped.
    var isSaturated = false

    var outbox: Outbox
    /// State of the message that closes the record layer. Only a connection that ends in an orderly
    /// way sends it.
    var closure = Closure.none

    /// Start of the current phase, monotonic nanoseconds.
    private(set) var phaseSince: UInt64 = 0
    var liveness = Liveness(now: 0)
    var trust = Trust()
    /// Whether the server's SETTINGS arrived.
    private(set) var isReady = false
    /// Number of the connection in the run.
    private(set) var number: UInt64 = 0
    /// Whether a protocol error of the server was already recorded for the connection.
    private var isBroken = false
    /// The totals over all connections of the slot.
    var tally = ConnectionTally()
    /// Version of the session configuration when the connection began. The session may use a later
    /// version.
    private(set) var sessionVersion: UInt32 = 0

    init(rateLimiter: RateLimiter, outgoingCapacity: Int) {
        self.rateLimiter = rateLimiter
        outbox = Outbox(capacity: outgoingCapacity)
    }

    /// Whether the connection counts towards the number that the reactor keeps open.
    var isActive: Bool {
        switch phase {
        case .connecting, .handshaking, .open: true
        case .idle, .draining, .flushing, .closing: false
        }
    }

    /// Whether received bytes are processed.
    var isListening: Bool {
        switch phase {
        case .handshaking, .open, .draining, .flushing: true
        case .idle, .connecting, .closing: false
        }
    }

    /// Prepares the slot for a new connection.
    mutating func begin(
        address: Int, number: UInt64, refusals: RefusalBackoff, sessionVersion: UInt32,
        configuration: ProtocolSession.Configuration, now: UInt64
    ) {
        precondition(phase == .idle)
        phase = .connecting
        phaseSince = now
        self.address = address
        self.number = number
        self.sessionVersion = sessionVersion
        trust = Trust(refusals: refusals)
        isBroken = false
        records = nil
        session = ProtocolSession(configuration)
        limitedBy = .connecting
        outbox.begin()
        closure = .none
        liveness = Liveness(now: now)
        isReady = false
    }

    /// Number of requests in flight.
    var openCount: Int { session.openCount }

    /// Records that the server's SETTINGS have arrived, so that requests may be sent.
    ///
    /// - Parameter mustProve: Whether the connection's address is in `LossyAddresses`.
    mutating func becomeReady(mustProve: Bool, now: UInt64) {
        assert(isListening && !isReady, "a connection becomes ready once, while it is heard")
        isReady = true
        pace = ConcurrencyLimiter(now: now)
        trust.requireProof(mustProve)
    }

    /// Records a protocol error of the server.
    ///
    /// - Returns: False if one was already recorded.
    mutating func recordProtocolError() -> Bool {
        defer { isBroken = true }
        return !isBroken
    }

    /// Number of responses on the connection.
    var responses: UInt64 { trust.responses + trust.rowErrors }

    /// Whether the connection has had no response yet, or only server errors that may concern only
    /// their rows.
    @inline(__always)
    var isUnproven: Bool { trust.responses == 0 }

    /// Whether the last response was the first one after which `isUnproven` is false.
    @inline(__always)
    var isJustProven: Bool { trust.responses == 1 }

    /// Records the response to a request that was sent at `sent`.
    mutating func recordResponse(_ now: Now, sent: UInt64) {
        tally.recordResponse(latencyNanoseconds: now.nanoseconds - sent)
        trust.recordResponse(now: now.nanoseconds)
    }

    /// Frees the slot.
    mutating func end() {
        precondition(phase == .closing)
        phase = .idle
        outbox.end()
        records = nil
        session = ProtocolSession()
    }

    mutating func enter(_ phase: Phase, now: UInt64) {
        assert(now >= phaseSince, "time does not go back")
        assert(phase != .idle, "a slot becomes free by its end")
        self.phase = phase
        phaseSince = now
        isSaturated = false
    }

    /// Description of a violated invariant; nil if there is none.
    var brokenInvariant: String? {
        if phase == .idle, openCount > 0 || outbox.isSending { return "a free slot is in use" }
        if phase == .closing, openCount > 0 { return "\(openCount) requests on a closed socket" }
        return outbox.brokenInvariant
    }
}
