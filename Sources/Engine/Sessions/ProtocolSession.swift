import BroadsideAPNs
import BroadsideHTTP2
import BroadsideLegacyGateway

/// Protocol of one connection above its record layer: HTTP/2 or the legacy gateway's. Owns the
/// protocol state and the requests in flight. Other types manage the rows, the outgoing bytes and
/// the phases of the connection.
///
///     rows --> prepare, write ---------------------------------.
///     the session itself --> writeControl, writeContinuations -+--> the writer's record --> sent
///
///     received bytes --> nextOutcome ---.
///     elapsed time ----> nextExpired ---+--> outcomes of rows and of the connection
///     connection ends -> takeInFlight --'
///
/// At most one of the two sessions exists, and gets all calls. A slot without a connection has no
/// session.
struct ProtocolSession: ~Copyable {
    /// Configuration of a run's sessions. Only this type decides which protocol is used.
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

    // Not an enum, because the payload of an enum could not be used in place.
    let http2: HeapValue<HTTP2Session>?
    private let gateway: HeapValue<GatewaySession>?

    /// Creates the session of a slot without a connection.
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

    // MARK: State

    /// Whether the server responds to each request. A legacy gateway does not respond to accepted
    /// notifications: a long silence counts as acceptance. Its responses therefore have no latency,
    /// and can't test an address.
    var respondsToEach: Bool { gateway == nil }

    /// Whether no new requests may start, whatever the phase of the connection.
    var isDraining: Bool { http2?.value.isDraining ?? false }

    /// Number of requests in flight.
    var openCount: Int {
        if let count = http2?.value.openCount { return count }
        return gateway?.value.count ?? 0
    }

    /// Number of the next request: its stream ID or identifier.
    var nextRequest: UInt32 {
        http2?.value.http.nextStreamID ?? gateway?.value.nextIdentifier ?? 0
    }

    /// Limit on requests in flight.
    var requestLimit: Int {
        if let limit = http2?.value.requestLimit { return limit }
        return gateway?.value.capacity ?? 0
    }

    /// Whether the connection can be skipped: no output is pending, and no request can start before
    /// bytes are received.
    ///
    /// - Parameter limit: The reactor's limit on requests in flight.
    func isFull(within limit: Int) -> Bool { http2?.value.isFull(within: limit) ?? false }

    // MARK: Writing

    /// Starts the protocol once the record layer is established.
    mutating func start() -> SessionOutcome? {
        http2?.value.start()
        return gateway == nil ? nil : .ready(streams: nil)
    }

    /// Number of requests that the server's limits allow now.
    func room(for writer: borrowing RequestWriter) -> Int {
        if let room = http2?.value.room(for: writer) { return room }
        return gateway?.value.room ?? 0
    }

    /// Whether a request may start now, at least in part.
    func mayStart(_ writer: borrowing RequestWriter) -> Bool {
        if let may = http2?.value.mayStart(writer) { return may }
        return (gateway?.value.room ?? 0) > 0
    }

    /// Writes pending control data of the protocol.
    mutating func writeControl(with writer: inout RequestWriter) {
        http2?.value.writeControl(with: &writer)
    }

    /// Continues payloads that were interrupted because a flow-control window was used up. The
    /// response clock of a request whose last part is written counts from `now`, monotonic
    /// nanoseconds.
    mutating func writeContinuations(
        of slab: inout RowSlab, with writer: inout RequestWriter, now: UInt64
    ) {
        http2?.value.writeContinuations(of: &slab, with: &writer, now: now)
    }

    /// Prepares the writer for requests in the current record.
    ///
    /// - Returns: Limit on requests in the record.
    mutating func prepare(_ writer: inout RequestWriter) -> Int {
        if let most = http2?.value.prepare(&writer) { return most }
        return gateway?.value.prepare(&writer) ?? 0
    }

    /// Writes the request of a row. Requires a session that permits a request, and a prepared
    /// writer with enough free bytes.
    @inline(__always)
    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> WriteOutcome {
        if let outcome = http2?.value.write(tag, of: slab, with: &writer) {
            return outcome
        }
        return gateway?.value.write(tag, of: slab, with: &writer) ?? .recordFull
    }

