internal import BroadsideHPACK
internal import BroadsideSupport
internal import CBroadsideNghttp2

/// Handling of nghttp2's callbacks, and the responses.
extension ServerSession {
    /// Handles the beginning of a HEADERS frame. nghttp2 would ignore the frame if its stream
    /// number is lower than an earlier one.
    func beganHeadersFrame(_ streamID: UInt32) {
        guard streamID & 1 == 1 else { return }
        if streamID > highestOpened {
            skippedStreams.record(from: highestOpened, to: streamID)
            highestOpened = streamID
        } else if skippedStreams.contains(streamID) {
            violate(.protocolError, "stream \(streamID) after stream \(highestOpened)")
        } else if hasEnded(streamID) {
            violate(.streamClosed, "HEADERS on stream \(streamID), which has ended")
        }
    }

    /// Returns whether a stream was opened and then closed after the client's END_STREAM or
    /// RST_STREAM.
    func hasEnded(_ streamID: UInt32) -> Bool {
        guard !isBroken, session.stream(Int32(streamID)) == nil, streamID & 1 == 1,
            streamID <= min(highestOpened, lastTaken ?? .max)
        else { return false }
        return !skippedStreams.contains(streamID) && !unfinishedStreams.contains(streamID)
    }

    /// Handles the beginning of a request's header block.
    func beganHeaders(_ streamID: Int32) {
        head.reset()
        if context.keepsRequests { received = ReceivedRequest() }
        // Streams that GOAWAY excludes are ignored, and so are all streams of a connection that is
        // being aborted.
        if isBroken { return }
        if let lastTaken, UInt32(streamID) > lastTaken { return }
        openStreams += 1
        let stream = streams.take()
        streams[stream].streamID = UInt32(streamID)
        session.setStream(streamID, stream)
        if openStreams > streamLimits.allowed {
            exceedStreams()
        }
    }

    /// Handles a field of a request's header block.
    func receivedHeader(name: RawSpan, value: RawSpan) {
        head.add(name: name, value: value)
        if !head.isTooLarge { received?.add(name: name, value: value) }
    }

    /// Handles the end of a request's header block.
    func endedHeaders(_ stream: StreamIndex) {
        streams[stream].received = received
        received = nil
        if head.namesTwoHosts {
            streams[stream].isMalformed = true
            reset(streams[stream].streamID, ErrorCode.protocolError.rawValue)
            return
        }
        if !head.isTooLarge, ChannelRequest.owns(head[.path]) {
            beganChannelRequest(stream)
            return
        }
        streams[stream].received?.certificateTopic = topics.fallbackText
        if head.isTooLarge {
            streams[stream].verdict = Verdict(early: Response(status: 431, reason: nil))
        } else {
            streams[stream].verdict = context.examine(head, &credential, topics: topics)
        }
        streams[stream].identifier = context.identifier(head)
        streams[stream].claimsCompression = head.claimsCompression
        if context.keepsTokens { keepToken(head, stream) }
    }

    /// Keeps a well-formed device token and the header fields needed to store the notification.
    private func keepToken(_ head: borrowing RequestHead, _ stream: StreamIndex) {
        var token = RawSpan()
        guard RequestChecks.findToken(head[.path], token: &token) == nil,
            TokenOutcome.head(ofDigits: token) != nil
        else { return }
        streams[stream].setToken(token)
        if context.devices != nil { streams[stream].envelope = Envelope(head, topics: topics) }
    }

    /// Handles bytes of a request's body.
    func receivedData(_ streamID: Int32, _ bytes: RawSpan) {
        let count = bytes.byteCount
        let stream = session.stream(streamID)
        if let stream {
            if context.options.payloadLint != .off || streams[stream].channel != nil {
                streams[stream].keepBody(bytes)
            }
            streams[stream].bodyCount += count
            streams[stream].received?.add(body: bytes)
        }
        guard let window else { return }
        uncreditedBytes += count
        if let stream { streams[stream].uncreditedBytes += count }
        if windowDue == .max { windowDue = context.now + window.intervalNanoseconds }
    }

