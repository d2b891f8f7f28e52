import Broadside
import BroadsideSupport

extension Simulation {
    /// A connection that leaves no room for a request while rows wait is replaced after 10 s, the rest
    /// of the time is for the news of it and for the goodbye; one that has room is used.
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
        // An address is left alone for 60 s, or for as long as its server asks, and a quarter.
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
            // A request that came and went between two looks counts as use.
            if link.requestsAtLook != taps[id].requests.count { links[id].idleSince = nil }
            links[id].requestsAtLook = taps[id].requests.count
            let wait = isIdle ? legalWait(of: id) : false
            check(&links[id].idleSince, isIdle && !wait, 6 * second) {
                "link \(id) has room and gets no request for 6 s, although rows wait"
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

    /// True where nothing but the server keeps requests from being made.
    private var maySend: Bool {
        process.hasAccepted && plan.ratePerConnection == nil
            && process.rates.allSatisfy { $0.rate == nil }
            && process.faults.expiresTokensBefore == 0 && process.faults.refusesTokensFrom == 0
    }

    /// Whether a connection may wait although it has room: it had no response yet, its address is in an
    /// outage, and that is left alone still, or tried by another connection. Of several that all
    /// wait for each other, one may not.
    private func legalWait(of id: Int) -> Bool {
        let link = links[id]
        guard link.responses == 0, let address = process.facts.addresses[link.address],
            address.isOutage != false
        else { return false }
        // The client looks every 50 ms, and the news of a pause takes a moment.
        if clock < address.most + second { return true }
        return ownLinkIndices.contains { other in
            let rival = links[other]
            guard other != id, rival.address == link.address, rival.isOpenAtClient,
                rival.responses == 0
            else { return false }
            // What a server that fell silent has answered did not arrive: the request is still out.
            let isWaitingToo =
                isQuiet(rival) && !rival.isSilent && servers[other]?.isIdleWithRoom == true
            return rival.isConnecting || !isWaitingToo
        }
    }
}

extension SimulatedServer {
    /// True where nothing is in flight although something may be.
    var isIdleWithRoom: Bool {
        order.isEmpty && !isMute && !hasSaidGoAway && !isStarving && connectionWindow > 0
            && streamLimit > 0
    }
}