    /// Whether a request has to be sent in parts because `room` is 0.
    func mustSplit(_ writer: borrowing RequestWriter) -> Bool {
        http2?.value.mustSplit(writer) ?? false
    }

    /// Prepares the writer for one request that is sent in parts.
    mutating func prepareParts(_ writer: inout RequestWriter) {
        http2?.value.prepareParts(&writer)
    }

    /// Writes the first part of a row's request; returns false if the request can't start now.
    mutating func writeFirstPart(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> Bool {
        http2?.value.writeFirstPart(tag, of: slab, with: &writer) ?? false
    }

    /// Sends a liveness probe; returns false if the protocol has none.
    mutating func ping(_ opaque: UInt64) -> Bool { http2?.value.ping(opaque) ?? false }

    /// Ends the session in an orderly way: no new requests start.
    mutating func shutDown() { http2?.value.shutDown() }

    // MARK: Outcomes

    /// Returns the next outcome of received bytes; nil at their end.
    ///
    /// - Parameter firstUnsent: Number of the first request that is still in the buffer.
    @inline(__always)
    mutating func nextOutcome(
        in bytes: RawSpan, at offset: inout Int, firstUnsent: UInt32
    ) -> SessionOutcome? {
        if respondsToEach { return http2?.value.nextOutcome(in: bytes, at: &offset) }
        return gateway?.value.nextOutcome(in: bytes, at: &offset, firstUnsent: firstUnsent)
    }

    /// Returns the next outcome that follows from elapsed time; nil if there is none.
    mutating func nextExpired(_ times: SessionTimes, of slab: borrowing RowSlab) -> SessionOutcome?
    {
        if respondsToEach { return http2?.value.nextExpired(times, of: slab) }
        return gateway?.value.nextExpired(times, of: slab)
    }

    /// Handles a socket that accepts no more bytes; returns whether the server may still send the
    /// reason.
    mutating func handleUnwritable() -> Bool { gateway?.value.handleUnwritable() ?? false }

    /// Removes and returns the oldest request in flight; nil if there is none.
    mutating func takeInFlight() -> RequestInFlight? {
        if respondsToEach { return http2?.value.takeInFlight() }
        return gateway?.value.takeInFlight()
    }

    /// Calls `body` for each row in flight.
    func forEachInFlight(_ body: (RowTag) -> Void) {
        http2?.value.forEachInFlight(body)
        gateway?.value.forEach(body)
    }

    // MARK: Last response

    /// Reason in the body of the last response.
    var responseReason: ReasonBody {
        http2?.value.responseReason ?? ReasonBody.parse(RawSpan())
    }

    /// Reason in the debug data of the last GOAWAY.
    var goAwayReason: ReasonBody {
        http2?.value.goAwayReason ?? ReasonBody.parse(RawSpan())
    }

    /// Reason in the debug data of the last GOAWAY, escaped for display, if this version does not
    /// know it; otherwise nil.
    var unknownGoAwayReason: String? { http2?.value.unknownGoAwayReason }

    /// Beginning of the debug data of the last GOAWAY, escaped for display; nil if there is none.
    var goAwayText: String? { http2?.value.goAwayText }

    /// Seconds until the server accepts another request (Retry-After); nil if the server named no
    /// time.
    ///
    /// - Parameter now: Unix seconds.
    func retryAfter(from now: UInt64) -> UInt64? { http2?.value.retryAfter(from: now) }

    /// Copies part of the last response's body; returns the number of bytes.
    func copyResponse(_ range: Range<Int>, into room: UnsafeMutableRawBufferPointer) -> Int {
        // SAFETY: the caller owns the room; `copyResponse` checks both counts.
        unsafe http2?.value.copyResponse(range, into: room) ?? 0
    }

    var occupancy: SessionOccupancy { http2?.value.occupancy ?? SessionOccupancy() }
}
