import Broadside
import BroadsideEngine
import BroadsideSupport

/// Checks of silent connections: when the client sends a PING, and how long it keeps them.
extension Simulation {
    /// With requests in flight, the client sends a PING after 10 s without a byte; otherwise, after
    /// 600 s.
    private static let silenceLimit = 10 * second

    /// The client sends no PING on a connection that is not silent, except after a long stall, and no
    /// second PING before the first one could get a response.
    ///
    /// - Parameter count: Number of PINGs that were submitted before.
    func checkPings(_ id: Int, after count: Int) {
        let pings = taps[id].pings
        guard pings.count > count else { return }
        if pings.count > count + 1 { fail("link \(id) is asked twice at once") }
        if count > 0, clock - pings[count - 1] < Self.silenceLimit {
            fail("link \(id) is asked again after \((clock - pings[count - 1]) / millisecond) ms")
        }
        if process.takesFrom > 0, clock < process.takesFrom + second { return }
        // It may have been written while earlier bytes were being sent.
        let silence = writtenSince(id) - min(writtenSince(id), heardAt(id))
        if links[id].sentToldAt != clock, silence < Self.silenceLimit {
            fail("link \(id) is asked after \(silence / millisecond) ms of silence")
        }
    }

    /// Time at which the client last received something on a connection.
    private func heardAt(_ id: Int) -> UInt64 {
        max(links[id].openedAt, links[id].bytesToldAt)
    }

    /// If responses are missing on a silent connection, the client sends a PING, and then closes
    /// the connection. It also closes a connection that is not established after 15 s, or on which
    /// the server has sent nothing by then.
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

    /// A reactor waits to group completions only if it can expect enough responses: for at most a
    /// millisecond, and at most half of the time that a response takes.
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
