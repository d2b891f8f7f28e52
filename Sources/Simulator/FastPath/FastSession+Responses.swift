extension FastSession {
    /// Responds to a complete request, either now or when the response is due.
    func complete(_ streamID: UInt32) {
        guard let index = streams.find(streamID) else { return }
        let stream = streams[index]
        var response = stream.verdict.response(bodyCount: Int(stream.bodyCount))
        if response.isUndatedGone {
            response.timestampMilliseconds = context.nowMicroseconds / 1000
        }
        highestTaken = max(highestTaken, streamID)
        context.totals.count(response)
        let pending = PendingResponse(
            slot: slot, generation: generation, streamID: streamID,
            isAuthenticated: stream.verdict.isAuthenticated, response: response,
            identifier: stream.identifier, omitsBody: stream.verdict.omitsBody)
        if context.delaysResponses {
            streams[index].isComplete = true
            context.queue.push(pending, due: context.dueTime(connectionNext: &nextResponse))
        } else {
            streams.remove(streamID)
            write(pending)
        }
    }

    /// Delivers a response to its stream unless the client has reset it.
    func deliver(_ pending: PendingResponse) {
        guard !isFinished, streams.find(pending.streamID, complete: true) != nil else { return }
        assert(
            pending.slot == slot && pending.generation == generation,
            "a response goes to the connection of its request")
        streams.remove(pending.streamID)
        write(pending)
    }

    func write(_ pending: PendingResponse) {
        if pending.response.status == 200 {
            FrameBytes.appendAccepted(pending, to: &output)
            return
        }
        // A client whose stream window is too small receives no body. It does not learn the reason,
        // but the framing stays valid.
        let takesBody = !pending.omitsBody && initialSendWindow >= Response.maximumBodyCount
        if takesBody, sendWindow < Response.maximumBodyCount {
            if blocked.count < Int(context.options.maxStreams) { blocked.append(pending) }
            return
        }
        sendWindow -= FrameBytes.appendRefusal(pending, withBody: takesBody, to: &output)
        assert(sendWindow >= 0, "a body fits in the window")
    }
}
