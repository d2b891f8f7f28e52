import Broadside
import BroadsideSupport

/// A request that a client sent, whether or not it arrived.
struct SentRequest {
    var link: Int
    var stream: Int32
    /// When its header left.
    var time: UInt64
}

extension Simulation {
    /// The outcome of a request, as its client knows it.
    private enum Knowledge {
        /// Surely not acted on: it does not count as an attempt.
        case notProcessed
        /// Answered in a way that does not count.
        case notCounted
        /// Answered, or lost.
        case counted
        /// The simulation can't tell what the client made of it.
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
        if wasCancelled(link: request.link, stream: request.stream) { return .counted }
        for index in journal.copiesOfRow[row] {
            let copy = journal.copies[index]
            guard copy.link == request.link, copy.stream == request.stream else { continue }
            guard copy.toldAt != nil else { return .counted }
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
        guard let last = link.lastStream, request.stream > last else { return .counted }
        return link.lastStreamToldAt == link.closedAt ? .uncertain : .notProcessed
    }

    /// What is behind the notification that an error response names was discarded; but silence may have
    /// been believed before the response came. All else is counted, lost or not.
    private func knowledge(ofNotification request: SentRequest) -> Knowledge {
        let link = links[request.link]
        guard let word = link.word, let named = word.position, request.stream > named else {
            return .counted
        }
        return word.toldAt - request.time + second / 5 > plan.silence
            ? .uncertain : .notProcessed
    }

    /// True where no request for a row may have been acted on without the client's knowing. Requests
    /// that a client wrote and never submitted leave that open.
    func isCertain(row: Int) -> Bool {
        if links.contains(where: \.endedWhileSending) { return false }
        return requestsOfRow[row].allSatisfy { request in
            if case .notProcessed = knowledge(of: request, row: row) { return true }
            return false
        }
    }

    /// The attempts in the ledger are the requests that count.
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

    /// Whether the client took a request back, by what it sent.
    func wasCancelled(link: Int, stream: Int32) -> Bool {
        taps[link].cancelled.contains(stream)
    }

    /// True where the client may have given a request up as not answered in time without anybody's
    /// hearing of it: its RST_STREAM waits behind bytes that the network does not take.
    func mayBeGivenUp(_ copy: Journal.Copy) -> Bool {
        mayBeGivenUp(link: copy.link, sentAt: copy.sentAt)
    }

    /// The same of a request that left at that time.
    func mayBeGivenUp(link id: Int, sentAt: UInt64) -> Bool {
        let link = links[id]
        // The clock may run from the moment before the bytes were taken, and is looked at now and then.
        // A response that came while the process was stopped is believed, however late it is read.
        let isOverdue =
            (arrival ?? clock) + 100 * millisecond > sentAt + plan.requestTimeout
        let isWaiting = link.pendingSend != nil || clock - link.lastSendDone < 50_000
        return isOverdue && isWaiting
    }
}
