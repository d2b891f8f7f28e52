import Broadside
import BroadsideAPNs
import BroadsideHygiene
import BroadsideSupport

/// Start and end of a process, in milliseconds since 1970.
struct ProcessLife {
    let epoch: Int
    let start: UInt64
    var end: UInt64
}

/// Checks each row's time, attempts and reason, as far as the row's state determines them.
extension Simulation {
    func milliseconds(_ time: UInt64) -> UInt64 { wallStart + time / millisecond }

    /// Checks the time at which a row was settled, and the other fields of its record.
    func checkRecord(_ row: LedgerRow, number: Int, copies: [Journal.Copy]) {
        guard row.state.isSettled else {
            if row.status != 0 || row.timestamp != nil || row.settledAt != 0 {
                fail("row \(number) is \(row.state.name), and has what settled rows have")
            }
            return
        }
        switch row.state {
        case .accepted:
            if row.status != 200 || !row.reason.isEmpty || row.timestamp != nil {
                fail("row \(number) is accepted (\(row.status) \(row.reason))")
            }
            if !wasTold(copies, at: row.settledAt, { $0.status == 200 }) {
                fail("row \(number) was not accepted at \(row.settledAt)")
            }
        case .rejected:
            let isTold = wasTold(copies, at: row.settledAt) {
                $0.status == row.status && $0.reason == row.reason
            }
            if !isTold { fail("row \(number) was not rejected at \(row.settledAt)") }
        case .failed, .unknown:
            checkLost(row, number: number, copies: copies)
        case .invalid:
            if row.status != 0 || row.attempts != 0 || row.reason != "MalformedToken"
                || row.token != plan.list.texts[number]
            {
                fail(
                    "row \(number) is invalid (\(row.reason)), \(row.attempts) attempts, "
                        + "\"\(Self.text(row.token))\"")
            }
            checkLife(row, number: number)
        case .skipped, .remaining, .inDoubt:
            break
        }
    }

    private func wasTold(
        _ copies: [Journal.Copy], at time: UInt64, _ isMeant: (ServerAnswer) -> Bool
    ) -> Bool {
        copies.contains { copy in
            copy.wasTold(isMeant) && copy.toldAt.map { milliseconds($0) } == time
        }
    }

    /// A row that failed because of a response has that response's status, reason and time. A row
    /// that a response leaves in doubt has the response's status and time. A lost row has no
    /// status; its time is one at which a process ran, and is not before its requests.
    private func checkLost(_ row: LedgerRow, number: Int, copies: [Journal.Copy]) {
        if row.timestamp != nil { fail("row \(number) is \(row.state.name) with a time of APNs'") }
        if row.status != 0 {
            let isTold = wasTold(copies, at: row.settledAt) {
                let isLost = $0.leavesDoubt && row.reason == "ConnectionLost"
                let isRefused =
                    $0.allowsRetryLater && $0.reason ?? "" == row.reason && row.state == .failed
                return $0.status == row.status && (isLost || isRefused)
            }
            if !isTold {
                fail(
                    "row \(number) is \(row.state.name) (\(row.status) \(row.reason)): nothing said "
                        + "so then")
            }
            return
        }
        if row.status != 0 || (row.reason != "Timeout" && row.reason != "ConnectionLost") {
            fail("row \(number) is \(row.state.name) (\(row.status) \(row.reason))")
        }
        checkLife(row, number: number)
    }

    /// A row was settled while a process ran, and after the requests of that process were sent.
    func checkLife(_ row: LedgerRow, number: Int) {
        guard
            let life = lives.last(where: { $0.start <= row.settledAt && row.settledAt <= $0.end })
        else {
            fail("row \(number) is \(row.state.name) since \(row.settledAt), when nobody lived")
            return
        }
        guard requestsOfRow.indices.contains(number) else { return }
        for request in requestsOfRow[number] where links[request.link].epoch == life.epoch {
            guard milliseconds(request.time) > row.settledAt, !wasDisownedBefore(request) else {
                continue
            }
            fail("row \(number) was settled at \(row.settledAt), before its request left")
        }
    }

    /// Whether a GOAWAY excluded a request before its bytes were sent. The bytes stay in the
    /// connection's buffer, because later header blocks depend on them, while the row is sent on
    /// another connection.
    private func wasDisownedBefore(_ request: SentRequest) -> Bool {
        let link = links[request.link]
        guard let last = link.lastStream else { return false }
        return request.stream > last && link.lastStreamToldAt <= request.time
    }
}
