import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// One connection slot of a reactor. A slot is used for many connections, one after the other.
///
///     idle -> connecting -> handshaking -> open -> draining -> flushing -> closing -> idle
///                 |              |           |         |           |          ^
///                 '--------------'-----------'---------'-----------'----------'
///
/// Requests start while `open` alone. `draining` waits for the responses of streams in flight after a
/// GOAWAY or a response that asks for another connection; `flushing` gets last bytes out; `closing`
/// waits for the driver to say that nothing of the socket is under way any more.
@safe struct Connection<Records: RecordLayer & ~Copyable>: ~Copyable {
    enum Phase {
        case idle, connecting, handshaking, open, draining, flushing, closing
    }

    private(set) var phase = Phase.idle
    /// The address that this connection goes to, an index into the reactor's list.
    private(set) var address = 0
    var records: Records?
    var session = ProtocolSession()
    var rateLimiter: RateLimiter
    /// How many requests may be in flight, if responses slow down under load.
    var pace = ConcurrencyLimiter(now: 0)
    /// When it may be told again that they do, monotonic nanoseconds.
    var nextPaceEventTime: UInt64 = 0
    var limitedBy = LimitedBy.connecting
    /// All streams are in use and nothing has happened since: there is nothing to look at.
    var isSaturated = false

    var outbox: Outbox

    /// Monotonic nanoseconds.
    private(set) var phaseSince: UInt64 = 0
    var liveness = Liveness(now: 0)
    var trust = Trust()
    /// True once the server's SETTINGS arrived.
    private(set) var isReady = false
    /// Which of the run's connections it is.
    private(set) var number: UInt64 = 0
    /// It was counted as ended by the server's protocol error.
    private var isBroken = false
    /// Over all connections that used the slot.
    var tally = ConnectionTally()
    /// Which state of the credential it was made from, at the latest.
    private(set) var sessionVersion: UInt32 = 0

    init(rateLimiter: RateLimiter, outgoingCapacity: Int) {
        self.rateLimiter = rateLimiter
        outbox = Outbox(capacity: outgoingCapacity)
    }

    /// True while the connection counts towards the number that the reactor keeps up.
    var isActive: Bool {
        switch phase {
        case .connecting, .handshaking, .open: true
        case .idle, .draining, .flushing, .closing: false
        }
    }

    /// True while received bytes mean something.
    var isListening: Bool {
        switch phase {
        case .handshaking, .open, .draining, .flushing: true
        case .idle, .connecting, .closing: false
        }
    }

    /// Makes the slot ready for a new connection.
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
        outbox.begin(now: now)
        liveness = Liveness(now: now)
        isReady = false
    }

    /// Requests whose responses are awaited.
    var openCount: Int { session.openCount }

    /// The server's SETTINGS are here.
    ///
    /// - Parameter mustProve: Whether its address loses rows.
    mutating func becomeReady(mustProve: Bool, now: UInt64) {
        isReady = true
        pace = ConcurrencyLimiter(now: now)
        trust.requireProof(mustProve)
    }

    /// The server broke the protocol.
    ///
    /// - Returns: False where that is known of it.
    mutating func recordProtocolError() -> Bool {
        defer { isBroken = true }
        return !isBroken
    }

    /// Responses on it.
    @inline(__always)
    var responses: UInt64 { trust.responses }

    /// The response came to a request that went out at `sent`.
    mutating func recordResponse(_ now: Now, sent: UInt64) {
        tally.recordResponse(latencyNanoseconds: now.nanoseconds - sent)
        trust.recordResponse(now: now.nanoseconds)
    }

    /// Makes the slot free again.
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

    /// What does not hold although it always has to; nil if all is well.
    var brokenInvariant: String? {
        if phase == .idle, openCount > 0 || outbox.isSending { return "a free slot is in use" }
        if phase == .closing, openCount > 0 { return "\(openCount) requests on a closed socket" }
        return outbox.brokenInvariant
    }
}
