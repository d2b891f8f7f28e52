internal import BroadsideHPACK

/// Processing of frames from the server.
extension ClientConnectionStateMachine {
    /// Returns the next event in `bytes` from `offset` on, and advances `offset`; nil once
    /// all of `bytes` is consumed. Must be called repeatedly until then.
    public mutating func nextEvent(in bytes: RawSpan, at offset: inout Int) -> Event? {
        if slotsToCheck > 0, let event = nextUnprocessedStream() { return event }
        while phase != .failed {
            if output.isOverrun {
                return fail(.enhanceYourCalm, "the server requests replies but does not read them")
            }
            let event: Event?
            switch reader.next(in: bytes, at: &offset) {
            case .inInput(let header, let payloadOffset):
                let payload = bytes.extracting(payloadOffset..<payloadOffset + header.length)
                event = receive(header, payload)
            case .inCarry(let header):
                // SAFETY: the reader has set `length` bytes and keeps them until its next call,
                // which nothing in `receive` makes.
                let payload = unsafe RawSpan(
                    _unsafeStart: reader.carriedPayload, byteCount: header.length)
                event = receive(header, payload)
            case .nothing:
                assert(offset == bytes.byteCount, "the rest of a frame is kept")
                return nil
            case .tooLarge(let header) where phase == .awaitingSettings && header.isHTTP1:
                event = fail(.protocolError, "it speaks HTTP/1.1")
            case .tooLarge:
                // "An endpoint MUST send an error code of FRAME_SIZE_ERROR if a frame exceeds the
                // size defined in SETTINGS_MAX_FRAME_SIZE" (section 4.2).
                event = fail(.frameSizeError, "a frame is larger than 16,384 bytes")
            }
            if let event { return event }
        }
        offset = bytes.byteCount
        return nil
    }

    /// Processes one complete frame.
    @inline(__always)
    private mutating func receive(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        if phase == .running, fragments.streamID == 0 {
            if header.type == .headers { return receiveHeaders(header, payload) }
            if header.type == .data { return receiveData(header, payload) }
        }
        return receiveOther(header, payload)
    }

    private mutating func receiveOther(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        if fragments.streamID != 0 { return receiveContinuation(header, payload) }
        if phase == .awaitingSettings {
            // "The server connection preface consists of a potentially empty SETTINGS frame that
            // MUST be the first frame the server sends" (section 3.4).
            guard header.type == .settings, !header.flags.contains(.acknowledgement) else {
                return fail(.protocolError, "the first frame is not SETTINGS")
            }
        }
        switch header.type {
        case .settings: return receiveSettings(header, payload)
        case .ping: return receivePing(header, payload)
        case .windowUpdate: return receiveWindowUpdate(header, payload)
        case .resetStream: return receiveReset(header, payload)
        case .goAway: return receiveGoAway(header, payload)
        case .priority: return receivePriority(header)
        case .pushPromise:
            return fail(.protocolError, "PUSH_PROMISE although push is off")
        case .continuation:
            return fail(.protocolError, "CONTINUATION without a header block")
        default:
            // "Implementations MUST ignore and discard frames of unknown types" (section 5.5).
            return countIdleFrame()
        }
    }

    // MARK: HEADERS

    @inline(__always)
    private mutating func receiveHeaders(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard header.streamID != 0 else {
            return fail(.protocolError, "HEADERS on stream 0")
        }
        var range = 0..<payload.byteCount
        if !header.flags.isDisjoint(with: [.padded, .priority]) {
            guard let inner = Self.content(of: header, payload) else {
                return fail(.protocolError, "the padding is longer than the frame")
            }
            range = inner
        }
        let block = payload.extracting(range)
        let endsStream = header.flags.contains(.endStream)
        guard header.flags.contains(.endHeaders) else {
            fragments.begin(streamID: header.streamID, endsStream: endsStream)
            return collect(block)
        }
        return receiveBlock(block, streamID: header.streamID, endsStream: endsStream)
    }

