import Broadside
import BroadsideEngine
import BroadsideSupport

/// Connections that say nothing: when they are asked whether they live, and how long they are kept.
extension Simulation {
    /// With requests in flight a connection is asked after 10 s without a byte, else after 600 s.
    private static let silenceLimit = 10 * second

    /// A connection that speaks is not asked, and none is asked again before it could respond.
    ///
    /// - Parameter count: PINGs that had been submitted before.
    func checkPings(_ id: Int, after count: Int) {
        let pings = taps[id].pings
        guard pings.count > count else { return }
        if pings.count > count + 1 { fail("link \(id) is asked twice at once") }
        if count > 0, clock - pings[count - 1] < Self.silenceLimit {
            fail("link \(id) is asked again after \((clock - pings[count - 1]) / millisecond) ms")
        }
        // It may have been written while earlier bytes were on their way out.
        let silence = writtenSince(id) - min(writtenSince(id), heardAt(id))
        if links[id].sentToldAt != clock, silence < Self.silenceLimit {
            fail("link \(id) is asked after \(silence / millisecond) ms of silence")
        }
    }

    /// When the client heard of a connection last.
    private func heardAt(_ id: Int) -> UInt64 {
        max(links[id].openedAt, links[id].bytesToldAt)
    }

    /// A connection on which nothing comes although responses are awaited is asked, then given up; one that
    /// is not made, or whose server says nothing at all, after 15 s.
    func checkSilentLink(_ id: Int) {
        let link = links[id]
        guard link.isOpenAtClient, !link.isDeaf, clock > process.frozenUntil + 3 * second else {
            return
        }
        let isWithoutWord = link.bytesToldAt == 0 && plan.gateway == nil
        if link.isConnecting || isWithoutWord, clock - since(link.openedAt) > 16 * second {
            fail("link \(id) is kept, and is not made after 16 s")
        }
        guard plan.gateway == nil, link.goAwayToldAt == nil, link.brokenAt == nil else { return }
        let awaited = taps[id].requests.count - taps[id].cancelled.count - link.endedRequests
        guard awaited > 0, clock - since(max(heardAt(id), link.lastHeardAt)) > 22 * second else {
            return
        }
        fail("link \(id) is kept after 22 s of silence, with \(awaited) requests in flight")
    }

    /// A turn waits for company only where enough responses are to be expected: a millisecond at most, and
    /// half of what a response takes.
    func checkBatching(_ reactor: SimulatedReactor) {
        guard let wait = reactor.machine.batchWait else { return }
        let inFlight = reactor.machine.rowsInHand.inFlight
        let isRight =
            (2...128).contains(wait.completions) && wait.completions < plan.connectionsMost * 2
            && wait.nanoseconds > 0 && wait.nanoseconds <= millisecond && inFlight >= 16
        if !isRight {
            fail(
                "reactor \(reactor.index) waits for \(wait.completions) completions and "
                    + "\(wait.nanoseconds) ns with \(inFlight) requests in flight")
        }
        if reactor.machine.report().latency.count == 0, plan.gateway == nil {
            fail("reactor \(reactor.index) waits for company, and had no response yet")
        }
    }
}
