import Broadside
import BroadsideSupport

/// Records what a process learns from the bytes that it received. The process must act on it from
/// that iteration on.
extension Simulation {
    /// The client received the last byte about the outcome of a request.
    func learned(_ index: Int) {
        let copy = journal.copies[index]
        let link = links[copy.link]
        let isSure =
            !link.isDeaf && link.brokenAt == nil && !copy.isToldInVain && !copy.isCancelled
            && !wasCancelled(link: copy.link, stream: copy.stream)
        note {
            "link \(copy.link): row \(copy.row) is told \(copy.resolution)\(isSure ? "" : ", perhaps")"
        }
        switch copy.resolution {
        case .notProcessed:
            learnedRefusal(copy.link, row: copy.row, isSure: isSure)
        case .answered(let answer):
            links[copy.link].endedRequests += 1
            links[copy.link].trial.ended += 1
            process.responses.append((index, clock, isSure))
            if answer.reason == "TooManyProviderTokenUpdates" { process.updatesRefusedAt = clock }
            learned(answer, copy, isSure: isSure)
        case .open, .reset:
            links[copy.link].endedRequests += 1
            links[copy.link].trial.ended += 1
            // Several requests may end in this way. The last one decides.
            learnedTrouble(ofAddress: links[copy.link].address)
        }
    }

    /// A request was refused without being processed, so its row and its connection must wait.
    func learnedRefusal(_ id: Int, row: Int?, isSure: Bool) {
        links[id].endedRequests += 1
        links[id].trial.ended += 1
        if isSure {
            links[id].refusal.refused(clock)
        } else {
            links[id].refusal.mayBeRefused(clock)
        }
        links[id].refusedAt = clock
        process.facts.refusals[refusalKey(links[id])] = links[id].refusal
        guard isSure, let row else { return }
        process.facts.rows[row] = ServerFacts.RowPause(
            until: links[id].refusal.least, why: "it was refused")
    }

    /// Each reactor remembers refusals separately.
    func refusalKey(_ link: Link) -> Int { link.reactor << 8 | link.address }

    /// Pause that a new connection takes over from the previous connection. With only one
    /// connection in all, the pause is known exactly.
    func inheritedRefusal(_ link: Link) -> RefusalModel {
        guard !plan.bounds.changesNames else { return .inherited(clock) }
        guard let model = process.facts.refusals[refusalKey(link)] else { return RefusalModel() }
        return plan.connectionsMost == 1 ? model : .inherited(clock)
    }

    private func learned(_ answer: ServerAnswer, _ copy: Journal.Copy, isSure: Bool) {
        let id = copy.link
        links[id].responses += 1
        links[id].refusal.responded(isSure: isSure)
        if plan.connectionsMost == 1 {
            process.facts.refusals[refusalKey(links[id])]?.responded(isSure: false)
        }
        let isExpired = answer.reason == "ExpiredProviderToken"
        if !isExpired {
            process.facts.expiredLeast.removeAll()
            if isSure { process.facts.expiredMost.removeAll() }
        }
        if answer.status == 200 {
            process.facts.brokenLeast = 0
            if isSure { process.facts.endSeries() }
        }
        if isSure { noteRowPause(answer, row: copy.row) }
        if answer.status >= 500 {
            if isSure { links[id].serverErrorsInARow += 1 }
            let isServers = isSure && !mayConcernRow(answer, copy)
            process.facts.troubledRows.insert(copy.row)
            if links[id].serverErrorsInARow > errorsLimit(id) {
                links[id].doubtedSince = links[id].doubtedSince ?? clock
            }
            learnedTrouble(answer, id, isSure: isServers)
            return
        }
        let isFirst = !links[id].isProven
        links[id].serverErrorsInARow = 0
        links[id].doubtedSince = nil
        links[id].isProven = true
        if isExpired {
            learnedExpired(copy, isSure: isSure)
        } else if isFirst || !isSure {
            // After server errors, the connection may not be in use any more.
            learnedRecovery(links[id].address, isSure: isSure && links[id].responses == 1)
        }
    }

    /// Number of consecutive server errors that may say nothing about the server: 16, but none on a
    /// connection without any other response.
    private func errorsLimit(_ id: Int) -> Int { links[id].isProven ? 16 : 0 }

    /// Whether a server error may concern only its row: the row had a server error before, and there
    /// were few errors in a row, or requests in flight may still get another response.
    private func mayConcernRow(_ answer: ServerAnswer, _ copy: Journal.Copy) -> Bool {
        let link = links[copy.link]
        let mayAwaitOthers =
            link.pendingSend != nil || taps[copy.link].requests.count > link.endedRequests
        return process.facts.troubledRows.contains(copy.row) && answer.reason != "Shutdown"
            && (mayAwaitOthers || link.serverErrorsInARow <= errorsLimit(copy.link))
    }

