import Broadside
import BroadsideEngine
import BroadsideHygiene
import BroadsideSupport

/// Compares what a process reports about itself with what it received: its latencies, its
/// connections and its events.
extension Simulation {
    func checkReports(_ counted: RunStatistics, _ process: SimulatedProcess) {
        var tally = ConnectionTally()
        var latency = LatencyCounts()
        for reactor in process.reactors {
            let report = reactor.machine.report()
            for connection in report.connections { tally.add(connection) }
            let before = latency
            latency.add(report.latency)
            checkForms(of: report.latency)
            checkDifference(latency, before, report.latency)
        }
        checkForms(of: latency)
        if plan.gateway == nil {
            checkResponseCounts(tally, latency, counted, process)
            checkLatencies(latency, process)
        } else {
            checkUntimedCounts(tally, latency, counted, process)
        }
        checkConnectionCounts(tally, counted, process)
        checkEvents(tally, counted, process)
        checkLimits(counted, process)
    }

    private func checkResponseCounts(
        _ tally: ConnectionTally, _ latency: LatencyCounts, _ counted: RunStatistics,
        _ process: SimulatedProcess
    ) {
        let sure = process.responses.count(where: \.isSure)
        if !(sure...process.responses.count).contains(Int(latency.count)) {
            fail("\(latency.count) latencies are counted for \(process.responses.count) responses")
        }
        if tally.responses != latency.count
            || tally.latencySumNanoseconds != latency.sumNanoseconds
            || tally.latencyMaximumNanoseconds != latency.maximumNanoseconds
        {
            fail("connections count \(tally.responses) responses, the reactors \(latency.count)")
        }
        // Whatever other statuses mean, these ask the sender to wait.
        var least: UInt64 = 0
        var most: UInt64 = 0
        for response in process.responses {
            guard case .answered(let answer) = journal.copies[response.copy].resolution,
                answer.status != 200
            else { continue }
            most += 1
            if response.isSure, answer.status == 429 || answer.status >= 500 { least += 1 }
        }
        if !(least...most).contains(counted.pushbacks) {
            fail("\(counted.pushbacks) responses count as pushbacks of \(least) to \(most)")
        }
    }

    /// With a legacy gateway, responses have no latency: a row is settled by silence, or by another
    /// row's error response.
    private func checkUntimedCounts(
        _ tally: ConnectionTally, _ latency: LatencyCounts, _ counted: RunStatistics,
        _ process: SimulatedProcess
    ) {
        if latency.count != 0 || tally.responses != counted.untimedResponses {
            fail(
                "connections count \(tally.responses) responses, the reactors "
                    + "\(counted.untimedResponses) and \(latency.count) with a latency")
        }
        // One response per accepted row, and at most one error response per connection.
        let most = counted.counts[.accepted] + UInt64(ownLinks.count { $0.word != nil })
        if !(counted.counts[.accepted]...most).contains(tally.responses) {
            fail(
                "\(tally.responses) responses for \(counted.counts[.accepted]) accepted rows, of \(most)"
            )
        }
    }

    /// Whether there is one reactor with one connection. It writes and submits its requests one
    /// after the other, so the latency of each can be computed.
    var isLonely: Bool {
        plan.reactors == 1 && plan.connectionsMost == 1
    }

