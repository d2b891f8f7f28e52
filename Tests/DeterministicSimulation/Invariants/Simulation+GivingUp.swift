import Broadside
import BroadsideEngine
import BroadsidePolicy
import BroadsideSupport

/// Checks that a run does not give up before it has tried often and long enough, and not much later
/// either.
extension Simulation {
    /// Number of attempts at each address, or of look-ups of the name, after which a run may give
    /// up.
    private static let attemptsLeast = 3

    /// Counts the results of look-ups when a reactor receives them.
    func noteResolution(_ completion: ReactorCompletion, _ reactor: SimulatedReactor) {
        guard case .resolved(let result) = completion else { return }
        if let since = reactor.lookingUpSince, clock - since >= second {
            reactor.slowLookupEnd = clock
        }
        reactor.lookingUpSince = nil
        switch result {
        case .success: reactor.hasAddresses = true
        case .failure: reactor.failedResolutions += 1
        }
    }

    /// After a reactor's iteration: if nothing can be reached, the run must stop, unless
    /// `--give-up-after` was given.
    func checkGivingUp(_ reactor: SimulatedReactor) {
        guard !process.coordinator.isStopping else { return }
        if !plan.giveUpAfterIsExplicit, !hasReached, !reactor.hasAddresses,
            reactor.failedResolutions >= Self.attemptsLeast
        {
            fail("the name was looked up \(reactor.failedResolutions) times for nothing")
        }
        if reactor.failedResolutions > 0, ownLinks.isEmpty, process.coordinator.lastTrouble == nil {
            fail("the name was not found, and nobody is told")
        }
        if let since = process.unreachableSince, clock > since + second / 2 {
            fail("no address can be reached since \((clock - since) / second) s")
        }
        checkPatienceWithResponses(reactor)
    }

    /// Records the time since when it is known that no address can be reached: each failed three
    /// times in a row, and no connection was ever established.
    func noteReach() {
        let areAllTried = (1...plan.addresses).allSatisfy {
            (process.pauses[$0]?.failures ?? 0) >= Self.attemptsLeast
        }
        guard !hasReached, areAllTried, !plan.giveUpAfterIsExplicit else { return }
        process.unreachableSince = process.unreachableSince ?? clock
    }

    /// Whether a connection may have been ready to send, in this pass of the process or before.
    var hasReached: Bool {
        story.wasReached || ownLinks.contains { !$0.isConnecting && !$0.isSurelyRefused }
    }

    /// Counts the reads of the list for which a reactor waits.
    func noteRead(_ completion: ReactorCompletion, _ reactor: SimulatedReactor) {
        switch completion {
        case .chunk:
            reactor.readsOut -= 1
            // The reactor may have had no iteration since it requested the chunk.
            if reactor.machine.rowsInHand.all == 0 { reactor.heldAt = clock }
        case .listEnded, .listHeldByCanary: reactor.readsOut -= 1
        default: break
        }
    }

    /// Rows wait for missing responses only for `--give-up-after`. The time starts when the rows
    /// may be sent: the list may be slow, and the time until the next provider token is long.
    private func checkPatienceWithResponses(_ reactor: SimulatedReactor) {
        guard plan.gateway == nil else { return }
        let rows = reactor.machine.rowsInHand
        if rows.all == 0, reactor.readsOut > 0, !reactor.machine.hasRowReady(now) {
            reactor.heldAt = clock
        }
        let last = max(process.responses.last?.time ?? 0, process.startedAt, reactor.heldAt)
        guard clock - since(last) > second else { return }
        if rows.inFlight == 0, let refused = process.updatesRefusedAt,
            clock <= refused + 1201 * second
        {
            reactor.heldAt = clock
        } else if rows.all > 0, clock - since(last) > plan.giveUpAfter + second {
            fail("there was no response for \((clock - last) / second) s, and the run continues")
        }
    }

    /// Whether silent name servers can explain why no response came for `--give-up-after`: a slow
    /// look-up was pending during that time.
    func isNameless(_ process: SimulatedProcess) -> Bool {
        let stoppedAt = process.stoppedAt ?? clock
        return process.reactors.contains { reactor in
            if let since = reactor.lookingUpSince, stoppedAt - min(stoppedAt, since) >= second {
                return true
            }
            return reactor.slowLookupEnd.map { $0 + plan.giveUpAfter + second > stoppedAt } ?? false
        }
    }

    /// In the iteration that stops the run because no response came: a reactor that has only waited
    /// for name servers must report this.
    func checkToldLookup() {
        guard case .noResponse(_, let last) = process.coordinator.stopCause else { return }
        // A reactor reports it at its next check after 5 s, or after half of `--give-up-after`.
        let patience = min(5 * second, plan.giveUpAfter / 2) + 200 * millisecond
        let waits = process.reactors.filter { !$0.machine.isFinished }.map { reactor in
            reactor.lookingUpSince.map { clock - $0 > patience } ?? false
        }
        if last == nil, waits.contains(true) {
            fail("gives up without a word about the name server that does not reply")
        }
        if !waits.contains(false), waits.contains(true), last?.kind != .resolve {
            fail("all wait for a name server, and the cause is \(last?.message ?? "none")")
        }
    }

    /// Checks that a run that gave up had a reason.
    func checkGivenUp(_ cause: StopCause, _ process: SimulatedProcess) {
        switch cause {
        case .gaveUp(let trouble) where trouble.kind == .resolve:
            let most = process.reactors.map(\.failedResolutions).max() ?? 0
            if most < Self.attemptsLeast { fail("gives up after \(most) look-ups") }
        case .gaveUp(let trouble) where trouble.kind == .connect:
            let failed = ownLinks.count { $0.isSurelyRefused }
            // A connection that was established but never received a byte does not count as a
            // success either.
            let silent = ownLinks.count {
                $0.isConnecting || !$0.isSurelyRefused && $0.bytesToldAt == 0
            }
            if failed + silent < Self.attemptsLeast {
                fail("gives up after \(failed) attempts that failed, and \(silent) without a word")
            }
        default: break
        }
    }
}
