/// The frames that concern the connection itself or the end of a stream.
extension ClientConnectionStateMachine {
    // MARK: SETTINGS

    mutating func receiveSettings(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard header.streamID == 0 else {
            return fail(.protocolError, "SETTINGS on a stream")
        }
        if header.flags.contains(.acknowledgement) {
            guard payload.byteCount == 0 else {
                return fail(.frameSizeError, "an acknowledgement of SETTINGS has a payload")
            }
            guard !settingsAcknowledged else {
                return fail(.protocolError, "SETTINGS are acknowledged twice")
            }
            settingsAcknowledged = true
            return nil
        }
        guard payload.byteCount % 6 == 0 else {
            return fail(.frameSizeError, "SETTINGS of a length that is not a multiple of 6")
        }
        let oldWindow = settings.initialWindowSize
        do throws(ConnectionError) {
            // "The values in the SETTINGS frame MUST be processed in the order they appear, with no
            // other frame processing between values" (section 6.5.3).
            for offset in stride(from: 0, to: payload.byteCount, by: 6) {
                try settings.apply(
                    payload.uint16(at: offset), payload.uint32(at: offset + 2))
            }
        } catch {
            return fail(error)
        }
        if settings.initialWindowSize > oldWindow, exceedsLargestWindow() {
            return fail(
                .flowControlError, "the initial window raises a stream's window above 2^31-1")
        }
        queue(.settings, flags: .acknowledgement, length: 0) { _ in }
        if let event = countIdleFrame() { return event }
        if phase == .awaitingSettings {
            phase = .running
            return .ready
        }
        return .settingsChanged
    }

    /// "An endpoint MUST treat a change to SETTINGS_INITIAL_WINDOW_SIZE that causes any
    /// flow-control window to exceed the maximum size as a connection error" (section 6.9.2). The
    /// search is needed only if a stream has ever received more credit than it used.
    private mutating func exceedsLargestWindow() -> Bool {
        let initial = Int(settings.initialWindowSize)
        guard initial + Int(largestWindowDelta) > FlowControlWindow.limit else { return false }
        for slot in 0..<streams.slotCount where streams[slot].state == .open {
            if initial + Int(streams[slot].windowDelta) > FlowControlWindow.limit { return true }
        }
        return false
    }

    // MARK: PING

    mutating func receivePing(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard header.streamID == 0 else {
            return fail(.protocolError, "PING on a stream")
        }
        guard payload.byteCount == 8 else {
            return fail(.frameSizeError, "PING must have 8 bytes")
        }
        let opaque = payload.uint64(at: 0)
        if header.flags.contains(.acknowledgement) {
            guard pingsAwaited > 0 else { return countIdleFrame() }
            pingsAwaited -= 1
            flood.progress()
            return .pong(opaque)
        }
        queue(.ping, flags: .acknowledgement, length: 8) { $0.append(opaque) }
        return countIdleFrame()
    }

    // MARK: WINDOW_UPDATE

    mutating func receiveWindowUpdate(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard payload.byteCount == 4 else {
            return fail(.frameSizeError, "WINDOW_UPDATE must have 4 bytes")
        }
        let increment = Int(payload.uint32(at: 0) & 0x7fff_ffff)
        guard header.streamID != 0 else {
            guard increment > 0 else {
                return fail(.protocolError, "WINDOW_UPDATE with an increment of 0")
            }
            guard sendWindow.credit(increment) else {
                return fail(.flowControlError, "the connection's window is above 2^31-1")
            }
            return countIdleFrame()
        }
        switch streams.lookUp(header.streamID) {
        case .open(let slot):
            // On a stream, an increment of 0 and a window that is too large are stream errors
            // (sections 6.9 and 6.9.1).
            guard increment > 0 else { return resetStream(slot, .emptyIncrement) }
            let delta = Int(streams[slot].windowDelta) + increment
            guard Int(settings.initialWindowSize) + delta <= FlowControlWindow.limit else {
                return resetStream(slot, .windowOverflow)
            }
            streams[slot].windowDelta = Int32(delta)
            largestWindowDelta = max(largestWindowDelta, Int32(delta))
        case .idle:
            return fail(.protocolError, "WINDOW_UPDATE on a stream that was never opened")
        case .closedByServer, .forgotten, .disowned:
            // "An endpoint ... might receive a WINDOW_UPDATE ... in the time before the peer
            // processes the frame that closed the stream" (section 5.1).
            break
        }
        return countIdleFrame()
    }

