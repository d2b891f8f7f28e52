internal import APNs
internal import CNghttp2
internal import HPACK

/// What nghttp2 reports, and what is answered.
extension ServerSession {
    /// A request's header block begins.
    func beganHeaders(_ streamID: Int32) {
        head.reset()
        // What GOAWAY said is not taken, nor anything on a connection that is being broken.
        if isBroken { return }
        if let lastTaken, UInt32(streamID) > lastTaken { return }
        openStreams += 1
        let stream = unsafe streams.take()
        unsafe stream.pointee.streamID = UInt32(streamID)
        _ = unsafe nghttp2_session_set_stream_user_data(
            session, streamID, UnsafeMutableRawPointer(stream))
        if openStreams > max(acknowledgedLimit, announcedLimit) {
            // Word for word what APNs was seen to say.
            violate(.refusedStream, "Maximum active streams violated for this endpoint.")
        }
    }

    /// A field of that block.
    func receivedHeader(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        unsafe head.add(name: name, value: value)
    }

    /// A request's header block is complete.
    func endedHeaders(_ stream: UnsafeMutablePointer<StreamState>) {
        if let host = unsafe head[.host], let authority = unsafe head[.authority],
            unsafe !host.elementsEqual(authority)
        {
            // RFC 9113 section 8.3.1: both, if present, agree.
            unsafe reset(stream.pointee.streamID, ErrorCode.protocolError.rawValue)
            return
        }
        if head.isTooLarge {
            unsafe stream.pointee.verdict = Verdict(early: Answer(status: 431, reason: nil))
        } else {
            unsafe stream.pointee.verdict = context.examine(head, &credential, topics: topics)
        }
        unsafe stream.pointee.identifier = context.identifier(head)
        unsafe stream.pointee.isSaidToBeCompressed = head.isSaidToBeCompressed
        guard context.keepsTokens else { return }
        var token = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        if unsafe RequestChecks.findToken(head[.path], token: &token) == nil,
            unsafe TokenOutcome.head(ofDigits: token) != nil
        {
            unsafe stream.pointee.setToken(token)
            if context.devices != nil {
                unsafe stream.pointee.envelope = Envelope(head, topics: topics)
            }
        }
    }

    /// Bytes of a request's body.
    func receivedData(
        _ stream: UnsafeMutablePointer<StreamState>?, _ bytes: UnsafeRawBufferPointer
    ) {
        let count = bytes.count
        if let stream = unsafe stream {
            if context.options.payloadLint != .off { unsafe stream.pointee.keepBody(bytes) }
            unsafe stream.pointee.bodyCount += count
        }
        guard let window else { return }
        owedOctets += count
        if let stream = unsafe stream { unsafe stream.pointee.owedOctets += count }
        if windowDue == .max { windowDue = context.now + window.intervalNanoseconds }
    }

    /// A request is complete.
    func endedRequest(_ stream: UnsafeMutablePointer<StreamState>) {
        guard unsafe !stream.pointee.isComplete, !isBroken, !isEnding else { return }
        unsafe stream.pointee.isComplete = true
        lastRequest = context.now
        var finding: RequestFinding?
        if context.options.payloadLint != .off { finding = unsafe stream.pointee.bodyFinding }
        if let finding { context.totals.count(finding) }
        var answer = unsafe stream.pointee.verdict.answer(
            bodyCount: stream.pointee.bodyCount,
            refusesBody: finding != nil && context.options.payloadLint == .refuse)
        if let run = context.run {
            guard unsafe suffer(run, stream, &answer) else {
                unsafe note(stream, .untaken)
                return
            }
        }
        context.totals.count(answer)
        unsafe note(stream, answer)
        if answer.status == 200, let devices = context.devices,
            let envelope = unsafe stream.pointee.envelope
        {
            unsafe devices.take(
                envelope, token: stream.pointee.tokenDigits,
                identifier: stream.pointee.identifier, microseconds: context.nowMicroseconds)
        }
        guard !isBroken else { return }
        let pending = unsafe PendingAnswer(
            slot: slot, generation: generation, streamID: stream.pointee.streamID,
            isAuthenticated: stream.pointee.verdict.isAuthenticated, answer: answer,
            identifier: stream.pointee.identifier,
            omitsBody: stream.pointee.verdict.omitsBody)
        if context.delaysAnswers {
            context.queue.push(pending, due: context.dueTime(connectionNext: &nextAnswer))
        } else {
            deliver(pending)
        }
    }

    /// Writes a request's line of the journal.
    private func note(_ stream: UnsafeMutablePointer<StreamState>, _ answer: Answer) {
        unsafe stream.pointee.withToken { token in
            unsafe context.journal?.append(
                microseconds: context.nowMicroseconds, connection: number,
                stream: stream.pointee.streamID, identifier: stream.pointee.identifier,
                token: token, answer: answer, now: context.now)
        }
    }

    /// A stream is gone, answered or not.
    func closedStream(_ stream: UnsafeMutablePointer<StreamState>) {
        openStreams -= 1
        unsafe streams.giveBack(stream)
    }

    /// Ends a stream with an error code.
    func reset(_ streamID: UInt32, _ code: UInt32) {
        _ = unsafe nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), Int32(streamID), code)
    }

    /// Gives a stream its answer, unless the client has let go of it.
    func deliver(_ pending: PendingAnswer) {
        guard !isEnding, !isBroken,
            let data = unsafe nghttp2_session_get_stream_user_data(
                session, Int32(pending.streamID))
        else { return }
        // SAFETY: stream data is always a `StreamState` of `streams`.
        let stream = unsafe data.assumingMemoryBound(to: StreamState.self)
        if pending.isAuthenticated, !isGateOpen {
            isGateOpen = true
            announce(limit: fullLimit)
        }
        if let limits = context.run?.scenario.refusals { weigh(pending.answer, limits) }
        unsafe ResponseSubmission.submit(
            pending, to: stream, session: session, uniqueID: context.uniqueID())
    }

    /// Tells the client how many streams it may have.
    func announce(limit: UInt32) {
        announcedLimit = limit
        submit(limit: limit, [Self.unlimitedStreams])
    }
}
