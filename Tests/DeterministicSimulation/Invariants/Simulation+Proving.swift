import Broadside
import BroadsideSupport

/// Checks for addresses whose connections lost requests in flight. A new connection to such an
/// address has at most a quarter as many requests in flight as it had responses, and one at first.
extension Simulation {
    /// Number of finished requests on a connection that may have proved an address good: a quarter
    /// of it is a limit of two streams.
    private static let provedLeast = 8

    /// The client learns that a connection ended without an announcement.
    func noteLosses(_ id: Int) {
        let link = links[id]
        guard plan.gateway == nil, !plan.bounds.changesNames, !link.isDeaf,
            link.isOpenAtClient, link.goAwayToldAt == nil, link.brokenAt == nil,
            link.pendingSend == nil, !process.coordinator.isStopping
        else { return }
        let lost = journal.copies.count {
            $0.link == id && $0.toldAt == nil && !$0.isCancelled && !mayBeGivenUp($0)
                && !wasCancelled(link: id, stream: $0.stream)
        }
        guard lost > link.endedRequests / 4 else { return }
        note { "address \(link.address) lost \(lost) requests of link \(id)" }
        process.lossySince[link.address] = clock
    }

    /// Checks the requests that a connection submits.
    func checkProving(_ id: Int) {
        let address = links[id].address
        guard let since = process.lossySince[address] else { return }
        let mayBeProved = ownLinks.contains {
            $0.address == address && $0.endedRequests >= Self.provedLeast
        }
        if mayBeProved {
            process.lossySince[address] = nil
            return
        }
        guard links[id].openedAt > since else { return }
        let open =
            taps[id].requests.count - links[id].endedRequests - taps[id].cancelled.count
        if open > max(1, links[id].endedRequests / 4) {
            fail(
                "link \(id) has \(open) requests in flight behind \(links[id].endedRequests), and address "
                    + "\(address) lost some")
        }
    }
}
