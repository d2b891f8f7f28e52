import Broadside
import BroadsideSupport

/// A request that a client sent, whether or not it arrived.
struct SentRequest {
    var link: Int
    var stream: Int32
    /// Time at which the request's header was sent.
    var time: UInt64
}

extension Simulation {
    /// What a client knows about the outcome of a request.
    private enum Knowledge {
        /// Surely not processed, so it does not count as an attempt.
        case notProcessed
        /// It got a response that does not count as an attempt.
        case notCounted
        /// It got a response, or was lost.
        case counted
        /// The simulation can't tell how the client took the response.
        case uncertain
    }

    /// All requests that clients sent, by row.
    func indexRequests() -> [[SentRequest]] {
        var requests = [[SentRequest]](repeating: [], count: plan.list.tokens.count)
        for link in links {
            for request in taps[link.id].requests {
                guard requests.indices.contains(request.row) else {
                    fail("link \(link.id), stream \(request.stream) has no apns-id of a row")
                    continue
                }
                requests[request.row].append(
                    SentRequest(
                        link: link.id, stream: request.stream, time: request.time))
            }
        }
        return requests
    }

    private func knowledge(of request: SentRequest, row: Int) -> Knowledge {
        if plan.gateway != nil { return knowledge(ofNotification: request) }
        // A request without its end is not processed. But the client may have written the end, and
        // not submitted it.
        let unanswered: Knowledge =
            taps[request.link].completed[request.stream] != nil ? .counted : .uncertain
        if wasCancelled(link: request.link, stream: request.stream) { return unanswered }
        for index in journal.copiesOfRow[row] {
            let copy = journal.copies[index]
            guard copy.link == request.link, copy.stream == request.stream else { continue }
            guard copy.toldAt != nil else { return unanswered }
            if copy.isToldInVain { return .uncertain }
            switch copy.resolution {
            case .notProcessed: return .notProcessed
            case .answered(let answer):
                if answer.reason == "TooManyProviderTokenUpdates" { return .uncertain }
                return answer.reason == "ExpiredProviderToken" ? .notCounted : .counted
            case .open, .reset: return .counted
            }
        }
        let link = links[request.link]
        if let refusal = link.refused.first(where: { $0.stream == request.stream }) {
            return refusal.toldAt == link.closedAt ? .uncertain : .notProcessed
        }
        guard let last = link.lastStream, request.stream > last else { return unanswered }
        return link.lastStreamToldAt == link.closedAt ? .uncertain : .notProcessed
    }

    /// The gateway discarded the notifications after the one that an error response names. But the
    /// client may have concluded from silence that they were accepted, before the response came.
    /// All other notifications count as attempts, lost or not.
    private func knowledge(ofNotification request: SentRequest) -> Knowledge {
        let link = links[request.link]
        guard let word = link.word, let named = word.position, request.stream > named else {
            return .counted
        }
        return word.toldAt - request.time + second / 5 > plan.silence
            ? .uncertain : .notProcessed
    }

    /// Whether the client certainly knows that no request for the row was processed. Requests that
    /// a client wrote but never submitted leave this uncertain.
    func isCertain(row: Int) -> Bool {
        if links.contains(where: \.endedWhileSending) { return false }
        return requestsOfRow[row].allSatisfy { request in
            if case .notProcessed = knowledge(of: request, row: row) { return true }
            return false
        }
    }

    /// The attempts in the ledger equal the number of requests that count.
    func checkAttempts(_ rows: [LedgerRow], _ process: SimulatedProcess) {
        if links.contains(where: { $0.epoch == process.epoch && $0.endedWhileSending }) { return }
        for number in rows.indices where process.statesAtStart[number] == .remaining {
            switch rows[number].state {
            case .accepted, .rejected, .failed: break
            default: continue
            }
            var attempts = 0
            var isKnown = true
            for request in requestsOfRow[number] {
                if links[request.link].epoch != process.epoch { isKnown = false }
                switch knowledge(of: request, row: number) {
                case .counted: attempts += 1
                case .notProcessed, .notCounted: break
                case .uncertain: isKnown = false
                }
            }
            if isKnown, attempts != rows[number].attempts {
                fail(
                    "row \(number) has \(rows[number].attempts) attempts in the ledger, "
                        + "\(attempts) requests count")
            }
        }
    }

    /// Whether the client canceled a request with RST_STREAM.
    func wasCancelled(link: Int, stream: Int32) -> Bool {
        taps[link].cancelled.contains(stream)
    }

    /// Whether the client may have given up a request because no response came in time, although no
    /// RST_STREAM was seen: it waits behind bytes that the network does not accept.
    func mayBeGivenUp(_ copy: Journal.Copy) -> Bool {
        mayBeGivenUp(link: copy.link, sentAt: copy.sentAt)
    }

    /// The same for a request that was sent at a given time.
    func mayBeGivenUp(link id: Int, sentAt: UInt64) -> Bool {
        let link = links[id]
        // The timeout may start just before the network accepts the bytes, and is checked only now
        // and then. A response that arrived while the process was frozen counts, however late it is
        // read.
        let isOverdue =
            (arrival ?? clock) + 100 * millisecond > sentAt + plan.requestTimeout
        let isWaiting = link.pendingSend != nil || clock - link.lastSendDone < 50_000
        return isOverdue && isWaiting
    }
}
