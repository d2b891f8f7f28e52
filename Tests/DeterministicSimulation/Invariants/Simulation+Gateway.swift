import Broadside
import BroadsideSupport

/// A legacy gateway's error response, as a client received it.
struct HeardWord {
    var status: UInt8
    /// Number of the notification that the response names, from 1 on this connection; nil if it
    /// names none that was sent.
    var position: Int32?
    /// Time at which the client had received all of it.
    var toldAt: UInt64
}

/// Rules for a client on connections to a legacy gateway.
extension Simulation {
    /// Checks a notification when it arrives.
    ///
    /// - Parameter before: The identifier of the previous notification on the connection.
    /// - Returns: The notification's row.
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
        // An identifier of 0 in an error response names no notification.
        if (notification.identifier != nil) != hasIdentifier || notification.identifier == 0 {
            fail("row \(row) goes out with the identifier \(notification.identifier ?? 0)")
        }
        if hasIdentifier, let before, notification.identifier! <= before {
            fail("row \(row) has identifier \(notification.identifier!) behind \(before)")
        }
        // Command 1 needs an expiration. Without one in the options, it is the last second of 2037.
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

    /// Records what the client learns from the bytes that it has received so far.
    func hear(_ gateway: SimulatedGateway, _ id: Int) {
        if links[id].firstWordAt == nil {
            links[id].firstWordAt = clock
            links[id].noRequestsSince = (clock, "its gateway says its last word")
            learnedTrouble(ofAddress: links[id].address)
        }
        // Rows may be accepted in between without a response, so this violation only counts in the
        // upper bound.
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

    /// Checks the number of notifications in flight. Notifications sent within the last `silence`
    /// can't count as accepted yet.
    func checkWindow(_ id: Int) {
        guard let gateway = plan.gateway, clock > plan.silence else { return }
        let since = clock - plan.silence + second / 5
        let open = taps[id].requests.reversed().prefix { $0.time > since }.count
        if open > gateway.window { fail("\(open) notifications are in flight on link \(id)") }
    }

    /// A connection whose gateway has sent its last response must be closed.
    func checkGateway(_ id: Int) {
        guard let since = links[id].word?.toldAt ?? links[id].firstWordAt, links[id].isOpenAtClient
        else { return }
        let limit = links[id].word == nil ? 4 * second : second
        if clock - self.since(since) > limit {
            fail("link \(id) is kept although its gateway said its last")
        }
    }

    /// If a gateway accepts no more bytes, it may have sent a reason. The client must wait for it
    /// for 2 s, or until the connection ends.
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

    /// Whether a gateway accepts notifications, and all notifications that it has count as
    /// accepted.
    func isIdleGateway(_ id: Int) -> Bool {
        guard gateways[id]?.isGood == true else { return false }
        return max(links[id].lastHeardAt, links[id].openedAt) + plan.silence + 2 * second
            < clock
    }

    /// Silence means acceptance: if no byte moves on any connection of a reactor for long enough,
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
