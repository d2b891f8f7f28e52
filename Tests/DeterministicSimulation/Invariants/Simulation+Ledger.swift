import Broadside
import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// What the ledger has about a row.
struct LedgerRow {
    var state = RowState.remaining
    var status = 0
    var reason = ""
    var timestamp: UInt64?
    var token: [UInt8] = []
    var fingerprint: UInt64?
    var attempts = 0
    /// Number of the row's arm; 0 if there is none.
    var arm: UInt8 = 0
    /// Time of settlement, milliseconds since 1970; 0 if the row is not settled.
    var settledAt: UInt64 = 0
}

extension Simulation {
    /// Reads the whole ledger and compares it with the journal.
    ///
    /// - Returns: What the ledger has about each row.
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

    /// Compares a row of the ledger with the requests that servers received and their responses.
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

    /// Whether every row has its final state, as far as the plan allows it.
    var isComplete: Bool {
        guard let states = finalStates, story.continuing == nil else { return false }
        return states.allSatisfy(\.isSettled) && !process.hasDied
            && (plan.onLost == .record || process.reopensUnknown
                || !states.contains { $0 == .failed || $0 == .unknown })
    }

    /// Checks a process that was not killed.
    func checkEnd(of process: SimulatedProcess) {
        let rows: [LedgerRow]
        do {
            let index = try LedgerIndex(
                segments: segments.flatMap { $0 }.map(\.ledgerSegment),
                campaign: plan.segmentNumber, recordedLengths: manifestLengths)
            rows = try readLedger(index)
            // Not in each seed, because these checks take as long as all the rest.
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

    /// Number of requests of a process whose payload or credential was refused.
    private func refusedPayloads(_ process: SimulatedProcess) -> Int {
        journal.copies.count { copy in
            guard copy.epoch == process.epoch, copy.toldAt != nil,
                case .answered(let answer) = copy.resolution
            else { return false }
            return answer.status == 413 || answer.status == 403
        }
    }

    /// Checks that a process stops early only if the faults justify it.
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
            // Odd statuses are among them.
            isJustified =
                refusedPayloads(process) >= plan.abortAfter || faults.oddStatuses.chance > 0
        case .refused, .heldBack, .onlyBadTokens, .tooManyBadTokens:
            isJustified = faults.credential > 0 || faults.oddStatuses.chance > 0
        case .tooManyInvalid(let count, let rows):
            // A list without any valid row is refused, whatever the limit is.
            isJustified = plan.maxInvalid < 100 || count == rows
        case .expiredToken:
            isJustified = process.facts.mayBeExpired
        case .signingFailed, .topicsRefused:
            isJustified = false
        case .brokenServer:
            isJustified = process.facts.mayBeBroken
        case .gaveUp(let trouble) where trouble.kind == .tokenUpdates:
            // Apple accepts a new token after 20 minutes.
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
            // A body may be late if the windows let it through in small parts.
            let isStarved =
                faults.initialWindow < 1000 && faults.windowDelay >= second
            // A connection that accepts almost nothing, or whose window is lost, is detected only
            // after 30 to 40 s. The next connection may be like it.
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
            // The simulation's ledger has no name. Its list is in memory and well-formed.
            isJustified = false
        }
        let isRefusal = process.coordinator.canary?.verdict.isRefusal == true || cause.isInvalidList
        var isPayload = false
        if case .refused(let refusal) = cause { isPayload = refusal.status == 413 }
        var isWhole = false
        if case .allRefused = cause { isWhole = true }
        // A list may begin with many bad tokens although no server has a fault.
        var isList = false
        if case .onlyBadTokens = cause { isList = plan.gateway != nil }
        let isQuiet = cause == .control && process.hasBecomeQuiet
        let mayComeLast = isRefusal || isPayload || isWhole || isList || isQuiet
        if !isJustified || (process.epoch > plan.faultPlans.count && !mayComeLast) {
            fail("the process stops without reason: \(cause)")
        }
    }

    /// If a process stops because no response came for a time, it received none in that time.
    private func checkSilence(_ process: SimulatedProcess) {
        guard let stoppedAt = process.stoppedAt else { return }
        for copy in journal.copies where copy.epoch == process.epoch && !copy.isToldInVain {
            guard case .answered(let answer) = copy.resolution, let toldAt = copy.toldAt,
                toldAt < stoppedAt, stoppedAt - toldAt < plan.giveUpAfter,
                !wasCancelled(link: copy.link, stream: copy.stream),
                // A gateway's response does not settle what its silence had settled before.
                plan.gateway == nil || toldAt - copy.sentAt + second / 5 < plan.silence
            else { continue }
            fail("gives up \((stoppedAt - toldAt) / second) s after the answer \(answer.status)")
        }
    }

    /// Rows that were settled before keep their state.
    private func checkKept(_ states: [RowState], _ process: SimulatedProcess) {
        for (number, before) in process.statesAtStart.enumerated()
        where before.isSettled && !process.reopens(row: number) && states[number] != before {
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
        // A process that is stopped, such as for too many invalid rows, has not reached every row.
        guard process.epoch > plan.faultPlans.count, plan.onLost == .resend, !isStopped
        else { return }
        for (number, state) in states.enumerated() where state == .failed || state == .unknown {
            // The row failed in an earlier pass of the same process.
            if process.statesAtStart[number] == state, !process.reopens(row: number) { continue }
            if waits(number, epoch: process.epoch) { continue }
            fail("row \(number) is \(state.name) although all is calm")
        }
    }

    /// Rows that are not due keep their state. Only rows in doubt may become unknown.
    private func checkWaiting(_ states: [RowState], _ process: SimulatedProcess) {
        for number in states.indices where waits(number, epoch: process.epoch) {
            let (before, state) = (process.statesAtStart[number], states[number])
            if state == before || state == .unknown && before == .inDoubt { continue }
            fail("row \(number), which is not due, was \(before.name) and is \(state.name)")
        }
    }

    /// Rows beyond `--limit` keep their state. Only rows in doubt may become unknown or invalid.
    private func checkBeyondLimit(_ states: [RowState], _ process: SimulatedProcess) {
        guard let limit = plan.limit(epoch: process.epoch) else { return }
        for number in states.indices.dropFirst(Int(limit)) {
            let (before, state) = (process.statesAtStart[number], states[number])
            let isAllowed =
                state == before || state == .unknown && before == .inDoubt
                || state == .invalid && before == .inDoubt && plan.list.tokens[number] == nil
            if isAllowed { continue }
            fail("row \(number) behind the limit was \(before.name) and is \(state.name)")
        }
    }

    /// The ledger of a process that ended in an orderly way has every final response that the
    /// process received.
    private func checkAnswersRecorded(_ states: [RowState], _ process: SimulatedProcess) {
        guard plan.gateway == nil else { return }
        for copy in journal.copies where copy.epoch == process.epoch && !copy.isToldInVain {
            guard case .answered(let answer) = copy.resolution, copy.toldAt != nil,
                !answer.allowsRetryLater, !wasCancelled(link: copy.link, stream: copy.stream)
            else { continue }
            // If lost rows are sent again, a later response counts.
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

    /// Whether the server surely did not process the request, and the client knows it.
    var isSafeToRepeat: Bool {
        guard toldAt != nil else { return !isWhole }
        switch resolution {
        case .notProcessed: return true
        case .answered(let answer): return answer.allowsRetryLater
        case .open, .reset: return false
        }
    }
}
