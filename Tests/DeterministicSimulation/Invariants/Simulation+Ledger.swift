import Broadside
import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// What the ledger says of a row.
struct LedgerRow {
    var state = RowState.remaining
    var status = 0
    var reason = ""
    var timestamp: UInt64?
    var token: [UInt8] = []
    var fingerprint: UInt64?
    var attempts = 0
    /// The number of its arm; 0 where there is none.
    var arm: UInt8 = 0
    /// Milliseconds since 1970; 0 where it is open.
    var settledAt: UInt64 = 0
}

extension Simulation {
    /// Reads the whole ledger and holds it against the journal.
    ///
    /// - Returns: What it says of each row.
    func readLedger(_ index: LedgerIndex) throws(LedgerError) -> [LedgerRow] {
        var rows = [LedgerRow](repeating: LedgerRow(), count: plan.list.tokens.count)
        var verdicts = ChunkVerdicts(of: index)
        for chunk in 0..<index.chunkCount {
            try verdicts.load(chunk: chunk)
            if let fault = verdicts.firstFault { fail("\(fault)") }
            for place in verdicts.rows.indices {
                let number = Int(verdicts.firstRow) + place
                guard number < rows.count else {
                    fail("the ledger has row \(number), which the list has not")
                    continue
                }
                rows[number] = Self.ledgerRow(verdicts, place)
            }
        }
        requestsOfRow = indexRequests()
        for number in rows.indices { check(rows[number], number: number) }
        return rows
    }

    private static func ledgerRow(_ verdicts: borrowing ChunkVerdicts, _ place: Int) -> LedgerRow {
        let verdict = verdicts.rows[place]
        var row = LedgerRow(
            state: verdict.state, status: Int(verdict.status), timestamp: verdict.timestamp,
            attempts: Int(verdict.attempts), arm: verdict.arm,
            settledAt: verdict.settledAtMilliseconds)
        if let text = verdicts.reasonText(ofRow: place) {
            row.reason = Self.text(text)
        } else if let reason = Reason(rawValue: verdict.reason) {
            row.reason = reason.text
        }
        verdicts.appendToken(ofRow: place, to: &row.token)
        if case .fingerprint(let fingerprint) = verdict.token { row.fingerprint = fingerprint }
        return row
    }

    /// Holds one row of the ledger against what the servers saw and answered.
    private func check(_ row: LedgerRow, number: Int) {
        checkArm(row, number: number)
        if row.state == .skipped, plan.isHeldOut(number) { return }
        if row.state == .skipped, isTooLate(number) {
            checkLateRow(row, number: number)
            return
        }
        if plan.gateway != nil, row.state.isSettled, let token = plan.list.tokens[number] {
            checkGatewayRow(row, number: number, token: token)
            return
        }
        let copies = journal.copiesOfRow[number].map { journal.copies[$0] }
        checkRecord(row, number: number, copies: copies)
        guard let token = plan.list.tokens[number] else {
            if row.state.isSettled, row.state != .invalid {
                fail("row \(number) is not a token and \(row.state.name)")
            }
            return
        }
        switch row.state {
        case .accepted:
            let fingerprint = token.withUnsafeBytes {
                TokenText.fingerprint(RawSpan(_unsafeBytes: $0))
            }
            if row.fingerprint != fingerprint {
                fail("row \(number) is accepted with another token's fingerprint")
            }
            if !copies.contains(where: { $0.wasTold { $0.status == 200 } }) {
                fail("row \(number) is accepted, but no server told so")
            }
        case .rejected:
            if row.token != token { fail("row \(number) is rejected with another token") }
            let wasTold = copies.contains {
                $0.wasTold {
                    $0.status == row.status && $0.reason == row.reason
                        && $0.timestamp == row.timestamp
                }
            }
            if !wasTold {
                fail("row \(number) is rejected (\(row.status) \(row.reason)): no server said so")
            }
        case .failed, .unknown:
            if row.token != token { fail("row \(number) is \(row.state.name), another's token") }
            if row.state == .unknown, !wasInDoubt[number], isCertain(row: number) {
                fail("row \(number) is unknown, but no request for it is in doubt")
            }
            if row.state == .unknown, plan.onLost == .resend {
                fail("row \(number) is unknown although lost rows are sent again")
            }
        case .invalid, .skipped:
            fail("row \(number) is \(row.state.name), but it is a good token")
        case .remaining:
            for copy in copies where !copy.isSafeToRepeat {
                fail(
                    "row \(number) is remaining, but its copy on link \(copy.link), stream "
                        + "\(copy.stream) may have been processed")
            }
        case .inDoubt:
            break
        }
    }

