import Broadside
import BroadsideSupport

/// A legacy gateway's error response, as a client was handed it.
struct HeardWord {
    var status: UInt8
    /// Which of the connection's notifications it names, from 1; nil: none that left.
    var position: Int32?
    /// When the client had all of it.
    var toldAt: UInt64
}

/// What a client has to keep to on connections to a legacy gateway.
extension Simulation {
    /// Judges a notification as it arrives.
    ///
    /// - Parameter before: The identifier of the connection's notification before it.
    /// - Returns: Its row.
    func checkNotification(
        _ notification: NotificationReader.Notification, after before: UInt32?, link: Int
    ) -> Int? {
        guard let gateway = plan.gateway else { return nil }
        guard let row = rowOfToken[notification.token] else {
            fail("a notification on link \(link) has no row's token")
            return nil
        }
        if notification.command != gateway.command {
            fail("row \(row) goes out by command \(notification.command)")
        }
        checkTime(ofRow: row, link: link)
        if notification.payload != plan.payload(row: row) {
            fail("row \(row) goes out with another payload")
        }
        let hasIdentifier = gateway.command > 0
        // A response that names 0 names nothing.
        if (notification.identifier != nil) != hasIdentifier || notification.identifier == 0 {
            fail("row \(row) goes out with the identifier \(notification.identifier ?? 0)")
        }
        if hasIdentifier, let before, notification.identifier! <= before {
            fail("row \(row) has identifier \(notification.identifier!) behind \(before)")
        }
        // Command 1 has to say something: where nothing was asked for, the last second of 2037.
        let unasked: UInt32? = gateway.command == 1 ? 2_145_916_799 : nil
        let expiration = gateway.expiration ?? unasked
        if notification.expiration != expiration {
            fail("row \(row) goes out with the expiration \(notification.expiration ?? 0)")
        }
        if notification.priority != (gateway.command == 2 ? gateway.priority : nil) {
            fail("row \(row) goes out with the priority \(notification.priority ?? 0)")
        }
        checkRepetition(row: row, link: link)
        note { "link \(link): row \(row) reaches the gateway" }
        return row
    }

    /// What the bytes that the client has now tell it.
    func hear(_ gateway: SimulatedGateway, _ id: Int) {
        if links[id].firstWordAt == nil {
            links[id].firstWordAt = clock
            links[id].noRequestsSince = (clock, "its gateway says its last word")
            learnedTrouble(ofAddress: links[id].address)
        }
        // Acceptances, which nobody says, may come in between: so it counts at most.
        if case .junk = gateway.lastWord?.fate { learnedViolation(id, isSure: false) }
        guard let end = gateway.responseEnd, end <= links[id].countAtClient,
            links[id].word == nil, let word = gateway.lastWord
        else { return }
        let named = taps[id].requests.first { $0.identifier == word.identifier }
        links[id].word = HeardWord(status: word.status, position: named?.stream, toldAt: clock)
        note { "link \(id): error \(word.status) names \(named.map { "row \($0.row)" } ?? "none")" }
        guard let named else { return }
        for copy in gateway.copies { journal.told(copy, at: clock, isTooLate: false) }
        guard word.status != 10, ServerAnswer.meaning(ofGateway: Int(word.status)) == .transient
        else { return }
        process.facts.rows[named.row] = ServerFacts.RowPause(
            until: clock + second / 4, why: "its error was \(word.status)")
    }

    /// So many may be out at a time, and of what left a moment ago no silence can be believed yet.
    func checkWindow(_ id: Int) {
        guard let gateway = plan.gateway, clock > plan.silence else { return }
        let since = clock - plan.silence + second / 5
        let open = taps[id].requests.reversed().prefix { $0.time > since }.count
        if open > gateway.window { fail("\(open) notifications are in flight on link \(id)") }
    }

    /// A connection whose gateway has said its last word is of no more use.
    func checkGateway(_ id: Int) {
        guard let since = links[id].word?.toldAt ?? links[id].firstWordAt, links[id].isOpenAtClient
        else { return }
        let limit = links[id].word == nil ? 4 * second : second
        if clock - self.since(since) > limit {
            fail("link \(id) is kept although its gateway said its last")
        }
    }

    /// A gateway that takes nothing any more may have said why: it is heard out, for 2 s or to the end.
    func checkHearing(_ id: Int) {
        let link = links[id]
        guard plan.gateway != nil, let failed = link.sendFailedAt, link.firstWordAt == nil,
            !link.endWasTold, !process.coordinator.isStopping, clock - failed < 2 * second
        else { return }
        let since = failed + second / 5 - min(failed, plan.silence)
        if let last = taps[id].requests.last, last.time > since {
            fail("link \(id) is closed before its gateway could say why it takes no more")
        }
    }

    /// True where a gateway takes notifications, and all that it has counts as accepted.
    func isIdleGateway(_ id: Int) -> Bool {
        guard gateways[id]?.isGood == true else { return false }
        return max(links[id].lastHeardAt, links[id].openedAt) + plan.silence + 2 * second
            < clock
    }

    /// Silence that lasts is believed: where nothing moves on any of a reactor's connections for so long,
    /// no row is in flight.
    func checkSilence(of reactor: SimulatedReactor) {
        var carriers = 0
        for id in reactor.linkOfSlot.values where links[id].isOpenAtClient {
            let link = links[id]
            guard !taps[id].requests.isEmpty || link.pendingSend != nil else { continue }
            let isQuiet =
                link.pendingSend == nil && link.heardAhead == 0 && !link.isDeaf
                && link.firstWordAt == nil
                && since(max(link.lastHeardAt, link.sentToldAt)) + plan.silence + second < clock
            guard isQuiet else { return }
            carriers += 1
        }
        let open = reactor.machine.openRequests
        if carriers > 0, open > 0 {
            fail("\(open) rows are still in flight although the gateway is silent for long enough")
        }
    }
}