    /// Handles the end of a request.
    func endedRequest(_ stream: StreamIndex) {
        guard !streams[stream].isComplete, !isBroken, !isEnding else { return }
        streams[stream].isComplete = true
        if streams[stream].isMalformed { return }
        lastRequest = context.now
        if let channel = streams[stream].channel { return endedChannelRequest(stream, channel) }
        var finding: RequestFinding?
        if context.options.payloadLint != .off { finding = streams[stream].bodyFinding }
        if let finding { context.totals.count(finding) }
        var response = streams[stream].verdict.response(
            bodyCount: streams[stream].bodyCount,
            refusesBody: finding != nil && context.options.payloadLint == .refuse)
        applyInstruments(stream, &response)
        if let run = context.run {
            guard applyFault(run, stream, &response) else {
                record(stream, .untaken)
                return
            }
        }
        // A recording contains the request as one that was not processed.
        guard response.status != 0 else {
            reset(streams[stream].streamID, ErrorCode.refusedStream.rawValue)
            record(stream, .untaken)
            return
        }
        highestTaken = max(highestTaken, streams[stream].streamID)
        context.totals.count(response)
        record(stream, response)
        if response.status == 200, let devices = context.devices,
            let envelope = streams[stream].envelope
        {
            devices.take(
                envelope, token: Array(streams[stream].tokenDigits),
                identifier: streams[stream].identifier, microseconds: context.nowMicroseconds)
        }
        guard !isBroken else { return }
        let pending = PendingResponse(
            slot: slot, generation: generation, streamID: streams[stream].streamID,
            isAuthenticated: streams[stream].verdict.isAuthenticated, response: response,
            identifier: streams[stream].identifier,
            omitsBody: streams[stream].verdict.omitsBody)
        let slowed =
            context.run?.scenario.refusals.slowNanoseconds ?? 0 > 0 ? slowedNanoseconds : 0
        if context.delaysResponses {
            let due = context.dueTime(connectionNext: &nextResponse)
            context.queue.push(pending, due: due + slowed)
        } else if slowed > 0 {
            context.queue.push(pending, due: context.now + slowed)
        } else {
            deliver(pending)
        }
    }

    /// Applies the response that a test has set for the device token, or the response of a replayed
    /// file.
    private func applyInstruments(_ stream: StreamIndex, _ response: inout Response) {
        // An outcome that a test has set replaces the response that follows from the token.
        if let outcomes = context.instruments.outcomes, streams[stream].verdict.early == nil,
            response == streams[stream].verdict.late,
            let outcome = outcomes.take(streams[stream].tokenDigits)
        {
            response = outcome
        }
        if response.isUndatedGone {
            response.timestampMilliseconds = context.nowMicroseconds / 1000
        }
        if let replayed = context.instruments.replay?.take(streams[stream].tokenDigits) {
            response = replayed
        }
    }

    /// Writes a request's line of the journal. Keeps and records the request if the options require
    /// it.
    func record(_ stream: StreamIndex, _ response: Response) {
        context.journal?.append(
            microseconds: context.nowMicroseconds, connection: number,
            stream: streams[stream].streamID, identifier: streams[stream].identifier,
            token: streams[stream].tokenDigits, response: response, now: context.now)
        context.instruments.recording?.append(
            response, token: streams[stream].tokenDigits, now: context.now)
        guard let log = context.instruments.received, var request = streams[stream].received else {
            return
        }
        streams[stream].received = nil
        request.microseconds = context.nowMicroseconds
        request.connection = number
        request.stream = streams[stream].streamID
        let identifier = streams[stream].identifier
        request.identifier = String(
            decoding: identifier.indices.map { identifier[$0] }, as: UTF8.self)
        request.token = String(decoding: streams[stream].tokenDigits).lowercased()
        request.response = response
        log.append(request)
    }