    /// Range of the content in a padded frame; nil if the padding is too long. HEADERS may have
    /// five bytes of priority, which are ignored (sections 6.1, 6.2 and 5.3.2).
    static func content(of header: FrameHeader, _ payload: RawSpan) -> Range<Int>? {
        var start = 0
        var end = payload.byteCount
        if header.flags.contains(.padded) {
            guard end >= 1 else { return nil }
            start = 1
            end -= Int(payload.byte(at: 0))
        }
        if header.type == .headers, header.flags.contains(.priority) { start += 5 }
        return start <= end ? start..<end : nil
    }

    /// Processes a frame while a header block is incomplete. Only CONTINUATION for that block may
    /// follow (section 6.10).
    private mutating func receiveContinuation(
        _ header: FrameHeader, _ payload: RawSpan
    ) -> Event? {
        guard header.type == .continuation, header.streamID == fragments.streamID else {
            return fail(.protocolError, "a header block is interrupted")
        }
        if let event = collect(payload) { return event }
        guard header.flags.contains(.endHeaders) else { return nil }
        let (streamID, endsStream) = fragments.finish()
        // SAFETY: a block has begun, so there is memory; its `count` bytes are set and stay until
        // the next block begins.
        let block = unsafe RawSpan(
            _unsafeStart: fragments.start.unsafelyUnwrapped, byteCount: fragments.count)
        return receiveBlock(block, streamID: streamID, endsStream: endsStream)
    }

    private mutating func collect(_ fragment: RawSpan) -> Event? {
        guard fragments.append(fragment) else {
            return fragments.hasTooManyFrames
                ? fail(.enhanceYourCalm, "a header block has more than 16 frames")
                : fail(.enhanceYourCalm, "a header block is larger than 32 KiB")
        }
        return nil
    }

    /// Processes a complete header block. The block is decoded even if its stream is ignored,
    /// because the HPACK table belongs to the connection (section 4.3).
    @inline(__always)
    private mutating func receiveBlock(
        _ block: RawSpan, streamID: UInt32, endsStream: Bool
    ) -> Event? {
        let start: ResponseStart
        if !inflater.isActive, let known = headerBlockCache.start(of: block) {
            start = known
        } else {
            do throws(ConnectionError) {
                start = try read(block)
            } catch {
                return fail(error)
            }
            if start.status == Stream.identifiedStatus { keepUniqueID(streamID: streamID) }
        }
        switch streams.lookUp(streamID) {
        case .open(let slot):
            return receiveResponse(start, slot: slot, endsStream: endsStream)
        case .idle:
            return fail(.protocolError, "HEADERS on a stream that was never opened")
        case .closedByServer:
            return fail(.streamClosed, "HEADERS on a closed stream")
        case .forgotten:
            return countIdleFrame()
        case .disowned:
            return countIdleFrame() ?? .disownedResponse
        }
    }

    /// Decodes a block that is not in the cache.
    @inline(never)
    private mutating func read(_ block: RawSpan) throws(ConnectionError) -> ResponseStart {
        var headers = ResponseHeaders()
        do throws(HPACKError) {
            if !inflater.isActive, try headers.read(block) {
                headerBlockCache.remember(block, headers)
                uniqueID = headers.uniqueID
                return ResponseStart(headers)
            }
        } catch {
            throw ConnectionError(.compressionError, "a header block is malformed")
        }
        headers = ResponseHeaders()
        guard inflater.inflate(block, into: &headers) else {
            throw ConnectionError(.compressionError, "a header block can't be decoded")
        }
        uniqueID = headers.uniqueID
        return ResponseStart(headers)
    }

    // MARK: Errors

    /// Counts a frame that advances no request.
    mutating func countIdleFrame() -> Event? {
        flood.idleFrame()
            ? nil : fail(.enhanceYourCalm, "too many frames that belong to no request")
    }

    /// Fails with a connection error (section 5.4.1).
    mutating func fail(_ code: ErrorCode, _ message: StaticString) -> Event? {
        fail(ConnectionError(code, message))
    }

    mutating func fail(_ error: ConnectionError) -> Event? {
        assert(phase != .failed, "a connection fails once")
        phase = .failed
        isGoingAway = true
        queueGoAway(error.code, error.message)
        return .failed(error)
    }
}
