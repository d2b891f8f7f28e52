import Broadside

extension World {
    /// A connection that leaves no room for a request while rows wait is replaced after 10 s, the rest
    /// of the time is for the news of it and for the goodbye; one that has room again is used.
    func judgeRoom(_ reactor: SimulatedReactor) {
        let weather = process.weather
        guard weather.starvation != nil || weather.limits?.pausesStreams == true,
            weather.trickle == 0
        else { return }
        let hasRows = !process.shared.isStopping && reactor.machine.hasRowReady(now)
        for id in reactor.linkOfSlot.values.sorted() {
            let link = links[id]
            let isAlive =
                hasRows && link.isOpenAtClient && link.isOpenAtServer && !link.isSilent
                && !link.isSlow && link.stalledUntil <= clock
            judge(&links[id].starvedSince, isAlive && servers[id]?.hasNoRoom == true, 15 * second) {
                "link \(id) has no room for 15 s, and is kept"
            }
            let isQuiet = isAlive && link.countToServer == 0 && link.pendingSend == nil
            judge(
                &links[id].idleSince, isQuiet && maySend && servers[id]?.isIdleWithRoom == true,
                6 * second
            ) {
                "link \(id) has room and gets no request for 6 s, although rows wait"
            }
        }
    }

    private func judge(
        _ since: inout UInt64?, _ holds: Bool, _ limit: UInt64, _ words: () -> String
    ) {
        guard holds else {
            since = nil
            return
        }
        let first = since ?? clock
        since = first
        if clock - first > limit { fail(words()) }
    }

    /// True where nothing but the server keeps requests from being made.
    private var maySend: Bool {
        process.hasAccepted && scenario.ratePerConnection == nil
            && process.rates.allSatisfy { $0.rate == nil }
            && process.weather.expiresTokensBefore == 0 && process.weather.refusesTokensFrom == 0
    }
}

extension SimulatedServer {
    /// True where nothing is in flight although something may be.
    var isIdleWithRoom: Bool {
        // One without a response yet may have to wait for another that tries the address.
        order.isEmpty && !isMute && !hasSaidGoAway && !isStarving && connectionWindow > 0
            && streamLimit > 0 && lastAnswered != nil
    }
}
