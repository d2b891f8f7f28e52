import APNs
import HTTP2

/// What one connection speaks above its record layer: HTTP/2, or the legacy gateway's protocol. Owns
/// all of the protocol's state and what is in flight on the connection; rows themselves, the bytes on
/// their way and the connection's life are others'.
///
///                 prepare, write             writeControl, writeContinuations
///     rows ------------------------.         .-------------------------------- the session itself
///                                  v         v
///                               the writer's record ----> sealed, sent
///
///     received ----> nextOutcome ----.
///     time --------> nextExpired ----+----> what became of rows, and of the connection
///     end ---------> takeInFlight ---'
///
/// At most one of the two is there: none is in a slot without a connection. Each question goes to the
/// one that is.
@safe struct ProtocolSession: ~Copyable {
    /// What sessions of a run are made with: which protocol it is is decided here, once.
    enum Configuration {
        case http2(ClientConnectionStateMachine.Configuration)
        case gateway(BinarySettings, capacity: Int)

        init(_ settings: ReactorSettings) {
            if let binary = settings.binary {
                self = .gateway(binary, capacity: settings.streamsPerConnection)
            } else {
                self = .http2(
                    ClientConnectionStateMachine.Configuration(
                        maxStreams: settings.streamsPerConnection,
                        gateUntilFirstAnswer: settings.usesProviderToken))
            }
        }
    }

    // SAFETY: each points to memory of its own, initialized from `init` to `deinit`, and is reached only
    // through here. In place of an enum of the two: its payload could not be used where it lies.
    private let http2: UnsafeMutablePointer<HTTP2Session>?
    private let gateway: UnsafeMutablePointer<GatewaySession>?

    /// Of a slot without a connection.
    init() {
        unsafe http2 = nil
        unsafe gateway = nil
    }

    init(_ configuration: Configuration) {
        switch configuration {
        case .http2(let configuration):
            let session = UnsafeMutablePointer<HTTP2Session>.allocate(capacity: 1)
            unsafe session.initialize(to: HTTP2Session(configuration))
            unsafe http2 = session
            unsafe gateway = nil
        case .gateway(let settings, let capacity):
            let session = UnsafeMutablePointer<GatewaySession>.allocate(capacity: 1)
            unsafe session.initialize(to: GatewaySession(settings, capacity: capacity))
            unsafe http2 = nil
            unsafe gateway = session
        }
    }

    deinit {
        // `deinitialize(count:)` ends nothing that cannot be copied once it is optimized (Swift 6.3).
        if let http2 = unsafe http2 {
            _ = unsafe http2.move()
            unsafe http2.deallocate()
        }
        if let gateway = unsafe gateway {
            _ = unsafe gateway.move()
            unsafe gateway.deallocate()
        }
    }

    // MARK: What it is like

    /// Whether each request gets a response of its own. A legacy gateway is silent about what it took,
    /// so that the end of its silence is waited for, and no response can be timed or tried for.
    var respondsToEach: Bool { unsafe gateway == nil }

    /// No new requests may start, whatever the connection's phase.
    var isDraining: Bool { unsafe http2?.pointee.isDraining ?? false }

    /// Requests that are in flight.
    var openCount: Int {
        if let count = unsafe http2?.pointee.openCount { return count }
        return unsafe gateway?.pointee.count ?? 0
    }

    /// Requests that may be in flight.
    var requestLimit: Int {
        if let limit = unsafe http2?.pointee.requestLimit { return limit }
        return unsafe gateway?.pointee.capacity ?? 0
    }

    /// Nothing waits in it and no request can start before bytes are received: there is nothing to look
    /// at until then.
    ///
    /// - Parameter limit: Requests that the reactor lets be in flight at most.
    func isFull(within limit: Int) -> Bool { unsafe http2?.pointee.isFull(within: limit) ?? false }

    // MARK: Writing

    /// The record layer is established.
    mutating func start() -> SessionOutcome? {
        unsafe http2?.pointee.start()
        return unsafe gateway == nil ? nil : .ready(streams: nil)
    }

    /// How many requests may start now, so far as the server goes.
    func room(for writer: borrowing RequestWriter) -> Int {
        if let room = unsafe http2?.pointee.room(for: writer) { return room }
        return unsafe gateway?.pointee.room ?? 0
    }

    /// Whether a request may start now, in parts at least.
    func mayStart(_ writer: borrowing RequestWriter) -> Bool {
        if let may = unsafe http2?.pointee.mayStart(writer) { return may }
        return unsafe (gateway?.pointee.room ?? 0) > 0
    }

