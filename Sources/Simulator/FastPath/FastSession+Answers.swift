extension FastSession {
    /// A request is complete: answer it, now or when it is due.
    func complete(_ streamID: UInt32) {
        guard let index = streams.find(streamID) else { return }
        let stream = streams[index]
        let answer = stream.verdict.answer(bodyCount: Int(stream.bodyCount))
        context.totals.count(answer)
        let pending = PendingAnswer(
            slot: slot, generation: generation, streamID: streamID,
            isAuthenticated: stream.verdict.isAuthenticated, answer: answer,
            identifier: stream.identifier, omitsBody: stream.verdict.omitsBody)
        if context.delaysAnswers {
            streams[index].isAnswered = true
            context.queue.push(pending, due: context.dueTime(connectionNext: &nextAnswer))
        } else {
            streams.remove(streamID)
            write(pending)
        }
    }

    /// Gives a stream its answer, unless the client has let go of it.
    func deliver(_ pending: PendingAnswer) {
        guard !isFinished, streams.find(pending.streamID, answered: true) != nil else { return }
        streams.remove(pending.streamID)
        write(pending)
    }

    func write(_ pending: PendingAnswer) {
        if pending.answer.status == 200 {
            FrameBytes.appendAccepted(pending, to: &output)
            return
        }
        // A client whose streams take no body gets none: the reason is lost, the framing right.
        let takesBody = !pending.omitsBody && initialSendWindow >= Answer.maximumBodyCount
        if takesBody, sendWindow < Answer.maximumBodyCount {
            if blocked.count < Int(context.options.maxStreams) { blocked.append(pending) }
            return
        }
        sendWindow -= FrameBytes.appendRefusal(pending, withBody: takesBody, to: &output)
    }
}
