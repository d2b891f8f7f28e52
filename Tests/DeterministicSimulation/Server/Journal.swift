import Broadside

/// The requests that the servers received, and their outcomes. The ledger must agree with them.
struct Journal {
    enum Resolution {
        case open
        case answered(ServerAnswer)
        /// Refused, or above a GOAWAY's last stream: surely not processed.
        case notProcessed
        /// Reset with another code: possibly processed.
        case reset
    }

    /// A request that reached a server.
    struct Copy {
        let row: Int
        let link: Int
        /// With a legacy gateway: number of the notification on the connection, from 1.
        let stream: Int32
        let epoch: Int
        /// Time at which the client sent the last byte of its header.
        let sentAt: UInt64
        /// Time at which its provider token was made, seconds since 1970; nil if it has none.
        var tokenIssued: UInt64?
        /// Whether all of it has arrived. No server acts on a request without its end.
        var isWhole = false
        var resolution = Resolution.open
        /// Time at which the client received the last byte about the outcome; nil before.
        var toldAt: UInt64?
        /// Whether the client closed its connection in the iteration in which it received the
        /// outcome, or had given up the request.
        var isToldInVain = false
        /// Whether the client canceled the request.
        var isCancelled = false
    }

    private(set) var copies: [Copy] = []
    private(set) var copiesOfRow: [[Int]]

    init(rowCount: Int) {
        copiesOfRow = Array(repeating: [], count: rowCount)
    }

    /// Records a copy of a row that reaches a server.
    mutating func arrived(
        row: Int, link: Int, stream: Int32, tokenIssued: UInt64?, simulation: Simulation
    ) -> Int {
        copies.append(
            Copy(
                row: row, link: link, stream: stream, epoch: simulation.links[link].epoch,
                sentAt: simulation.links[link].arrivingSentAt, tokenIssued: tokenIssued))
        copiesOfRow[row].append(copies.count - 1)
        return copies.count - 1
    }

    /// Records that all of a copy has arrived, and checks that the copy is allowed.
    ///
    /// - Parameter isDiscarded: Whether a legacy gateway discards the copy, so that it is not a
    ///   repetition.
    mutating func completed(_ copy: Int, isDiscarded: Bool = false, simulation: Simulation) {
        copies[copy].isWhole = true
        let (row, link, stream) = (copies[copy].row, copies[copy].link, copies[copy].stream)
        let epoch = copies[copy].epoch
        let resends = simulation.plan.onLost == .resend || simulation.process.reopensUnknown
        // A server that stalled may read a request that the client has given up and sent again
        // elsewhere. The client's RST_STREAM may still wait behind bytes that the server does not
        // accept.
        let isLate =
            !simulation.links[link].isOpenAtClient
            || simulation.wasCancelled(link: link, stream: stream)
            || simulation.mayBeGivenUp(copies[copy])
        for index in copiesOfRow[row] where index != copy && !(resends && isLate) && !isDiscarded {
            // A copy without its end was not processed, unless the client knows a response to it.
            guard
                copies[index].isWhole
                    || copies[index].toldAt != nil
                        && !isUncertain(copies[index], epoch: epoch, simulation: simulation)
            else { continue }
            if let objection = objection(to: copies[index], epoch: epoch, simulation: simulation) {
                simulation.fail(
                    "row \(row) was sent again on link \(link), stream \(stream), although its "
                        + "copy on link \(copies[index].link), stream \(copies[index].stream) "
                        + objection)
            }
        }
    }

    /// Reason why another copy must not exist beside this one; nil if it may.
    private func objection(to copy: Copy, epoch: Int, simulation: Simulation) -> String? {
        let isTold = copy.toldAt != nil
        let resends = simulation.plan.onLost == .resend || simulation.process.reopensUnknown
        if case .notProcessed = copy.resolution, isTold { return nil }
        if case .answered(let answer) = copy.resolution, isTold {
            if answer.allowsRetry || (answer.leavesDoubt && resends) { return nil }
            if answer.allowsRetryLater, copy.epoch < epoch { return nil }
            let isUncertain = isUncertain(copy, epoch: epoch, simulation: simulation)
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

    /// Whether the client may not have learned the outcome that reached it.
    private func isUncertain(_ copy: Copy, epoch: Int, simulation: Simulation) -> Bool {
        copy.epoch != epoch || copy.isToldInVain || copy.isCancelled
            || simulation.wasCancelled(link: copy.link, stream: copy.stream)
    }

    mutating func resolve(_ copy: Int, _ resolution: Resolution) {
        if case .open = copies[copy].resolution { copies[copy].resolution = resolution }
    }

    mutating func told(_ copy: Int, at time: UInt64, isTooLate: Bool) {
        guard copies[copy].toldAt == nil else { return }
        copies[copy].toldAt = time
        copies[copy].isToldInVain = isTooLate
    }

    /// Marks the outcomes that the client received at this instant: it may not have read them.
    mutating func toldInVain(link: Int, at time: UInt64) {
        for index in copies.indices where copies[index].link == link {
            if copies[index].toldAt == time { copies[index].isToldInVain = true }
        }
    }

    mutating func cancelled(_ copy: Int) {
        copies[copy].isCancelled = true
    }
}