    // MARK: Ends

    /// True when every row has its verdict, as far as it can have one.
    var isComplete: Bool {
        guard let states = finalStates else { return false }
        return states.allSatisfy(\.isSettled) && !process.hasDied
            && (plan.onLost == .record || process.reopensUnknown
                || !states.contains { $0 == .failed || $0 == .unknown })
    }

    /// Judges a process that ended by itself.
    func checkEnd(of process: SimulatedProcess) {
        let rows: [LedgerRow]
        do {
            let index = try LedgerIndex(
                segments: segments.flatMap { $0 }.map(\.ledgerSegment),
                campaign: plan.segmentNumber, recordedLengths: manifestLengths)
            rows = try readLedger(index)
            // Not each time: it takes as long as all the rest.
            if rows.allSatisfy(\.state.isSettled) || plan.seed % 4 == 0 {
                checkExport(rows, index)
                checkPrune(rows)
            }
        } catch {
            fail("the ledger can't be read: \(error)")
            return
        }
        let states = rows.map(\.state)
        finalStates = states
        let cause = process.coordinator.stopCause
        note { "stop: \(String(describing: cause))" }
        if let cause {
            checkCause(cause, rows, process)
            checkGivenUp(cause, process)
        }
        checkKept(states, process)
        checkInvalidRows(states, process)
        checkWholeRefusal(rows, process)
        checkRefusalsNoticed(process)
        if case .ledgerFailed = cause {
            return
        }
        checkLeftOver(states, process)
        checkBeyondLimit(states, process)
        checkWaiting(states, process)
        checkSums(process)
        checkCounts(rows, process)
        checkAnswersRecorded(states, process)
        checkWordsRecorded(states, process)
        checkAttempts(rows, process)
    }

    /// Requests of a process whose payload, or whose credential, was refused.
    private func refusedPayloads(_ process: SimulatedProcess) -> Int {
        journal.copies.count { copy in
            guard copy.epoch == process.epoch, copy.toldAt != nil,
                case .answered(let answer) = copy.resolution
            else { return false }
            return answer.status == 413 || answer.status == 403
        }
    }