    /// A row that was refused for now must wait for as long as its response says, and at least for
    /// half of the shortest backoff.
    private func noteRowPause(_ answer: ServerAnswer, row: Int) {
        let least: UInt64
        switch answer.status {
        case 403 where answer.reason == "InvalidProviderToken":
            // The row is sent once more, possibly with another token.
            guard !process.facts.invalidTokens.insert(row).inserted else { return }
            process.facts.rows[row] = ServerFacts.RowPause(
                until: .max, why: "its provider token was called invalid twice")
            return
        case 429 where answer.reason == "TooManyProviderTokenUpdates": least = second
        case 502, 504: return
        case 408, 421, 425, 429, 500...: least = second / 4
        default: return
        }
        let asked = UInt64(answer.retryAfter ?? 0) * second
        process.facts.rows[row] = ServerFacts.RowPause(
            until: clock + max(least, asked),
            why: "its response was \(answer.status), Retry-After \(answer.retryAfter ?? 0)")
    }

    /// A server reports trouble: its connection gets no more requests, and its address is left
    /// alone.
    private func learnedTrouble(_ answer: ServerAnswer, _ id: Int, isSure: Bool) {
        let number = links[id].address
        var address = process.facts.addresses[number] ?? ServerFacts.Address()
        if isSure, links[id].noRequestsSince == nil {
            links[id].noRequestsSince = (clock, "its server is in trouble")
            links[id].isSurelyDrained = !links[id].endWasTold && links[id].sendFailedAt == nil
        }
        if let asked = answer.retryAfter {
            let pause = UInt64(asked) * second
            if isSure { address.least = max(address.least, clock + pause) }
            // Up to a quarter of jitter, and one second of tolerance.
            address.most = max(address.most, clock + pause + max(pause, second) / 4 + second)
            address.failuresMost += 1
        } else {
            if isSure, address.most <= clock { address.least = clock + second * 3 / 4 }
            address.mayPause(clock)
        }
        if isSure, address.isOutage != true {
            address.isOutage = true
            address.since = clock
            for other in ownLinkIndices where links[other].address == number {
                links[other].trial = Link.Trial()
            }
        } else if !isSure, address.isOutage == false {
            address.isOutage = nil
        }
        if isSure { address.toldAt = clock }
        process.facts.addresses[number] = address
    }

    /// The first response on a new connection was good, surely or possibly.
    private func learnedRecovery(_ number: Int, isSure: Bool) {
        guard var address = process.facts.addresses[number] else { return }
        // A good response during a pause changes nothing.
        if isSure, address.most <= clock {
            address = ServerFacts.Address()
        } else if address.isOutage == true {
            address.isOutage = nil
        }
        process.facts.addresses[number] = address
    }

    /// A server reports a provider token as expired, so the connection gets no more requests. If
    /// the token is of the current half-hour, the third consecutive connection ends the run.
    private func learnedExpired(_ copy: Journal.Copy, isSure: Bool) {
        let id = copy.link
        if isSure, links[id].noRequestsSince == nil {
            links[id].noRequestsSince = (clock, "its server calls the provider token expired")
            links[id].isSurelyDrained = !links[id].endWasTold && links[id].sendFailedAt == nil
        }
        var address = process.facts.addresses[links[id].address] ?? ServerFacts.Address()
        // A wrong clock pauses the address, and the response to a new connection ends the outage.
        address.isOutage = nil
        address.mayPause(clock)
        process.facts.addresses[links[id].address] = address
        process.facts.expiredMost.insert(id)
        if process.facts.expiredMost.count >= 3 { process.facts.mayBeExpired = true }
        let seconds = now.wallMilliseconds / 1000
        // The token in use is of the current half-hour, and still is when the client receives the
        // response.
        let isCurrent =
            copy.tokenIssued.map { $0 == process.newestToken && seconds + 1 < $0 + 1800 } ?? false
        if isSure, isCurrent, process.faults.refusesTokensFrom == 0 {
            process.facts.expiredLeast.insert(id)
        }
    }

    /// The client received bytes that HTTP/2 does not allow.
    ///
    /// - Parameter isSure: Whether the client has received all of them and must notice.
    func learnedViolation(_ id: Int, isSure: Bool) {
        if links[id].brokenAt == nil {
            note { "link \(id): the client is told what breaks HTTP/2" }
            links[id].brokenAt = clock
            links[id].brokenInSeries = process.facts.series
            process.facts.mayBreak(clock)
        } else if links[id].brokenInSeries != process.facts.series {
            // A row was accepted between the first and the last of these bytes. The violation may
            // count after that row.
            links[id].brokenInSeries = process.facts.series
            process.facts.mayBreakLater()
        }
        guard isSure, !links[id].isDeaf, !links[id].isSurelyBroken else { return }
        links[id].isSurelyBroken = true
        process.facts.surelyBroke(clock)
        links[id].noRequestsSince = (clock, "its server broke HTTP/2")
    }

    /// A connection ended in any way, or can't be used any more: its address may be left alone for
    /// a while.
    func learnedTrouble(ofAddress number: Int) {
        process.facts.addresses[number, default: .init()].mayPause(clock)
    }

    /// Links of the process. Links of another process that runs at the same time may be between
    /// them.
    var ownLinks: LazyFilterSequence<ArraySlice<Link>> {
        let epoch = process.epoch
        return links[process.firstLink...].lazy.filter { $0.epoch == epoch }
    }

    var ownLinkIndices: LazyFilterSequence<Range<Int>> {
        let epoch = process.epoch
        return (process.firstLink..<links.count).lazy.filter { self.links[$0].epoch == epoch }
    }
}