    /// Writes what the session itself has to say.
    mutating func writeControl(with writer: inout RequestWriter) {
        unsafe http2?.pointee.writeControl(with: &writer)
    }

    /// Continues payloads that a window had cut.
    mutating func writeContinuations(of slab: borrowing RowSlab, with writer: inout RequestWriter) {
        unsafe http2?.pointee.writeContinuations(of: slab, with: &writer)
    }

    /// Gets the writer ready for requests in the record that is being filled.
    ///
    /// - Returns: How many it may hold at most.
    mutating func prepare(_ writer: inout RequestWriter) -> Int {
        if let most = unsafe http2?.pointee.prepare(&writer) { return most }
        return unsafe gateway?.pointee.prepare(&writer) ?? 0
    }

    /// Writes the request of a row. The session has room, the writer is prepared and has room.
    @inline(__always)
    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> WriteOutcome {
        if let outcome = unsafe http2?.pointee.write(tag, of: slab, with: &writer) {
            return outcome
        }
        return unsafe gateway?.pointee.write(tag, of: slab, with: &writer) ?? .recordFull
    }

    /// Whether a request has to go in parts although `room` has none.
    func mustSplit(_ writer: borrowing RequestWriter) -> Bool {
        unsafe http2?.pointee.mustSplit(writer) ?? false
    }

    /// Gets the writer ready for one request in parts.
    mutating func prepareParts(_ writer: inout RequestWriter) {
        unsafe http2?.pointee.prepareParts(&writer)
    }

    /// Writes the first part of a row's request; false if it may not start.
    mutating func writeFirstPart(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> Bool {
        unsafe http2?.pointee.writeFirstPart(tag, of: slab, with: &writer) ?? false
    }

    /// Asks the server whether it lives; false if the protocol has no such question.
    mutating func ping(_ opaque: UInt64) -> Bool { unsafe http2?.pointee.ping(opaque) ?? false }

    /// Says goodbye: no new requests start.
    mutating func shutDown() { unsafe http2?.pointee.shutDown() }

    // MARK: Outcomes

    /// What received bytes mean, one thing after the other; nil at their end.
    ///
    /// - Parameter handedOver: Rows written later have not left our buffer.
    @inline(__always)
    mutating func nextOutcome(
        in bytes: RawSpan, at offset: inout Int, of slab: borrowing RowSlab, handedOver: UInt64
    ) -> SessionOutcome? {
        if respondsToEach { return unsafe http2?.pointee.nextOutcome(in: bytes, at: &offset) }
        return unsafe gateway?.pointee.nextOutcome(
            in: bytes, at: &offset, of: slab, handedOver: handedOver)
    }

    /// What time has settled, one thing after the other.
    mutating func nextExpired(_ times: SessionTimes, of slab: borrowing RowSlab) -> SessionOutcome?
    {
        if respondsToEach { return unsafe http2?.pointee.nextExpired(times, of: slab) }
        return unsafe gateway?.pointee.nextExpired(times, of: slab)
    }

    /// The socket takes nothing any more; whether the server may still say why.
    mutating func noteUnwritable() -> Bool { unsafe gateway?.pointee.noteUnwritable() ?? false }

    /// Forgets the request that is in flight for the longest; nil if none is left.
    mutating func takeInFlight() -> RowTag? {
        if respondsToEach { return unsafe http2?.pointee.takeInFlight() }
        return unsafe gateway?.pointee.popOldest()
    }

    /// Calls `body` with each row that is in flight.
    func forEachInFlight(_ body: (RowTag) -> Void) {
        unsafe http2?.pointee.forEachInFlight(body)
        unsafe gateway?.pointee.forEach(body)
    }

    // MARK: Of the last response

    /// What its body says.
    var responseReason: ReasonBody {
        unsafe http2?.pointee.responseReason ?? ReasonBody.parse(RawSpan())
    }

    /// What the debug data of the last GOAWAY says.
    var goAwayReason: ReasonBody {
        unsafe http2?.pointee.goAwayReason ?? ReasonBody.parse(RawSpan())
    }

    /// Seconds after which the server wants to be asked again.
    ///
    /// - Parameter now: Unix seconds.
    func retryAfter(from now: UInt64) -> UInt64? { unsafe http2?.pointee.retryAfter(from: now) }

    /// Copies a part of its body; returns how much.
    func copyResponse(_ range: Range<Int>, into room: UnsafeMutableRawBufferPointer) -> Int {
        unsafe http2?.pointee.copyResponse(range, into: room) ?? 0
    }

    var measures: SessionMeasures { unsafe http2?.pointee.measures ?? SessionMeasures() }
}
