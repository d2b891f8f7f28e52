import BroadsideAPNs
import BroadsideHTTP2
import BroadsideLegacyGateway

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
struct ProtocolSession: ~Copyable {
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
                        gateUntilFirstResponse: settings.usesProviderToken))
            }
        }
    }

    // In place of an enum of the two: its payload could not be used where it lies.
    private let http2: HeapValue<HTTP2Session>?
    private let gateway: HeapValue<GatewaySession>?

    /// Of a slot without a connection.
    init() {
        http2 = nil
        gateway = nil
    }

    init(_ configuration: Configuration) {
        switch configuration {
        case .http2(let configuration):
            http2 = HeapValue(HTTP2Session(configuration))
            gateway = nil
        case .gateway(let settings, let capacity):
            http2 = nil
            gateway = HeapValue(GatewaySession(settings, capacity: capacity))
        }
    }

    deinit {
        http2?.destroy()
        gateway?.destroy()
    }

    // MARK: What it is like

    /// Whether each request gets a response of its own. A legacy gateway is silent about what it took,
    /// so that the end of its silence is waited for, and no response can be timed or tried for.
    var respondsToEach: Bool { gateway == nil }

    /// No new requests may start, whatever the connection's phase.
    var isDraining: Bool { http2?.value.isDraining ?? false }

    /// Requests that are in flight.
    var openCount: Int {
        if let count = http2?.value.openCount { return count }
        return gateway?.value.count ?? 0
    }

    /// Requests that may be in flight.
    var requestLimit: Int {
        if let limit = http2?.value.requestLimit { return limit }
        return gateway?.value.capacity ?? 0
    }

    /// Nothing waits in it and no request can start before bytes are received: there is nothing to look
    /// at until then.
    ///
    /// - Parameter limit: Requests that the reactor lets be in flight at most.
    func isFull(within limit: Int) -> Bool { http2?.value.isFull(within: limit) ?? false }

    // MARK: Writing

    /// The record layer is established.
    mutating func start() -> SessionOutcome? {
        http2?.value.start()
        return gateway == nil ? nil : .ready(streams: nil)
    }

    /// How many requests may start now, so far as the server goes.
    func room(for writer: borrowing RequestWriter) -> Int {
        if let room = http2?.value.room(for: writer) { return room }
        return gateway?.value.room ?? 0
    }

    /// Whether a request may start now, in parts at least.
    func mayStart(_ writer: borrowing RequestWriter) -> Bool {
        if let may = http2?.value.mayStart(writer) { return may }
        return (gateway?.value.room ?? 0) > 0
    }

    /// Writes what the session itself has to say.
    mutating func writeControl(with writer: inout RequestWriter) {
        http2?.value.writeControl(with: &writer)
    }

    /// Continues payloads that a window had cut.
    mutating func writeContinuations(of slab: borrowing RowSlab, with writer: inout RequestWriter) {
        http2?.value.writeContinuations(of: slab, with: &writer)
    }

    /// Gets the writer ready for requests in the record that is being filled.
    ///
    /// - Returns: How many it may hold at most.
    mutating func prepare(_ writer: inout RequestWriter) -> Int {
        if let most = http2?.value.prepare(&writer) { return most }
        return gateway?.value.prepare(&writer) ?? 0
    }

    /// Writes the request of a row. The session has room, the writer is prepared and has room.
    @inline(__always)
    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> WriteOutcome {
        if let outcome = http2?.value.write(tag, of: slab, with: &writer) {
            return outcome
        }
        return gateway?.value.write(tag, of: slab, with: &writer) ?? .recordFull
    }

    /// Whether a request has to go in parts although `room` has none.
    func mustSplit(_ writer: borrowing RequestWriter) -> Bool {
        http2?.value.mustSplit(writer) ?? false
    }

    /// Gets the writer ready for one request in parts.
    mutating func prepareParts(_ writer: inout RequestWriter) {
        http2?.value.prepareParts(&writer)
    }

    /// Writes the first part of a row's request; false if it may not start.
    mutating func writeFirstPart(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> Bool {
        http2?.value.writeFirstPart(tag, of: slab, with: &writer) ?? false
    }

    /// Asks the server whether it lives; false if the protocol has no such question.
    mutating func ping(_ opaque: UInt64) -> Bool { http2?.value.ping(opaque) ?? false }

    /// Says goodbye: no new requests start.
    mutating func shutDown() { http2?.value.shutDown() }

    // MARK: Outcomes

    /// What received bytes mean, one thing after the other; nil at their end.
    ///
    /// - Parameter handedOver: Rows written later have not left our buffer.
    @inline(__always)
    mutating func nextOutcome(
        in bytes: RawSpan, at offset: inout Int, of slab: borrowing RowSlab, handedOver: UInt64
    ) -> SessionOutcome? {
        if respondsToEach { return http2?.value.nextOutcome(in: bytes, at: &offset) }
        return gateway?.value.nextOutcome(
            in: bytes, at: &offset, of: slab, handedOver: handedOver)
    }

    /// What time has settled, one thing after the other.
    mutating func nextExpired(_ times: SessionTimes, of slab: borrowing RowSlab) -> SessionOutcome?
    {
        if respondsToEach { return http2?.value.nextExpired(times, of: slab) }
        return gateway?.value.nextExpired(times, of: slab)
    }

    /// The socket takes nothing any more; whether the server may still say why.
    mutating func handleUnwritable() -> Bool { gateway?.value.handleUnwritable() ?? false }

    /// Forgets the request that is in flight for the longest; nil if none is left.
    mutating func takeInFlight() -> RowTag? {
        if respondsToEach { return http2?.value.takeInFlight() }
        return gateway?.value.popOldest()
    }

    /// Calls `body` with each row that is in flight.
    func forEachInFlight(_ body: (RowTag) -> Void) {
        http2?.value.forEachInFlight(body)
        gateway?.value.forEach(body)
    }

    // MARK: Of the last response

    /// What its body says.
    var responseReason: ReasonBody {
        http2?.value.responseReason ?? ReasonBody.parse(RawSpan())
    }

    /// What the debug data of the last GOAWAY says.
    var goAwayReason: ReasonBody {
        http2?.value.goAwayReason ?? ReasonBody.parse(RawSpan())
    }

    /// Seconds after which the server wants to be asked again.
    ///
    /// - Parameter now: Unix seconds.
    func retryAfter(from now: UInt64) -> UInt64? { http2?.value.retryAfter(from: now) }

    /// Copies a part of its body; returns how much.
    func copyResponse(_ range: Range<Int>, into room: UnsafeMutableRawBufferPointer) -> Int {
        // SAFETY: the room is the caller's; `copyResponse` checks both counts.
        unsafe http2?.value.copyResponse(range, into: room) ?? 0
    }

    var occupancy: SessionOccupancy { http2?.value.occupancy ?? SessionOccupancy() }
}
