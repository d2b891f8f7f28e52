/// Responses: headers, bodies, and the ends of their streams.
extension ClientConnectionStateMachine {
    @inline(__always)
    mutating func receiveResponse(
        _ start: ResponseStart, slot: Int, endsStream: Bool
    ) -> Event? {
        if let error = start.error { return resetStream(slot, error) }
        if streams[slot].status != 0 {
            // Trailers: they end the stream and have no pseudo-header fields (section 8.1).
            guard endsStream, start.status == 0 else {
                return resetStream(slot, .invalidTrailers)
            }
            return finish(slot)
        }
        guard start.status >= 200 else {
            // A final response follows an interim one. 101 has no meaning in HTTP/2 (section 8.6),
            // and a response needs a status.
            guard start.status >= 100 else { return resetStream(slot, .missingStatus) }
            guard start.status != 101 else { return resetStream(slot, .switchingProtocols) }
            guard !endsStream else { return resetStream(slot, .onlyInterim) }
            streams[slot].isBegun = true
            return countIdleFrame()
        }
        streams[slot].status = start.status
        streams[slot].contentLength = start.contentLength
        streams[slot].retryAfter = start.retryAfter
        return endsStream ? finish(slot) : nil
    }

    // MARK: DATA

    @inline(__always)
    mutating func receiveData(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard header.streamID != 0 else {
            return fail(.protocolError, "DATA on stream 0")
        }
        // "The entire DATA frame payload is included in flow control, including the Pad Length and
        // Padding fields" (section 6.1), on any stream (section 6.9).
        receiveWindow.take(payload.byteCount)
        if let increment = receiveWindow.takeIncrement() {
            queueWindowUpdate(streamID: 0, increment: increment)
        }
        var range = 0..<payload.byteCount
        if header.flags.contains(.padded) {
            guard let inner = Self.content(of: header, payload) else {
                return fail(.protocolError, "the padding is longer than the frame")
            }
            range = inner
        }
        switch streams.lookUp(header.streamID) {
        case .open(let slot):
            return receiveBody(
                payload.extracting(range), frameCount: payload.byteCount, slot: slot,
                endsStream: header.flags.contains(.endStream))
        case .idle:
            return fail(.protocolError, "DATA on a stream that was never opened")
        case .closedByServer:
            return fail(.streamClosed, "DATA on a closed stream")
        case .forgotten, .disowned:
            return countIdleFrame()
        }
    }

    @inline(__always)
    private mutating func receiveBody(
        _ body: RawSpan, frameCount: Int, slot: Int, endsStream: Bool
    ) -> Event? {
        guard streams[slot].status != 0 else { return resetStream(slot, .bodyBeforeHeaders) }
        let used = Int(streams[slot].receiveUsed) + frameCount
        let received = Int(streams[slot].receivedCount) + body.byteCount
        let announced = Int(streams[slot].contentLength)
        guard announced < 0 || received <= announced else {
            return resetStream(slot, .wrongLength)
        }
        streams[slot].receivedCount = Int32(clamping: received)
        if endsStream {
            if streams[slot].bodySlot == BodyPool.none {
                keepResponse(body)
                return finish(slot, responseIsKept: true)
            }
            keep(body, slot: slot)
            return finish(slot)
        }
        streams[slot].receiveUsed = Int32(used)
        if used > Int(Self.streamReceiveWindow) / 2 {
            queueWindowUpdate(streamID: streams[slot].id, increment: UInt32(used))
            streams[slot].receiveUsed = 0
        }
        guard body.byteCount > 0 else { return countIdleFrame() }
        keep(body, slot: slot)
        return nil
    }

    /// Keeps the apns-unique-id of a 200 in place of its body, which has no meaning. This is a
    /// separate function, because only the development environment sends an apns-unique-id.
    @inline(never)
    mutating func keepUniqueID(streamID: UInt32) {
        guard let uniqueID, case .open(let slot) = streams.lookUp(streamID),
            streams[slot].status == 0
        else { return }
        assert(streams[slot].bodySlot == BodyPool.none, "headers come before the body")
        streams[slot].bodySlot = bodies.takeSlot()
        // SAFETY: the stream has the slot, which has `keptCount` bytes, more than the text.
        unsafe uniqueID.write(to: bodies.bytes(of: streams[slot].bodySlot))
        streams[slot].bodyCount = UInt16(UniqueID.textCount)
    }

