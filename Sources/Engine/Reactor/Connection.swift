import Campaign
import Ring
import Support

/// One connection slot of a reactor. A slot is used for many connections, one after the other.
///
///     idle -> connecting -> handshaking -> open -> draining -> flushing -> closing -> idle
///                 |              |           |         |           |          ^
///                 '--------------'-----------'---------'-----------'----------'
///
/// Requests start while `open` alone. `draining` waits for the answers of streams in flight after a
/// GOAWAY or an answer that asks for another connection; `flushing` gets last bytes out; `closing`
/// waits for the driver to say that nothing of the socket is under way any more.
@safe struct Connection<Records: RecordLayer & ~Copyable>: ~Copyable {
    enum Phase {
        case idle, connecting, handshaking, open, draining, flushing, closing
    }

    var phase = Phase.idle
    /// The address that this connection goes to, an index into the reactor's list.
    var address = 0
    var records: Records?
    var session = ProtocolSession()
    var rateLimiter: RateLimiter
    /// How many requests may be in flight, where answers slow down under load.
    var pace = ConcurrencyLimiter(now: 0)
    /// When it may be told again that they do, monotonic nanoseconds.
    var nextPaceWord: UInt64 = 0
    var limitedBy = LimitedBy.connecting
    /// All streams are in use and nothing has happened since: there is nothing to look at.
    var isSaturated = false

    /// Sealed bytes: `[sentCount, sealedCount)` is to go out, `isSending` says that the driver has
    /// a part of it. Bytes are added behind, never moved while the driver looks at them.
    // SAFETY: `outgoingCapacity` bytes, freed with the slot, after the driver's ring has ended; the
    // first `sealedCount` are set, and `sentCount <= sealedCount <= outgoingCapacity`. What is
    // set does not change while `isSending`.
    let outgoing: UnsafeMutableRawPointer
    let outgoingCapacity: Int
    var sealedCount = 0
    var sentCount = 0
    var isSending = false
    /// Since when the buffer is not empty, monotonic nanoseconds; nil while it is.
    var waitingSince: UInt64?
    /// When the driver was given bytes last, or had sent all of them, monotonic nanoseconds: of a
    /// request that was written later no byte has left the buffer.
    var handedOver: UInt64 = 0

    /// Monotonic nanoseconds.
    var phaseSince: UInt64 = 0
    var lastReceived: UInt64 = 0
    var pingSent: UInt64?
    /// Since when nothing is in flight and there is no room for a request; nil while there is.
    var starvedSince: UInt64?
    var answers: UInt64 = 0
    /// Requests that were reset or not answered in time, one after the other.
    var lossesInARow = 0
    /// When an answer came last, monotonic nanoseconds; 0 before the first.
    var lastAnswered: UInt64 = 0
    /// True once the server's SETTINGS arrived.
    var isReady = false
    /// How long it is left alone, as its requests are refused.
    var refusals = RefusalBackoff()
    /// The responses that it had when one was refused last.
    var answersAtRefusal: UInt64 = 0
    /// Its address loses rows: it has as many requests in flight as its responses are worth.
    var mustProve = false
    /// Which of the run's connections it is.
    var number: UInt64 = 0
    /// It was counted as ended by the server's protocol error.
    var isBroken = false
    /// Over all connections that used the slot.
    var tally = ConnectionTally()
    /// Which state of the credential it was made from, at the latest.
    var sessionVersion: UInt32 = 0

    init(rateLimiter: RateLimiter, outgoingCapacity: Int) {
        self.rateLimiter = rateLimiter
        self.outgoingCapacity = outgoingCapacity
        // SAFETY: `sealedCount` says that nothing of it is set.
        unsafe outgoing = .allocate(byteCount: outgoingCapacity, alignment: 64)
    }

    // SAFETY: allocated in `init`; slots end with their machine, which outlives the driver.
    deinit {
        unsafe outgoing.deallocate()
    }

    /// Bytes that may still be sealed behind those that wait.
    var outgoingRoom: Int { outgoingCapacity - sealedCount }

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
        address: Int, number: UInt64, refusals: RefusalBackoff,
        configuration: ProtocolSession.Configuration, now: UInt64
    ) {
        precondition(phase == .idle && !isSending)
        phase = .connecting
        phaseSince = now
        self.address = address
        self.number = number
        self.refusals = refusals
        answersAtRefusal = 0
        isBroken = false
        mustProve = false
        records = nil
        session = ProtocolSession(configuration)
        limitedBy = .connecting
        clearOutgoing()
        handedOver = now
        lastReceived = now
        pingSent = nil
        starvedSince = nil
        answers = 0
        lossesInARow = 0
        lastAnswered = 0
        isReady = false
    }

    /// Nothing waits to go out any more.
    mutating func clearOutgoing() {
        sealedCount = 0
        sentCount = 0
        waitingSince = nil
    }

    /// Requests whose answers are awaited.
    var openCount: Int { session.openCount }

    /// A request was answered that went out at `sent`.
    mutating func noteAnswer(_ now: Now, sent: UInt64) {
        tally.noteAnswer(latencyNanoseconds: now.nanoseconds - sent)
        noteAnswer(now)
    }

    /// A request was answered, nobody knows how fast.
    mutating func noteAnswer(_ now: Now) {
        answers += 1
        lossesInARow = 0
        lastAnswered = now.nanoseconds
    }

    /// Makes the slot free again.
    mutating func end() {
        phase = .idle
        isSending = false
        records = nil
        session = ProtocolSession()
    }

    mutating func enter(_ phase: Phase, now: UInt64) {
        self.phase = phase
        phaseSince = now
        isSaturated = false
    }

    /// What does not hold although it always has to; nil if all is well.
    var brokenInvariant: String? {
        guard sentCount >= 0, sentCount <= sealedCount, sealedCount <= outgoingCapacity else {
            return "\(sentCount) of \(sealedCount) bytes sent, room for \(outgoingCapacity)"
        }
        if phase == .idle, openCount > 0 || isSending { return "a free slot is in use" }
        if phase == .closing, openCount > 0 { return "\(openCount) requests on a closed socket" }
        if waitingSince != nil, sealedCount == 0 { return "nothing waits, since \(waitingSince!)" }
        return nil
    }
}