    private func checkLatencies(_ latency: LatencyCounts, _ process: SimulatedProcess) {
        let faults = process.faults
        // If bytes are sent slowly, a request's latency starts again. This also seems to happen to
        // a process that was frozen: its first iterations come before it learns that the bytes were
        // sent.
        guard isLonely, process.responses.allSatisfy(\.isSure), faults.shortSend == 0,
            faults.slowReading == 0, !ownLinks.contains(where: \.wasSendBlocked),
            process.frozenUntil == 0
        else { return }
        var sentAt: [StreamOfLink: UInt64] = [:]
        var made = process.requestsMadeAt[...]
        for link in ownLinks {
            for request in taps[link.id].requests {
                // The time at which its last part was made is unknown.
                guard let time = made.popFirst(), !taps[link.id].isInParts(request) else { return }
                sentAt[StreamOfLink(link: link.id, stream: request.stream)] = time
            }
        }
        guard made.isEmpty else { return }
        var expected: [UInt64] = []
        for response in process.responses {
            let copy = journal.copies[response.copy]
            guard let sent = sentAt[StreamOfLink(link: copy.link, stream: copy.stream)] else {
                return
            }
            expected.append(response.time - sent)
        }
        expected.sort()
        if latency.sumNanoseconds != expected.reduce(0, +)
            || latency.maximumNanoseconds != expected.last ?? 0
        {
            fail(
                "latencies of \(latency.sumNanoseconds) ns in all, at most "
                    + "\(latency.maximumNanoseconds), are \(expected.reduce(0, +)) and "
                    + "\(expected.last ?? 0)")
        }
        guard !expected.isEmpty else { return }
        checkCounts(of: latency, expected)
        for share in [0.01, 0.5, 0.9, 1] {
            let rank = max(1, Int((share * Double(expected.count)).rounded(.up)))
            let exact = expected[rank - 1]
            let told = latency.quantile(share) ?? 0
            // A bucket's width is a thirty-second of its value.
            if told < exact || told > exact + exact / 32 + 1 {
                fail("\(share) of the responses took \(told) ns, and it was \(exact)")
            }
        }
    }

    private struct StreamOfLink: Hashable {
        var link: Int
        var stream: Int32
    }

    private func checkConnectionCounts(
        _ tally: ConnectionTally, _ counted: RunStatistics, _ process: SimulatedProcess
    ) {
        let own = ownLinks
        if tally.goAways != counted.goAways || tally.failures != counted.failures {
            fail(
                "connections count \(tally.goAways) GOAWAYs and \(tally.failures) failures, the "
                    + "reactors \(counted.goAways) and \(counted.failures)")
        }
        let leastGoAways = own.count(where: \.hasSurelyGoneAway)
        let mostGoAways = own.reduce(0) { $0 + $1.goAwayCount }
        if Int(counted.goAways) < leastGoAways || Int(counted.goAways) > mostGoAways {
            fail("\(counted.goAways) GOAWAYs are counted of \(leastGoAways) to \(mostGoAways)")
        }
        let (broken, refused) = (
            own.count(where: \.isSurelyBroken), own.count(where: \.isSurelyRefused)
        )
        if Int(counted.failures) < broken + refused {
            fail(
                "\(counted.failures) failures are counted, \(broken) servers broke HTTP/2 and "
                    + "\(refused) were not reached")
        }
        let answering = own.count { $0.responses > 0 }
        if Int(tally.opened) < answering || tally.opened > counted.connectionsOpened {
            fail("\(tally.opened) connections were open, \(answering) of them gave responses")
        }
    }

    /// Each counted occurrence has its event in the log.
    private func checkEvents(
        _ tally: ConnectionTally, _ counted: RunStatistics, _ process: SimulatedProcess
    ) {
        var counts: [RunEvent.Kind: UInt64] = [:]
        var all = EventBuffer()
        var number: UInt64 = 0
        for reactor in process.reactors {
            let told = reactor.machine.takeEvents()
            number += UInt64(told.events.count) + told.lost
            for event in told.events { checkLevel(event) }
            all.add(told)
        }
        if UInt64(all.events.count) + all.lost != number {
            fail("\(all.events.count) events and \(all.lost) that are lost, of \(number)")
        }
        guard all.lost == 0 else { return }
        for event in all.events { counts[event.kind, default: 0] += 1 }
        for (kind, count) in [
            (RunEvent.Kind.connectionOpen, tally.opened), (.goAway, tally.goAways),
            (.connectionLost, tally.failures),
        ] where counts[kind] ?? 0 != count {
            fail("\(counts[kind] ?? 0) events \(kind.rawValue) are told of \(count)")
        }
        if counts[.pace] ?? 0 > 0, counted.pace.worst == nil {
            fail("connections are held to fewer requests, and the summary has no word of it")
        }
        // A connection that is replaced for another reason is already draining.
        let faults = process.faults
        let mayBeReplaced =
            process.reloadedAt > 0 || faults.silence + faults.silentStream > 0
            || faults.resetStream + faults.stall + faults.halfClose > 0
            || faults.windowLoss + faults.slowReading > 0 || faults.trickle > 0
            || faults.starvation != nil || faults.limits != nil || faults.initialWindow < 1000
        let drained = ownLinks.count(where: \.isSurelyDrained)
        if !mayBeReplaced, faults.goAway + faults.reset == 0,
            Int(counts[.connectionDrained] ?? 0) < drained
        {
            fail("\(counts[.connectionDrained] ?? 0) connections are told to drain of \(drained)")
        }
    }