    /// Handles the end of a stream, even if the stream got no response.
    func closedStream(_ stream: StreamIndex) {
        assert(openStreams > 0, "a stream that closes was open")
        openStreams -= 1
        if !streams[stream].isComplete, !streams[stream].isResetByClient {
            unfinishedStreams.record(streams[stream].streamID)
        }
        streams.giveBack(stream)
    }

    /// Resets a stream with an error code.
    func reset(_ streamID: UInt32, _ code: UInt32) {
        session.submitReset(streamID, code)
    }

    /// Delivers a response to its stream unless the client has reset it.
    func deliver(_ pending: PendingResponse) {
        guard !isEnding, !isBroken, let stream = session.stream(Int32(pending.streamID)) else {
            return
        }
        assert(
            pending.slot == slot && pending.generation == generation,
            "a response goes to the connection of its request")
        if pending.isAuthenticated, !streamLimits.isAuthenticated {
            streamLimits.authenticate()
            submitStreamLimit()
        }
        if let limits = context.run?.scenario.refusals { weigh(pending.response, limits) }
        respond(pending, stream, uniqueID: context.uniqueID())
    }

    /// Queues HEADERS, and DATA if the response has a body.
    private func respond(
        _ pending: PendingResponse, _ stream: StreamIndex, uniqueID: NotificationIDText?
    ) {
        if let channel = streams[stream].channel {
            return respond(pending, stream, channel, uniqueID: uniqueID)
        }
        assert(pending.response.status >= 200, "a response has a status")
        responseTexts.removeAll()
        func range(_ append: (inout ByteBuffer) -> Void) -> Range<Int> {
            let start = responseTexts.count
            append(&responseTexts)
            return start..<responseTexts.count
        }
        responseFields.removeAll(keepingCapacity: true)
        responseFields.append(
            ResponseField(":status", range { $0.append(decimal: UInt64(pending.response.status)) }))
        // APNs sends the ID as a literal, because indexing a unique value is useless.
        responseFields.append(
            ResponseField(
                "apns-id", range { $0.append(pending.identifier) },
                flags: NGHTTP2_NV_FLAG_NO_INDEX))
        if pending.response.status == 200, let uniqueID {
            responseFields.append(
                ResponseField(
                    "apns-unique-id", range { $0.append(uniqueID) },
                    flags: NGHTTP2_NV_FLAG_NO_INDEX))
        }
        if let seconds = pending.response.retryAfterSeconds {
            responseFields.append(
                ResponseField("retry-after", range { $0.append(decimal: UInt64(seconds)) }))
        }
        if pending.response.reason != nil {
            responseFields.append(
                ResponseField("content-type", range { $0.append("application/json") }))
        }
        var body = 0..<0
        if !pending.omitsBody { body = range { _ = pending.response.appendBody(to: &$0) } }
        streams[stream].setResponse(responseTexts.bytes.extracting(body))
        session.submitResponse(
            pending.streamID, responseFields, texts: responseTexts,
            body: body.isEmpty ? nil : stream)
    }

    /// Reads the next bytes of a response body. Returns their number, and whether the body is
    /// complete.
    func readResponse(
        _ stream: StreamIndex, into room: UnsafeMutableRawBufferPointer
    ) -> (count: Int, isEnd: Bool) {
        // A scenario may split a body into many small frames.
        let most = context.run?.scenario.responses.dataBytes
        // SAFETY: nghttp2 provides the room for this call, and the output checks its count.
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        streams[stream].readResponse(into: &output, most: most ?? .max)
        return (unsafe output.finalize(for: room), streams[stream].isResponseRead)
    }

    /// Announces a stream limit to the client.
    func announce(limit: UInt32) {
        streamLimits.announce(limit)
        submitStreamLimit()
    }

    private func submitStreamLimit() { submit([Self.unlimitedStreams]) }
}
