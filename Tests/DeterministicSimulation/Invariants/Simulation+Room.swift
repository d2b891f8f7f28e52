import Broadside
import BroadsideSupport

extension Simulation {
    /// A connection that leaves no room for a request while rows wait is replaced after 10 s. The
    /// limit is higher, because the news and the GOAWAY take time. A connection with room gets
    /// requests.
    func checkRoom(_ reactor: SimulatedReactor) {
        guard process.faults.trickle == 0 else { return }
        if process.coordinator.isStopping || !reactor.machine.hasRowReady(now) {
            reactor.lackedRows = true
        }
        guard clock >= reactor.nextRoomLook else { return }
        reactor.nextRoomLook = clock + 100 * millisecond
        let hasRows = !reactor.lackedRows
        let isTrying = process.reactors.contains {
            !$0.linkOfSlot.isEmpty || $0.lookingUpSince != nil
        }
        if isTrying || !hasRows { process.triedAt = clock }
        // An address is left alone for up to 60 s, or for as long as its server requests, and a
        // quarter more.
        if clock - since(process.triedAt) > 80 * second {
            fail("no connection is tried for 80 s, although rows wait")
        }
        reactor.lackedRows = false
        checkOpenConnections(reactor)
        if plan.gateway != nil { checkSilence(of: reactor) }
        for id in reactor.linkOfSlot.values.sorted() {
            checkBroken(id)
            checkGateway(id)
            checkSilentLink(id)
            let link = links[id]
            let isAlive =
                hasRows && link.isOpenAtClient && link.isOpenAtServer && !link.isSilent
                && !link.isSlow && link.stalledUntil <= clock && !link.isDeaf
            check(&links[id].starvedSince, isAlive && servers[id]?.hasNoRoom == true, 15 * second) {
                "link \(id) has no room for 15 s, and is kept"
            }
            let isIdle =
                isAlive && isQuiet(link) && maySend
                && (servers[id]?.isIdleWithRoom == true || isIdleGateway(id))
            // A request that began and ended between two checks counts as use.
            if link.requestsAtLook != taps[id].requests.count { links[id].idleSince = nil }
            links[id].requestsAtLook = taps[id].requests.count
            let wait = isIdle ? legalWait(of: id) : false
            // The reply to a PING may be awaited for 10 s.
            check(&links[id].idleSince, isIdle && !wait, 12 * second) {
                "link \(id) has room and gets no request for 12 s, although rows wait"
            }
        }
    }

    private func isQuiet(_ link: Link) -> Bool {
        link.countToServer == 0 && link.pendingSend == nil
    }

    private func check(
        _ since: inout UInt64?, _ holds: Bool, _ limit: UInt64, _ words: () -> String
    ) {
        guard holds else {
            since = nil
            return
        }
        let first = since ?? clock
        since = first
        if clock - self.since(first) > limit { fail(words()) }
    }

    /// Whether only the server can keep requests from being sent.
    private var maySend: Bool {
        process.hasAccepted && plan.ratePerConnection == nil
            && process.rates.allSatisfy { $0.rate == nil }
            && process.faults.expiresTokensBefore == 0 && process.faults.refusesTokensFrom == 0
    }

    /// Whether a connection may wait although it has room. It may if it had no response yet, and
    /// its address has an outage and is still left alone or tested by another connection. If
    /// several connections wait for each other, one must not wait.
    private func legalWait(of id: Int) -> Bool {
        let link = links[id]
        guard !link.isProven, let address = process.facts.addresses[link.address],
            address.isOutage != false
        else { return false }
        // The client checks every 50 ms, and the news of a pause takes a moment.
        if clock < address.most + second { return true }
        return ownLinkIndices.contains { other in
            let rival = links[other]
            guard other != id, rival.address == link.address, rival.isOpenAtClient,
                !rival.isProven
            else { return false }
            // The responses of a server that fell silent did not arrive, so the request is still in
            // flight.
            let isWaitingToo =
                isQuiet(rival) && !rival.isSilent && servers[other]?.isIdleWithRoom == true
            return rival.isConnecting || !isWaitingToo
        }
    }
}

extension SimulatedServer {
    /// Whether nothing is in flight although a request would be possible.
    var isIdleWithRoom: Bool {
        order.isEmpty && !isMute && !hasSaidGoAway && !isStarving && connectionWindow > 0
            && streamLimit > 0
    }
}
