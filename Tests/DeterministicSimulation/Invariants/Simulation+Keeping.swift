import Broadside
import BroadsideSupport

/// Compares the requests that are sent with what the process has received before.
extension Simulation {
    /// Earliest time at which the first of the bytes that are submitted now was written. During a
    /// send, the client may have written more bytes after those being sent.
    func writtenSince(_ id: Int) -> UInt64 {
        links[id].sentToldAt == clock ? links[id].lastHeardAt : clock
    }

    /// Checks the requests that a connection submits.
    ///
    /// - Parameter count: Number of requests that it submitted before.
    func checkRequests(_ id: Int, after count: Int) {
        let requests = taps[id].requests[count...]
        guard !requests.isEmpty else { return }
        let since = writtenSince(id)
        if let (time, why) = links[id].noRequestsSince, time <= since {
            fail("link \(id) gets a request although \(why)")
        }
        if let time = links[id].doubtedSince, time <= since {
            fail("link \(id) gets a request although its last responses are server errors")
        }
        // With a single connection, the connection is replaced as soon as the credentials were read
        // again.
        if isLonely, links[id].openedAt < process.reloadedAt,
            self.since(process.reloadedAt) + second < since
        {
            fail("link \(id) gets a request, and is older than the credentials")
        }
        if links[id].refusedAt <= since, links[id].refusal.least > clock {
            let left = (links[id].refusal.least - clock) / 1000
            fail("link \(id) gets a request \(left) us early after a refusal")
        }
        for request in requests {
            checkReserved(request.row, link: id)
            guard let pause = process.facts.rows[request.row] else { continue }
            process.facts.rows[request.row] = nil
            guard pause.until > clock else { continue }
            let left = pause.until == .max ? "again" : "\((pause.until - clock) / 1000) us early"
            fail("row \(request.row) goes out \(left): \(pause.why)")
        }
        if plan.gateway != nil { checkWindow(id) }
        checkProving(id)
        checkTrial(id, count: requests.count, since: since)
    }

    /// After a server reported trouble, its address is left alone. Then one new connection tests it:
    /// with one request, and with at most twice as many after each failure, up to 16. Connections
    /// that had a response before are not new.
    private func checkTrial(_ id: Int, count: Int, since: UInt64) {
        let number = links[id].address
        guard let address = process.facts.addresses[number], address.isOutage == true,
            address.since <= since, links[id].responses == 0, !plan.bounds.changesNames
        else { return }
        if clock < address.least {
            let left = (address.least - clock) / millisecond
            fail("link \(id) gets a request \(left) ms before its address's pause is over")
        }
        links[id].trial.requests += count
        links[id].trial.last = clock
        let open = openTrials(id)
        if open > min(1 << min(address.failuresMost, 4), 16) {
            fail("link \(id) tries address \(number) with \(open) requests at once")
        }
        for other in ownLinkIndices where other != id {
            let link = links[other]
            guard link.address == number, link.isOpenAtClient, link.responses == 0,
                !link.isDeaf, link.goAwayToldAt == nil, link.openedAt >= process.reloadedAt,
                link.brokenAt == nil,
                clock - link.trial.last + 200 * millisecond
                    < plan.requestTimeout
            else { continue }
            if openTrials(other) > 0 {
                fail("links \(other) and \(id) try address \(number) at once")
            }
        }
    }

    /// Lower bound of the number of requests of a connection that test its address and are in
    /// flight.
    private func openTrials(_ id: Int) -> Int {
        links[id].trial.requests - links[id].trial.ended - taps[id].cancelled.count
    }

    /// The run ends if its servers require it, and sends nothing after it was told to stop.
    func checkStopping(_ reactor: SimulatedReactor, wasStopping: Bool) {
        if let why = process.facts.mustStop, !process.coordinator.isStopping {
            fail("the run continues although \(why)")
        }
        if wasStopping, reactor.machine.statistics.requests > reactor.countedRequests {
            fail("reactor \(reactor.index) sends after the word to stop")
        }
    }

    /// A connection whose server broke HTTP/2 must be closed.
    func checkBroken(_ id: Int) {
        guard links[id].isSurelyBroken, links[id].isOpenAtClient, let broken = links[id].brokenAt,
            clock - since(broken) > 3 * second
        else { return }
        fail("link \(id) is kept although its server broke HTTP/2")
    }

    /// An address is left alone for as long as its server requested.
    func checkAsked(_ id: Int) {
        guard !plan.bounds.changesNames,
            let address = process.facts.addresses[links[id].address], address.least > clock,
            address.toldAt < clock
        else { return }
        let left = (address.least - clock) / millisecond
        fail("link \(id) goes to address \(links[id].address) \(left) ms before it may")
    }
}
