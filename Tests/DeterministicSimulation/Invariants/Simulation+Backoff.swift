import Broadside
import BroadsideSupport

/// The time for which an address must be left alone.
struct AddressPause {
    var until: UInt64
    /// Number of consecutive failures.
    var failures: Int
    /// The reactor that saw the last failure, and the time. The other reactors know of it after
    /// that reactor's iteration.
    var reactor: Int
    var since: UInt64
}

extension Simulation {
    /// No reactor connects to an address during the pause after the address's last failure,
    /// whichever reactor saw the failure.
    func checkBackoff(_ id: Int, _ reactor: SimulatedReactor) {
        guard let pause = process.pauses[links[id].address], clock < pause.until else { return }
        if pause.reactor != reactor.index, clock - pause.since < millisecond { return }
        let left = (pause.until - clock) / millisecond
        fail(
            "link \(id) goes to address \(links[id].address) \(left) ms early, after "
                + "\(pause.failures) failures in a row")
    }

    /// An address whose pause is over is used again: among new connections, some go to each
    /// address.
    func checkNeglect(_ id: Int) {
        process.neglected[links[id].address] = 0
        guard process.faults.addressChange == 0, !plan.bounds.changesNames else { return }
        for number in 1...plan.addresses where number != links[id].address {
            let pause = process.facts.addresses[number]?.most ?? 0
            let isUsed = ownLinkIndices.contains {
                links[$0].address == number && links[$0].isOpenAtClient
            }
            guard !isUsed, since(pause) + second < clock else {
                process.neglected[number] = 0
                continue
            }
            process.neglected[number, default: 0] += 1
            if process.neglected[number]! > 6 * plan.reactors + 6 {
                fail("address \(number) gets no connection, although its pause is over")
            }
        }
    }

    /// Records how long an address must be left alone after an attempt: 1 to 60 s, doubled with
    /// each consecutive failure, less a quarter at most. If no connection can be opened, the pause
    /// is at most a sixth of `--give-up-after`.
    func noteAttempt(_ id: Int, _ reactor: SimulatedReactor, hasFailed: Bool) {
        let address = links[id].address
        let failures = process.pauses[address]?.failures ?? 0
        guard hasFailed else {
            process.pauses[address]?.failures = 0
            return
        }
        // An address that name resolution returns again is tried at once.
        guard process.faults.addressChange == 0, !plan.bounds.changesNames,
            isAloneInTrouble(id)
        else { return }
        let backoff = min(
            second << UInt64(min(failures, 6)), 60 * second, max(second, plan.giveUpAfter / 6))
        process.pauses[address] = AddressPause(
            until: clock + backoff - backoff / 4, failures: failures + 1, reactor: reactor.index,
            since: clock)
    }

    /// Whether no other connection to the same address may have started a pause since this
    /// connection was begun. A failure during a pause does not lengthen the pause.
    private func isAloneInTrouble(_ id: Int) -> Bool {
        let link = links[id]
        return links.allSatisfy { other in
            other.id == id || other.epoch != link.epoch || other.address != link.address
                || (!other.isOpenAtClient && other.closedAt < link.openedAt)
                || (other.isConnecting && other.isOpenAtClient
                    && clock - other.openedAt < 14 * second)
        }
    }
}