    /// A process stops early only where the faults gives it reason to.
    private func checkCause(
        _ cause: StopCause, _ rows: [LedgerRow], _ process: SimulatedProcess
    ) {
        let faults = process.faults
        let isJustified: Bool
        switch cause {
        case .complete, .signal, .control, .keyboard, .deadline:
            isJustified = true
        case .allRefused:
            isJustified = plan.part != nil
        case .canaryRefused:
            isJustified = process.coordinator.canary?.verdict.isRefusal == true
        case .refused where plan.gateway != nil, .heldBack where plan.gateway != nil,
            .onlyBadTokens where plan.gateway != nil:
            isJustified = isGatewayRefusal(cause, rows, process)
        case .refused(let refusal) where refusal.status == 413:
            // Odd statuses count among them.
            isJustified =
                refusedPayloads(process) >= plan.abortAfter || faults.oddStatuses.chance > 0
        case .refused, .heldBack, .onlyBadTokens, .tooManyBadTokens:
            isJustified = faults.credential > 0 || faults.oddStatuses.chance > 0
        case .tooManyInvalid(let count, let rows):
            // A list without any valid row is refused whatever the limit.
            isJustified = plan.maxInvalid < 100 || count == rows
        case .expiredToken:
            isJustified = process.facts.mayBeExpired
        case .signingFailed, .topicsRefused:
            isJustified = false
        case .brokenServer:
            isJustified = process.facts.mayBeBroken
        case .gaveUp(let trouble) where trouble.kind == .tokenUpdates:
            // Apple takes a new token after 20 minutes.
            isJustified =
                faults.refusesTokensFrom > 0 && clock - process.startedAt >= 1200 * second
        case .gaveUp, .noResponse, .canaryWithoutResponses:
            if case .noResponse = cause { checkSilence(process) }
            let trouble =
                faults.connectFailure + faults.connectSilence + faults.resolveFailure
                + faults.reset + faults.silence + faults.silentStream + faults.trouble
                + faults.goAway + faults.stall + faults.halfClose + faults.violation
                + faults.duplicate + faults.resetStream + faults.halves.chance
                + faults.oddStatuses.chance
            // A body that windows let through a little at a time may not be there in time.
            let isStarved =
                faults.initialWindow < 1000 && faults.windowDelay >= second
            // A connection that takes next to nothing, or whose window is lost, is found out after 30 s
            // to 40 s; so may be the next.
            let isSlow =
                (faults.slowReading > 0 || faults.windowLoss > 0 || faults.trickle > 0)
                && (plan.giveUpAfter < 80 * second || cause == .canaryWithoutResponses)
            let isGatewayTroubled =
                plan.gateway.map { faults.gateway.isTroubled(command: $0.command) } ?? false
            isJustified =
                trouble > Ambush.chance || hasSprung(process) || isNameless(process)
                || isGatewayTroubled || faults.hostility != nil
                || isStarved
                || isSlow
                || faults.requestsPerConnection > 0
                || (cause == .canaryWithoutResponses && isCanaryUnanswered(process))
        case .superseded:
            isJustified = process.claimedAt != nil
        case .ledgerFailed:
            isJustified = faults.diskFailure > Ambush.chance || hasSprung(process)
        case .listFailed, .listChanged:
            isJustified = process.changedRows != nil
        case .ledgerGone, .listFaulty, .failed:
            // The simulation's ledger has no name, and its list lies in memory and is well-formed.
            isJustified = false
        }
        let isRefusal = process.coordinator.canary?.verdict.isRefusal == true || cause.isInvalidList
        var isPayload = false
        if case .refused(let refusal) = cause { isPayload = refusal.status == 413 }
        var isWhole = false
        if case .allRefused = cause { isWhole = true }
        // A list may begin with so many bad tokens that no server is to blame.
        var isList = false
        if case .onlyBadTokens = cause { isList = plan.gateway != nil }
        let isQuiet = cause == .control && process.hasBecomeQuiet
        let mayComeLast = isRefusal || isPayload || isWhole || isList || isQuiet
        if !isJustified || (process.epoch > plan.faultPlans.count && !mayComeLast) {
            fail("the process stops without reason: \(cause)")
        }
    }

    /// A process that says that no answer came for so long was told none.
    private func checkSilence(_ process: SimulatedProcess) {
        guard let stoppedAt = process.stoppedAt else { return }
        for copy in journal.copies where copy.epoch == process.epoch && !copy.isToldInVain {
            guard case .answered(let answer) = copy.resolution, let toldAt = copy.toldAt,
                toldAt < stoppedAt, stoppedAt - toldAt < plan.giveUpAfter,
                !wasCancelled(link: copy.link, stream: copy.stream),
                // What a gateway's silence had settled before, its word settles no more.
                plan.gateway == nil || toldAt - copy.sentAt + second / 5 < plan.silence
            else { continue }
            fail("gives up \((stoppedAt - toldAt) / second) s after the answer \(answer.status)")
        }
    }

    /// What was settled before stays so.
    private func checkKept(_ states: [RowState], _ process: SimulatedProcess) {
        for (number, before) in process.statesAtStart.enumerated()
        where before.isSettled && !process.reopens.contains(before) && states[number] != before {
            fail("row \(number) was \(before.name) and is \(states[number].name) now")
        }
    }

