import Broadside
import BroadsideAPNs
import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// For a campaign to a legacy gateway, compares the ledger's rows with the responses on each
/// connection and their times.
extension Simulation {
    /// Checks a settled row that has a valid token.
    func checkGatewayRow(_ row: LedgerRow, number: Int, token: [UInt8]) {
        let requests = requestsOfRow[number]
        if row.timestamp != nil { fail("row \(number) has a time of APNs'") }
        if row.state != .accepted, row.token != token {
            fail("row \(number) is \(row.state.name) with another token")
        }
        switch row.state {
        case .accepted:
            let fingerprint = token.withUnsafeBytes {
                TokenText.fingerprint(RawSpan(_unsafeBytes: $0))
            }
            if row.fingerprint != fingerprint {
                fail("row \(number) is accepted with another token's fingerprint")
            }
            if row.status != 200 || !row.reason.isEmpty {
                fail("row \(number) is accepted (\(row.status) \(row.reason))")
            }
            if !requests.contains(where: { wasAccepted($0, at: row.settledAt) }) {
                fail("row \(number) is accepted, and no gateway was silent for long enough")
            }
        case .rejected:
            checkNamed(row, number: number, .rejected)
        case .failed where row.status != 0 || row.reason != "ConnectionLost":
            checkNamed(row, number: number, .transient)
        case .failed, .unknown:
            checkLostNotification(row, number: number)
        case .invalid, .skipped:
            fail("row \(number) is \(row.state.name), but it is a good token")
        case .remaining, .inDoubt:
            break
        }
    }

    /// Whether a row was accepted: because an error response names a later notification, because a
    /// shutdown names this notification, or because the gateway was silent for long enough after it
    /// had the row.
    private func wasAccepted(_ request: SentRequest, at settledAt: UInt64) -> Bool {
        let link = links[request.link]
        if let word = link.word, let named = word.position, milliseconds(word.toldAt) == settledAt,
            request.stream < named || (request.stream == named && word.status == 10)
        {
            return true
        }
        let end = taps[request.link].requests[Int(request.stream) - 1].end
        guard let taken = link.takenTimes.first(where: { $0.count >= end })?.time else {
            return false
        }
        // The client's clock may have started 100 ms before the network had the notification.
        let least = milliseconds(taken + plan.silence - 100 * millisecond)
        var most = [link.firstWordAt, link.deafAt].compactMap { $0 }.min() ?? .max
        if link.closedAt > 0 { most = min(most, link.closedAt) }
        return least <= settledAt && (most == .max || settledAt <= milliseconds(most))
    }

    /// Checks that an error response named the row in the recorded millisecond, with the recorded
    /// status and reason.
    private func checkNamed(
        _ row: LedgerRow, number: Int, _ meaning: ServerAnswer.GatewayMeaning
    ) {
        let isNamed = requestsOfRow[number].contains { request in
            guard let word = links[request.link].word, word.position == request.stream else {
                return false
            }
            return milliseconds(word.toldAt) == row.settledAt && Int(word.status) == row.status
                && ServerAnswer.refused(word.status).reason == row.reason
        }
        let isMeant = ServerAnswer.meaning(ofGateway: row.status) == meaning && row.status != 10
        if !isNamed || !isMeant {
            fail("row \(number) is \(row.state.name) (\(row.status) \(row.reason)) for nothing")
        }
    }

    private func checkLostNotification(_ row: LedgerRow, number: Int) {
        if row.status != 0 || row.reason != "ConnectionLost" {
            fail("row \(number) is \(row.state.name) (\(row.status) \(row.reason))")
        }
        if row.state == .unknown, !wasInDoubt[number], isCertain(row: number) {
            fail("row \(number) is unknown, but no notification of it is in doubt")
        }
        if row.state == .unknown, plan.onLost == .resend {
            fail("row \(number) is unknown although lost rows are sent again")
        }
        checkLife(row, number: number)
    }

    /// The ledger of a process that ended in an orderly way has what error responses reported: all
    /// rows before the named notification are accepted, and the named row is rejected, unless
    /// silence had settled it before.
    func checkWordsRecorded(_ states: [RowState], _ process: SimulatedProcess) {
        guard plan.gateway != nil else { return }
        for link in ownLinks {
            guard let word = link.word, let named = word.position else { continue }
            let status = Int(word.status)
            for request in taps[link.id].requests.prefix(Int(named)) {
                let isLast = request.stream == named && status != 10
                guard !isLast || ServerAnswer.meaning(ofGateway: status) == .rejected else {
                    continue
                }
                let isLate = word.toldAt - request.time + second / 5 > plan.silence
                let state = states[request.row]
                if state == .accepted, !isLast || isLate { continue }
                if state == .rejected, isLast { continue }
                fail("row \(request.row) is \(state.name) after error \(status) on link \(link.id)")
            }
        }
    }

    /// Whether a process received enough error responses to justify the stop.
    func isGatewayRefusal(
        _ cause: StopCause, _ rows: [LedgerRow], _ process: SimulatedProcess
    ) -> Bool {
        var statuses: [Int] = []
        for link in ownLinks {
            if let word = link.word { statuses.append(Int(word.status)) }
        }
        switch cause {
        case .heldBack:
            return statuses.contains { ServerAnswer.meaning(ofGateway: $0) == .credential }
        case .onlyBadTokens:
            return statuses.count { $0 == 8 } >= plan.abortAfter
                && !wasAcceptedBefore(rows, process)
        default:
            return statuses.count { [3, 4, 6, 7, 128].contains($0) } >= plan.abortAfter
        }
    }

    /// Whether a process knew of an accepted token when it stopped. The coordinator learns of a
    /// settled row with a short delay.
    private func wasAcceptedBefore(_ rows: [LedgerRow], _ process: SimulatedProcess) -> Bool {
        let heard = milliseconds((process.stoppedAt ?? clock) - second / 5)
        return zip(rows, process.statesAtStart).contains { row, before in
            row.state == .accepted && before != .accepted && row.settledAt < heard
        }
    }
}
