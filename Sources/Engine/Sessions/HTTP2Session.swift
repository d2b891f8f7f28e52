import BroadsideAPNs
import BroadsideHPACK
import BroadsideHTTP2
import BroadsideSupport

/// HTTP/2 of one connection: its state machine, and a mirror of the server's header table. Requests
/// are encoded by the writer (`RequestWriter+HTTP2`) on streams that are opened here.
struct HTTP2Session: ~Copyable {
    var http: ClientConnectionStateMachine
    /// The mirror of the server's header table, as our encoder has filled it.
    var mirror = DynamicTableMirror()
    private let controlLimit: Int

    init(_ configuration: ClientConnectionStateMachine.Configuration) {
        http = ClientConnectionStateMachine(configuration: configuration)
        controlLimit = configuration.outputLimit
    }

    mutating func start() { http.start() }

    // MARK: State

    var isDraining: Bool { http.isDraining }
    var openCount: Int { http.openStreamCount }
    var requestLimit: Int { http.streamLimit }

    func isFull(within limit: Int) -> Bool {
        http.pendingOutputCount == 0 && http.openStreamCount >= min(http.streamLimit, limit)
    }

    // MARK: Writing

    func room(for writer: borrowing RequestWriter) -> Int { writer.room(on: http) }

    func mayStart(_ writer: borrowing RequestWriter) -> Bool { writer.mayStart(on: http) }

    /// Writes control frames before other frames, because an acknowledgement must precede frames
    /// that depend on it.
    mutating func writeControl(with writer: inout RequestWriter) {
        guard http.pendingOutputCount > 0 else { return }
        // SAFETY: until `finalize`, only this output writes to the free part of the record, and it
        // checks its bounds.
        let room = unsafe writer.freeRecord
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        http.takeOutput(into: &output)
        writer.recordCount += unsafe output.finalize(for: room)
    }

    mutating func writeContinuations(
        of slab: inout RowSlab, with writer: inout RequestWriter, now: UInt64
    ) {
        writer.writeContinuations(of: &slab, on: &http, now: now)
    }

    mutating func prepare(_ writer: inout RequestWriter) -> Int { writer.prepare(for: self) }

    @inline(__always)
    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> WriteOutcome {
        writer.write(tag, of: slab, on: &self)
    }

    func mustSplit(_ writer: borrowing RequestWriter) -> Bool { writer.mustSplit(on: http) }

    mutating func prepareParts(_ writer: inout RequestWriter) { writer.prepareParts(for: self) }

    mutating func writeFirstPart(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> Bool {
        writer.writeFirstPart(tag, of: slab, on: &self)
    }

    mutating func ping(_ opaque: UInt64) -> Bool {
        http.ping(opaque)
        return true
    }

    mutating func shutDown() { http.shutdown() }

    // MARK: Outcomes

    @inline(__always)
    mutating func nextOutcome(in bytes: RawSpan, at offset: inout Int) -> SessionOutcome? {
        while let event = http.nextEvent(in: bytes, at: &offset) {
            switch event {
            case .response(let tag, 200): return .accepted(tag)
            case .response(let tag, ClientConnectionStateMachine.identifiedStatus):
                return .identified(tag)
            case .response(let tag, let status): return .response(tag, status: status)
            case .ready:
                applySettings()
                return .ready(streams: http.streamLimit)
            case .settingsChanged: applySettings()
            case .notProcessed(let tag): return .notProcessed(tag)
            case .reset(let tag, let code): return .lost(tag, .reset(code))
            case .streamError(let tag, let error): return .lost(tag, .violation(error))
            case .goAway(let code, _): return .goAway(code)
            case .pong: return .pong
            case .disownedResponse: return .disownedResponse
            case .failed(let error): return .violation(error)
            }
        }
        return nil
    }

    /// Applies the server's limit on its header table to the mirror.
    private mutating func applySettings() { mirror.limit(capacity: Int(http.headerTableSize)) }

    /// Cancels the oldest request if it got no response in time. Requests that may still be in our
    /// buffer have a separate limit. The time counts from the first part of a request, and from its
    /// last part once that is written. Later requests wait behind the oldest one. RST_STREAM frames
    /// fill at most half of the space for control frames; the other half is for replies to the
    /// server. Further requests expire in a later call.
    mutating func nextExpired(_ times: SessionTimes, of slab: borrowing RowSlab) -> SessionOutcome?
    {
        http.advance(to: times.now)
        guard http.pendingOutputCount < controlLimit / 2, let oldest = http.oldestOpenStream()
        else { return nil }
        let sent = slab[oldest.tag].sentNanoseconds
        if let since = times.waitingSince, sent >= since { return nil }
        guard times.now > sent, times.now - sent > times.requestTimeout else { return nil }
        http.cancelStream(oldest.streamID)
        return oldest.isComplete ? .overdue(oldest.tag) : .starved(oldest.tag)
    }

    mutating func takeInFlight() -> RequestInFlight? {
        guard let oldest = http.oldestOpenStream() else { return nil }
        _ = http.takeOpenStream()
        return RequestInFlight(
            number: oldest.streamID, tag: oldest.tag, isComplete: oldest.isComplete)
    }

    func forEachInFlight(_ body: (RowTag) -> Void) { http.forEachOpenStream(body) }

    // MARK: Last response

    var responseReason: ReasonBody { ReasonBody.parse(http.responseBody) }

    var goAwayReason: ReasonBody { ReasonBody.parse(http.goAwayDebugData) }

    var unknownGoAwayReason: String? {
        let parsed = goAwayReason
        guard parsed.reason == nil, let range = parsed.textRange, !range.isEmpty else { return nil }
        let text = [UInt8](http.goAwayDebugData.extracting(range))
        return printable(
            String(decoding: text, as: UTF8.self), limit: UnknownReasons.textByteCountMax)
    }

    var goAwayText: String? {
        let data = http.goAwayDebugData
        return data.isEmpty ? nil : printable(String(decoding: [UInt8](data), as: UTF8.self))
    }

    func retryAfter(from now: UInt64) -> UInt64? { http.retryAfter.seconds(from: now) }

    func copyResponse(_ range: Range<Int>, into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(range.count, room.count)
        let part = http.responseBody.extracting(range.lowerBound..<(range.lowerBound + count))
        // SAFETY: `extracting` checks the range; the room has at least that many bytes and does not
        // overlap.
        unsafe part.withUnsafeBytes { unsafe room.copyMemory(from: $0) }
        return count
    }

    var occupancy: SessionOccupancy {
        let occupancy = http.occupancy
        return SessionOccupancy(
            controlBytes: occupancy.controlBytes, controlLimit: controlLimit,
            parts: occupancy.parts, partsLimit: occupancy.partsLimit, bodies: occupancy.bodies,
            bodiesLimit: occupancy.bodiesLimit)
    }
}