    /// Appends to the kept body of a response that has several frames.
    private mutating func keep(_ body: RawSpan, slot: Int) {
        guard !streams[slot].isIdentified else { return }
        let count = Int(streams[slot].bodyCount)
        assert(count <= BodyPool.keptCount, "a body stays in its place")
        let taken = min(body.byteCount, BodyPool.keptCount - count)
        guard taken > 0 else { return }
        if streams[slot].bodySlot == BodyPool.none {
            streams[slot].bodySlot = bodies.takeSlot()
        }
        // SAFETY: the stream has the slot, which has `keptCount` bytes; `taken`, not 0, is limited
        // to the remaining ones.
        let memory = unsafe bodies.bytes(of: streams[slot].bodySlot)
        unsafe body.withUnsafeBytes { bytes in
            unsafe (memory + count).copyMemory(
                from: bytes.baseAddress.unsafelyUnwrapped, byteCount: taken)
        }
        streams[slot].bodyCount = UInt16(count + taken)
    }

    /// Keeps `body` as the response for the caller to read.
    @inline(__always)
    private mutating func keepResponse(_ body: RawSpan) {
        responseByteCount = min(body.byteCount, BodyPool.keptCount)
        // SAFETY: `responseByteCount` is at most the body's count and the `keptCount` bytes of the
        // first half of `kept`.
        unsafe body.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe kept.copyMemory(from: source, byteCount: responseByteCount)
        }
    }

    // MARK: Ends

    /// Completes the response of a stream.
    @inline(__always)
    private mutating func finish(_ slot: Int, responseIsKept: Bool = false) -> Event? {
        let stream = streams[slot]
        assert(stream.state == .open && stream.status != 0, "a response has a status")
        // "A response is malformed if the value of content-length does not equal the sum of the
        // DATA frame payload lengths" (section 8.1.1), except responses that have no content.
        if stream.contentLength >= 0, stream.contentLength != stream.receivedCount,
            stream.status != 204, stream.status != 304
        {
            return resetStream(slot, .wrongLength)
        }
        if !responseIsKept { responseByteCount = 0 }
        if stream.bodySlot != BodyPool.none {
            responseByteCount = Int(stream.bodyCount)
            // SAFETY: the stream has the slot, of which `bodyCount` bytes are set; both have
            // `keptCount`.
            unsafe kept.copyMemory(
                from: bodies.bytes(of: stream.bodySlot), byteCount: responseByteCount)
        }
        responseRetryAfter = stream.retryAfter
        assert(stream.sentCount <= stream.payloadCount, "no more is sent than the request has")
        if !stream.isComplete {
            // The response came before the request was complete (section 8.1): the rest is not
            // needed.
            queueReset(streamID: stream.id, .cancel)
            close(slot, .closedByUs)
        } else {
            close(slot, .closedByServer)
        }
        flood.progress()
        if stream.status != 403 { isGateOpen = true }
        assert(
            !stream.isIdentified || responseByteCount == UniqueID.textCount,
            "only the bytes of the ID are kept")
        return .response(tag: stream.tag, status: stream.status)
    }

    /// Closes an open stream and frees its kept body.
    @inline(__always)
    mutating func close(_ slot: Int, _ state: Stream.State) {
        assert(streams[slot].state == .open, "a stream is closed once")
        if streams[slot].bodySlot != BodyPool.none {
            bodies.giveBack(streams[slot].bodySlot)
            streams[slot].bodySlot = BodyPool.none
        }
        streams.close(slot: slot, state)
    }

    /// Resets a stream after a stream error (section 5.4.2); the request is in doubt. "Clients MUST
    /// NOT accept a malformed response" (section 8.1.1).
    @inline(never)
    mutating func resetStream(_ slot: Int, _ error: StreamError) -> Event? {
        let tag = streams[slot].tag
        queueReset(streamID: streams[slot].id, error.code)
        close(slot, .closedByUs)
        return .streamError(tag: tag, error)
    }
}
