internal import BroadsideAPNs
internal import BroadsideHPACK
internal import CBroadsideNghttp2

/// The requests about broadcast channels, which share the listener with device pushes.
extension ServerSession {
    /// Examines the header block of a request about channels.
    func beganChannelRequest(_ stream: StreamIndex) {
        var verdict = Verdict(payloadLimit: BroadcastChannel.payloadCountMax)
        verdict.omitsBody = head[.method]?.matches("HEAD") ?? false
        var request: ChannelRequest?
        do throws(ChannelRequest.Refusal) {
            request = try examineChannelRequest(head, &verdict)
        } catch {
            verdict.early = .refused(error.reason)
        }
        streams[stream].verdict = verdict
        streams[stream].channel = ChannelExchange(request)
        streams[stream].identifier = context.requestIdentifier(head)
        streams[stream].claimsCompression = head.claimsCompression
    }

    /// Checks a request about channels, in this order: method and path, credential, app,
    /// capability, header fields.
    private func examineChannelRequest(
        _ head: borrowing RequestHead, _ verdict: inout Verdict
    ) throws(ChannelRequest.Refusal) -> ChannelRequest {
        var request = try ChannelRequest(method: head[.method], path: head[.path])
        if let reason = context.authenticate(head[.authorization], &credential) {
            throw .init(reason)
        }
        verdict.isAuthenticated = true
        if head.hasDuplicates { throw .init(.duplicateHeaders) }
        let bundle = topics.bundle(of: request.app.span.rawBytes)
        var hasDevices = true
        let isCovered =
            topics.refusal(topic: bundle.span.rawBytes, type: nil, isForDevice: &hasDevices) == nil
            && context.allows(bundle, credential)
        guard isCovered else { throw .init(.topicMismatch) }
        guard bundle == request.app else { throw .init(.topicDisallowed) }
        // The team's other app has no devices. Its broadcast capability is off.
        guard hasDevices else { throw .init(.featureNotEnabled) }
        try request.readFields(head)
        return request
    }

    /// Handles the end of a request about channels.
    func endedChannelRequest(_ stream: StreamIndex, _ exchange: ChannelExchange) {
        var response = checkedBody(stream, exchange)
        if let run = context.run {
            guard applyFault(run, stream, &response) else {
                record(stream, .untaken)
                return
            }
        }
        if let request = exchange.request, response == .accepted {
            exchange.result = context.channels.perform(
                request, body: streams[stream].keptBody, identifier: streams[stream].identifier,
                microseconds: context.nowMicroseconds)
            response = exchange.result.response
        }
        highestTaken = max(highestTaken, streams[stream].streamID)
        context.totals.countChannel(exchange.request?.operation, response)
        record(stream, response)
        guard !isBroken else { return }
        let pending = PendingResponse(
            slot: slot, generation: generation, streamID: streams[stream].streamID,
            isAuthenticated: streams[stream].verdict.isAuthenticated, response: response,
            identifier: streams[stream].identifier,
            omitsBody: streams[stream].verdict.omitsBody)
        if context.delaysResponses {
            context.queue.push(pending, due: context.dueTime(connectionNext: &nextResponse))
        } else {
            deliver(pending)
        }
    }

    /// Returns the response, which depends on the header block and on the size of the body.
    private func checkedBody(_ stream: StreamIndex, _ exchange: ChannelExchange) -> Response {
        if let early = streams[stream].verdict.early { return early }
        guard exchange.request?.operation == .broadcast else {
            if streams[stream].bodyCount > BroadcastChannel.payloadCountMax {
                return .refused(.payloadTooLarge)
            }
            return .accepted
        }
        let finding = context.options.payloadLint == .off ? nil : streams[stream].bodyFinding
        if let finding { context.totals.count(finding) }
        return streams[stream].verdict.response(
            bodyCount: streams[stream].bodyCount,
            refusesBody: finding != nil && context.options.payloadLint == .refuse)
    }

    /// Queues HEADERS, and DATA if the response has a body.
    func respond(
        _ pending: PendingResponse, _ stream: StreamIndex, _ exchange: ChannelExchange,
        uniqueID: NotificationIDText?
    ) {
        responseTexts.removeAll()
        responseFields.removeAll(keepingCapacity: true)
        func field(
            _ name: StaticString, flags: nghttp2_nv_flag = NGHTTP2_NV_FLAG_NO_INDEX,
            _ append: (inout ByteBuffer) -> Void
        ) {
            let start = responseTexts.count
            append(&responseTexts)
            responseFields.append(
                ResponseField(name, start..<responseTexts.count, flags: flags))
        }
        let response = pending.response
        field(":status", flags: NGHTTP2_NV_FLAG_NONE) {
            $0.append(decimal: UInt64(response.status))
        }
        field("apns-request-id") { $0.append(pending.identifier) }
        let channel = exchange.result.channel
        if response.reason == nil, !channel.isEmpty {
            field("apns-channel-id") { output in
                for byte in channel { output.append(byte) }
            }
        }
        if response.reason == nil, exchange.request?.operation == .broadcast, let uniqueID {
            field("apns-unique-id") { $0.append(uniqueID) }
        }
        if let seconds = response.retryAfterSeconds {
            field("retry-after") { $0.append(decimal: UInt64(seconds)) }
        }
        if response.reason != nil {
            let start = responseTexts.count
            _ = response.appendBody(to: &responseTexts)
            exchange.result.body = responseTexts.copy(start..<responseTexts.count)
        }
        let hasBody = !exchange.result.body.isEmpty
        if hasBody { field("content-type") { $0.append("application/json") } }
        session.submitResponse(
            pending.streamID, responseFields, texts: responseTexts,
            body: hasBody && !pending.omitsBody ? stream : nil)
    }
}