    /// The warnings in the log are exactly the events that went wrong.
    private func checkLevel(_ event: RunEvent) {
        let level: RunEvent.Level
        switch event.kind {
        case .connectionOpen, .connectionClosed, .pace: level = .info
        case .connectionDrained: level = .notice
        case .goAway:
            // A server that ends a connection in an orderly way after it has served requests.
            let isOrderly =
                event.message.contains("GOAWAY NO_ERROR") && event.fields.count ?? 0 > 0
            level = isOrderly ? .notice : .warning
        case .connectionLost: level = .warning
        case .errorPacket:
            // A gateway that ends a connection after all its notifications.
            let isOrderly = event.message.contains("(Shutdown) after the last notification")
            level = isOrderly ? .info : .warning
        default: return
        }
        if event.level != level { fail("\(event.level): \(event.message)") }
    }

    /// The time that connections spent counts each instant at most once per connection.
    private func checkLimits(_ counted: RunStatistics, _ process: SimulatedProcess) {
        let most = process.reactors.reduce(UInt64(0)) { sum, _ in
            sum + (clock - process.startedAt) * UInt64(plan.connectionsMost)
        }
        let total = counted.limited.reduce(0, +)
        if total > most {
            fail("connections waited for \(total) ns of \(most)")
        }
    }

    /// Connections that a reactor reports as open are open.
    func checkOpenConnections(_ reactor: SimulatedReactor) {
        let own = reactor.linkOfSlot.values.map { links[$0] }
        let most = own.count { $0.isOpenAtClient && !$0.isConnecting }
        let least = own.count {
            $0.isOpenAtClient && $0.responses > 0 && !$0.isDeaf && $0.brokenAt == nil
                && !$0.endWasTold && $0.noRequestsSince == nil && !isWindowLow($0.id)
        }
        let told = reactor.machine.snapshot().openConnections
        if told < least || told > most {
            fail("reactor \(reactor.index) calls \(told) connections open of \(least) to \(most)")
        }
        // A connection that drains for any reason does not count as established.
        let standing = reactor.machine.establishedConnections
        let mayDrain = mayDrainUnseen || reactor.machine.rowsInHand.all == 0
        if standing > most || (standing < least && !mayDrain) {
            fail(
                "\(standing) connections of reactor \(reactor.index) stand, \(least) to \(most) do")
        }
    }

    /// Servers return no window credit for refused requests. A window that these have used up makes
    /// the client drain the connection.
    private func isWindowLow(_ id: Int) -> Bool {
        servers[id].map { $0.connectionWindow < 4096 } ?? false
    }

    /// Whether connections may be replaced, or may end with the run, without any sign from their
    /// servers.
    private var mayDrainUnseen: Bool {
        let faults = process.faults
        return process.coordinator.isStopping || process.reloadedAt > 0
            || process.coordinator.connectionTarget != nil || process.facts.brokenMost > 0
            || faults.silence + faults.silentStream + faults.resetStream + faults.stall > 0
            || faults.halfClose + faults.windowLoss + faults.slowReading > 0
            || faults.initialWindow < 1000 || faults.starvation != nil || faults.limits != nil
            || faults.trickle > 0
            || faults.answerDelay >= second || faults.halves.chance > 0
            || faults.oddStatuses.chance + faults.trouble > 0 || faults.hostility != nil
            || process.takesFrom > 0
    }
}