    private func checkLeftOver(_ states: [RowState], _ process: SimulatedProcess) {
        let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().refusedByCredential }
        let isStopped = process.coordinator.stopCause != nil
        let limit = plan.limit(epoch: process.epoch).map { Int($0) } ?? states.count
        for (number, state) in states.enumerated().prefix(limit)
        where !state.isSettled && !waits(number, epoch: process.epoch) {
            if state == .inDoubt, plan.onLost == .record, isStopped,
                process.statesAtStart[number] == .inDoubt
            {
                continue
            }
            if state == .inDoubt, plan.onLost == .record || (!isStopped && heldBack == 0) {
                fail("row \(number) is in doubt although the process ended in order")
            }
            if !isStopped, heldBack == 0 { fail("row \(number) is \(state.name) at the end") }
        }
        // A process that is stopped, as for too many invalid rows, did not come to every row.
        guard process.epoch > plan.faultPlans.count, plan.onLost == .resend, !isStopped
        else { return }
        for (number, state) in states.enumerated() where state == .failed || state == .unknown {
            // It failed in an earlier pass of the same process.
            if process.statesAtStart[number] == state, !process.reopens.contains(state) { continue }
            if waits(number, epoch: process.epoch) { continue }
            fail("row \(number) is \(state.name) although all is calm")
        }
    }

    /// Rows that are not due stay what they were, but that those in doubt may become unknown, and those that
    /// are reopened remaining, or in doubt.
    private func checkWaiting(_ states: [RowState], _ process: SimulatedProcess) {
        for number in states.indices where waits(number, epoch: process.epoch) {
            let (before, state) = (process.statesAtStart[number], states[number])
            let isReopened = process.reopens.contains(before)
            let isAllowed =
                state == before
                || state == .unknown && (before == .inDoubt || isReopened)
                || (state == .remaining || state == .inDoubt) && isReopened
            if isAllowed { continue }
            fail("row \(number), which is not due, was \(before.name) and is \(state.name)")
        }
    }

    /// Rows behind `--limit` stay what they were, but that those in doubt may become unknown, or invalid, and
    /// those that are reopened remaining.
    private func checkBeyondLimit(_ states: [RowState], _ process: SimulatedProcess) {
        guard let limit = plan.limit(epoch: process.epoch) else { return }
        for number in states.indices.dropFirst(Int(limit)) {
            let (before, state) = (process.statesAtStart[number], states[number])
            let isReopened = process.reopens.contains(before)
            let isAllowed =
                state == before
                || state == .unknown && (before == .inDoubt || isReopened)
                || state == .remaining && isReopened
                || state == .invalid && before == .inDoubt && plan.list.tokens[number] == nil
            if isAllowed { continue }
            fail("row \(number) behind the limit was \(before.name) and is \(state.name)")
        }
    }

    /// What a server answered for good, and told, is in the ledger of a process that ended in order.
    private func checkAnswersRecorded(_ states: [RowState], _ process: SimulatedProcess) {
        guard plan.gateway == nil else { return }
        for copy in journal.copies where copy.epoch == process.epoch && !copy.isToldInVain {
            guard case .answered(let answer) = copy.resolution, copy.toldAt != nil,
                !answer.allowsRetryLater, !wasCancelled(link: copy.link, stream: copy.stream)
            else { continue }
            // Where lost rows are sent again, a later response counts.
            if answer.leavesDoubt, plan.onLost == .resend { continue }
            let expected: RowState =
                answer.leavesDoubt ? .unknown : answer.status == 200 ? .accepted : .rejected
            if states[copy.row] != expected {
                fail(
                    "row \(copy.row) was answered \(answer.status) on link \(copy.link) and is "
                        + "\(states[copy.row].name)")
            }
        }
    }
}

extension StopCause {
    var isInvalidList: Bool {
        if case .tooManyInvalid = self { return true }
        return false
    }
}

extension CanaryGate.Verdict {
    var isRefusal: Bool {
        if case .refused = self { return true }
        return false
    }
}

extension Journal.Copy {
    func wasTold(_ isWanted: (ServerAnswer) -> Bool) -> Bool {
        guard case .answered(let answer) = resolution, toldAt != nil else { return false }
        return isWanted(answer)
    }

    /// The server surely did not act on it, and the client knows.
    var isSafeToRepeat: Bool {
        guard toldAt != nil else { return false }
        switch resolution {
        case .notProcessed: return true
        case .answered(let answer): return answer.allowsRetryLater
        case .open, .reset: return false
        }
    }
}