    // MARK: RST_STREAM and PRIORITY

    mutating func receiveReset(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard header.streamID != 0 else {
            return fail(.protocolError, "RST_STREAM on stream 0")
        }
        guard payload.byteCount == 4 else {
            return fail(.frameSizeError, "RST_STREAM must have 4 bytes")
        }
        switch streams.lookUp(header.streamID) {
        case .open(let slot):
            if let event = countIdleFrame() { return event }
            let stream = streams[slot]
            let code = ErrorCode(rawValue: payload.uint32(at: 0))
            // "The REFUSED_STREAM error code can be included in a RST_STREAM frame to indicate that
            // the stream is being closed prior to any processing having occurred" (section 8.7). No
            // server acts on a request without its END_STREAM, whatever the code. A stream with a
            // partial response was processed.
            if code == .refusedStream || !stream.isComplete, !stream.hasResponse {
                close(slot, .disowned)
                return .notProcessed(tag: stream.tag)
            }
            close(slot, .closedByServer)
            return .reset(tag: stream.tag, code)
        case .idle:
            return fail(.protocolError, "RST_STREAM on a stream that was never opened")
        case .closedByServer, .forgotten, .disowned:
            return countIdleFrame()
        }
    }

    /// Handles a PRIORITY frame, which is deprecated but valid in any state of a stream (section
    /// 6.3).
    mutating func receivePriority(_ header: FrameHeader) -> Event? {
        guard header.streamID != 0 else {
            return fail(.protocolError, "PRIORITY on stream 0")
        }
        if header.length != 5, case .open(let slot) = streams.lookUp(header.streamID) {
            return resetStream(slot, .prioritySize)
        }
        return countIdleFrame()
    }

    // MARK: GOAWAY

    mutating func receiveGoAway(_ header: FrameHeader, _ payload: RawSpan) -> Event? {
        guard header.streamID == 0 else {
            return fail(.protocolError, "GOAWAY on a stream")
        }
        guard payload.byteCount >= 8 else {
            return fail(.frameSizeError, "GOAWAY must have at least 8 bytes")
        }
        if let event = countIdleFrame() { return event }
        // "Endpoints MUST NOT increase the value they send in the last stream identifier" (section
        // 6.8), so a larger value is ignored.
        lastProcessedID = min(lastProcessedID, payload.uint32(at: 0) & 0x7fff_ffff)
        isGoingAway = true
        slotsToCheck = streams.slotCount
        debugCount = min(payload.byteCount - 8, BodyPool.keptCount)
        // SAFETY: the payload was checked to have 8 bytes and has `debugCount` more; the second
        // half of `kept` has `keptCount` bytes.
        unsafe payload.withUnsafeBytes { bytes in
            unsafe (kept + BodyPool.keptCount).copyMemory(
                from: bytes.baseAddress.unsafelyUnwrapped + 8, byteCount: debugCount)
        }
        return .goAway(
            ErrorCode(rawValue: payload.uint32(at: 4)), lastStreamID: lastProcessedID)
    }

    /// Returns the next open stream above the GOAWAY's last stream ID, in ring order from the
    /// oldest. A stream with response headers counts as processed even if its ID is higher, because
    /// the rest of its response may still come.
    mutating func nextUnprocessedStream() -> Event? {
        while slotsToCheck > 0 {
            assert(
                slotsToCheck <= streams.slotCount,
                "the stream table does not change while requests are disowned")
            let slot = streams.slot(of: streams.nextID) + streams.slotCount - slotsToCheck
            slotsToCheck -= 1
            let stream = streams[slot]
            guard stream.state == .open, stream.id > lastProcessedID, !stream.hasResponse else {
                continue
            }
            close(slot & (streams.slotCount - 1), .disowned)
            return .notProcessed(tag: stream.tag)
        }
        return nil
    }
}
