extension FastSession {
    /// A request is complete: answer it, now or when it is due.
    func complete(_ streamID: UInt32) {
        guard let index = streams.find(streamID) else { return }
        let stream = streams[index]
        let response = stream.verdict.response(bodyCount: Int(stream.bodyCount))
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

    /// Gives a stream its answer, unless the client has let go of it.
    func deliver(_ pending: PendingResponse) {
        guard !isFinished, streams.find(pending.streamID, complete: true) != nil else { return }
        streams.remove(pending.streamID)
        write(pending)
    }

    func write(_ pending: PendingResponse) {
        if pending.response.status == 200 {
            FrameBytes.appendAccepted(pending, to: &output)
            return
        }
        // A client whose streams take no body gets none: the reason is lost, the framing right.
        let takesBody = !pending.omitsBody && initialSendWindow >= Response.maximumBodyCount
        if takesBody, sendWindow < Response.maximumBodyCount {
            if blocked.count < Int(context.options.maxStreams) { blocked.append(pending) }
            return
        }
        sendWindow -= FrameBytes.appendRefusal(pending, withBody: takesBody, to: &output)
    }
}
