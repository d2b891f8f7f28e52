import Broadside

/// What the servers saw and what they made of it: the truth that the ledger has to tell.
struct Journal {
    enum Resolution {
        case open
        case answered(ServerAnswer)
        /// Refused, or above a GOAWAY's last stream: surely not acted on.
        case notProcessed
        /// Reset with another code: nobody knows.
        case reset
    }

    /// A request that reached a server.
    struct Copy {
        let row: Int
        let link: Int
        /// With a legacy gateway: which of the connection's notifications it is, from 1.
        let stream: Int32
        let epoch: Int
        /// When the last of its header left the client.
        let sentAt: UInt64
        /// When its provider token was made, seconds since 1970; nil where it has none.
        var tokenIssued: UInt64?
        var resolution = Resolution.open
        /// When the client was handed the last byte of what became of it; nil before.
        var toldAt: UInt64?
        /// The client closed its connection in the very turn in which it was told, or had given the
        /// request up.
        var isToldInVain = false
        /// The client took the request back.
        var isCancelled = false
    }

    private(set) var copies: [Copy] = []
    private(set) var copiesOfRow: [[Int]]

    init(rowCount: Int) {
        copiesOfRow = Array(repeating: [], count: rowCount)
    }

    /// A copy of a row reaches a server: whether it may is checked here.
    ///
    /// - Parameter isDiscarded: A legacy gateway does not act on it, so that it is nobody's second.
    mutating func arrived(
        row: Int, link: Int, stream: Int32, tokenIssued: UInt64?, isDiscarded: Bool = false,
        simulation: Simulation
    ) -> Int {
        let epoch = simulation.links[link].epoch
        let resends = simulation.plan.onLost == .resend || simulation.process.reopensUnknown
        // A server that hung gets to what the client has long given up, and sent elsewhere since.
        // That it was may still wait behind bytes which the hung server does not take.
        let isLate =
            !simulation.links[link].isOpenAtClient
            || simulation.wasCancelled(link: link, stream: stream)
            || simulation.mayBeGivenUp(
                Copy(
                    row: row, link: link, stream: stream, epoch: epoch,
                    sentAt: simulation.links[link].arrivingSentAt))
        for index in copiesOfRow[row] where !(resends && isLate) && !isDiscarded {
            if let objection = objection(to: copies[index], epoch: epoch, simulation: simulation) {
                simulation.fail(
                    "row \(row) was sent again on link \(link), stream \(stream), although its "
                        + "copy on link \(copies[index].link), stream \(copies[index].stream) "
                        + objection)
            }
        }
        copies.append(
            Copy(
                row: row, link: link, stream: stream, epoch: epoch,
                sentAt: simulation.links[link].arrivingSentAt, tokenIssued: tokenIssued))
        copiesOfRow[row].append(copies.count - 1)
        return copies.count - 1
    }

    /// Why there must not be another copy beside this one; nil where there may.
    private func objection(to copy: Copy, epoch: Int, simulation: Simulation) -> String? {
        let isTold = copy.toldAt != nil
        let resends = simulation.plan.onLost == .resend || simulation.process.reopensUnknown
        if case .notProcessed = copy.resolution, isTold { return nil }
        if case .answered(let answer) = copy.resolution, isTold {
            if answer.allowsRetry || (answer.leavesDoubt && resends) { return nil }
            if answer.allowsRetryLater, copy.epoch < epoch { return nil }
            let isUncertain =
                copy.epoch != epoch || copy.isToldInVain || copy.isCancelled
                || simulation.wasCancelled(link: copy.link, stream: copy.stream)
            return resends && isUncertain ? nil : "was answered \(answer.status)"
        }
        guard resends else { return "may have been processed" }
        if case .reset = copy.resolution, isTold { return nil }
        let isLost =
            copy.epoch != epoch || !simulation.links[copy.link].isOpenAtClient
            || copy.isCancelled || simulation.wasCancelled(link: copy.link, stream: copy.stream)
            || simulation.mayBeGivenUp(copy)
        return isLost ? nil : "is still in flight"
    }

    mutating func resolve(_ copy: Int, _ resolution: Resolution) {
        if case .open = copies[copy].resolution { copies[copy].resolution = resolution }
    }

    mutating func told(_ copy: Int, at time: UInt64, isTooLate: Bool) {
        guard copies[copy].toldAt == nil else { return }
        copies[copy].toldAt = time
        copies[copy].isToldInVain = isTooLate
    }

    /// What was handed over at this instant may not have been looked at.
    mutating func toldInVain(link: Int, at time: UInt64) {
        for index in copies.indices where copies[index].link == link {
            if copies[index].toldAt == time { copies[index].isToldInVain = true }
        }
    }

    mutating func cancelled(_ copy: Int) {
        copies[copy].isCancelled = true
    }
}
