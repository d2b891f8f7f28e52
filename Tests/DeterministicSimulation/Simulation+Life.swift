import Broadside
import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePolicy
import BroadsideRing
import BroadsideRows

extension Simulation {
    /// Starts the engine in the same way as the command, from the ledger if there is one.
    func makeProcess(
        epoch: Int, faults: FaultPlan, reopens: ReopenedStates, due: DueRows?,
        random: inout SimulationRandom
    ) -> SimulatedProcess? {
        let segments = segments.flatMap { $0 }.map(\.ledgerSegment)
        let limit = plan.limit(epoch: epoch)
        do {
            let index = try LedgerIndex(
                segments: segments, campaign: plan.segmentNumber, recordedLengths: manifestLengths,
                rows: CampaignRows(limit: limit))
            let rows = try readLedger(index)
            let (states, own) = (rows.map(\.state), ownRows(rows))
            for row in states.indices where states[row] == .inDoubt { wasInDoubt[row] = true }
            checkWaits(states, reopens: reopens, own: own)
            for previous in 1..<max(1, epoch) {
                manifestLengths[UInt32(previous)] = index.segmentLengths(epoch: UInt32(previous))
            }
            let pool = ChunkPool(reactors: plan.reactors)
            let resumePlan: ResumePlan? =
                epoch == 1
                ? nil
                : ResumePlan(
                    index: index, lostRows: plan.onLost,
                    reopens: reopens,
                    reopenedSince: story.isLaterPass ? story.firstPass : nil)
            let (canary, canaryBefore) = try makeCanary(index)
            let coordinator = makeCoordinator(
                canary: canary,
                rowsRead: makeInvalidRowsGuard(
                    states, reopens: reopens, own: own, epoch: epoch))
            let list = listAsItIs(epoch: epoch, index, states)
            let source = try ListSource(
                list: TokenList(lines: list.bytes, layout: plan.list.layout),
                pool: pool, plan: resumePlan,
                selection: ListSelection(
                    rows: CampaignRows(limit: limit), skips: try plan.skips(), due: due),
                canary: coordinator.canary)
            let process = SimulatedProcess(
                epoch: epoch, faults: faults, coordinator: coordinator, reopens: reopens,
                list: source, rowsAtStart: rows, ownRows: own, startedAt: clock)
            process.changedRows = list.changed
            process.firstLink = links.count
            process.rampBefore = rampSeconds(self.process)
            process.newestToken = firstToken
            process.canaryBefore = canaryBefore
            addReactors(to: process, pool: pool, random: &random)
            return process
        } catch {
            fail("the ledger can't be taken up: \(error)")
            return nil
        }
    }

    private func makeCoordinator(canary: CanaryGate?, rowsRead: InvalidRowsGuard) -> RunCoordinator
    {
        let issued = firstToken
        var authorization: [UInt8]?
        var sign: RunCoordinator.Signer?
        if plan.usesProviderToken {
            authorization = Array("bearer \(issued)".utf8)
            sign = { seconds in Array("bearer \(seconds)".utf8) }
        }
        var milliRate: UInt64?
        if let rate = plan.rate { milliRate = rate * 1000 }
        return RunCoordinator(
            authorization: authorization, issuedAt: issued, milliRate: milliRate,
            ramp: plan.ramp.map { ramp in
                RampClock(
                    ramp.ramp, sentNanoseconds: process?.coordinator.ramp?.sentNanoseconds ?? 0)
            },
            abortAfter: plan.abortAfter, maxBadTokensPercent: 50, rowsRead: rowsRead,
            canary: canary,
            connectionTarget: plan.growth?.target(reactors: plan.reactors),
            handoffRows: plan.bounds.handoffRows, sign: sign)
    }

    private func addReactors(
        to process: SimulatedProcess, pool: ChunkPool, random: inout SimulationRandom
    ) {
        var files: [SimulatedSegment] = []
        for index in 0..<plan.reactors {
            let ledger = LedgerWriter(
                campaign: plan.segmentNumber, epoch: UInt32(process.epoch), reactor: UInt16(index))
            files.append(SimulatedSegment(epoch: UInt32(process.epoch), reactor: UInt16(index)))
            let machine = TransparentReactor(
                settings: plan.settings(), coordinator: process.coordinator, reactor: index,
                ledger: ledger, chunkPool: pool, layout: plan.list.layout,
                seed: random.next(), now: now)
            process.reactors.append(SimulatedReactor(index: index, machine: machine, now: clock))
        }
        segments.append(files)
    }

    // MARK: Turns

    /// Ensures that a reactor wakes at the given time or earlier.
    func wake(_ reactor: SimulatedReactor, at time: UInt64) {
        guard time < reactor.turnAt else { return }
        reactor.turnAt = time
        tickets += 1
        reactor.turnTicket = tickets
        events.insert(.turn(reactor: reactor.index, ticket: reactor.turnTicket), at: time)
    }

    /// Adds an entry to a reactor's inbox. The reactor wakes a moment later, so that entries
    /// collect.
    func deliver(_ delivery: Delivery, to reactor: SimulatedReactor) {
        guard !reactor.isDone else { return }
        if case .completion(.chunk(let chunk)) = delivery {
            process.hasDisorder = process.hasDisorder || chunk.start.row != process.nextChunkRow
            process.nextChunkRow = chunk.end.row
        }
        reactor.inbox.append((clock, delivery))
        wake(reactor, at: clock + random.delay(20_000))
    }

    /// Runs one iteration of a reactor, in the same way as a driver.
    func turn(_ reactor: SimulatedReactor) {
        guard !reactor.isDone else { return }
        reactor.turnAt = .max
        // After the process was frozen, the first iterations come before the reactor receives what
        // arrived in between.
        let isEarly = clock < process.takesFrom
        let inbox = isEarly ? [] : reactor.inbox
        if !isEarly { reactor.inbox.removeAll(keepingCapacity: true) }
        for (time, delivery) in inbox {
            arrival = time < process.frozenUntil ? time : nil
            hand(delivery, to: reactor)
        }
        arrival = nil
        let isBacklogHigh = reactor.machine.isBacklogHigh
        reactor.machine.exchangeWithRun(now)
        let isStopping = process.coordinator.isStopping
        interleave(with: reactor)
        let time = timeBeforeTurn(of: reactor)
        reactor.machine.runIteration(now)
        checkTime(reactor, since: time, isStopping: isStopping)
        interleave(with: reactor)
        reactor.machine.finishIteration(now)
        checkBacklog(reactor, wasHigh: isBacklogHigh)
        checkStopping(reactor, wasStopping: isStopping)
        checkPause(reactor)
        if process.stoppedAt == nil, process.coordinator.isStopping {
            process.stoppedAt = clock
            checkToldLookup()
        }
        if trace.isTelling { tellTrouble() }
        var submissions = 0
        let begunBefore = process.connectionsBegun[reactor.index, default: 0]
        while let submission = reactor.machine.nextSubmission() {
            submissions += 1
            perform(submission, for: reactor)
            guard failure == nil else { return }
        }
        countRequests(of: reactor)
        checkFirstConnections(reactor, begunBefore: begunBefore)
        checkGrowth(reactor)
        checkRoom(reactor)
        checkMemory(reactor)
        if !process.hasAccepted { checkEarly() }
        askForToken()
        if reactor.machine.isFinished {
            reactor.isDone = true
            note { "reactor \(reactor.index) is finished" }
            return
        }
        checkBatching(reactor)
        checkGivingUp(reactor)
        let deadline = reactor.machine.nextDeadline
        let isIdle = inbox.isEmpty && submissions == 0 && deadline <= clock
        reactor.idleTurns = isIdle ? reactor.idleTurns + 1 : 0
        if reactor.idleTurns > 1000 {
            fail("reactor \(reactor.index) spins: its deadline stays in the past")
        }
        // An iteration takes some time, so that a deadline in the past does not repeat forever.
        wake(reactor, at: max(deadline, clock + 5_000))
        if isEarly { wake(reactor, at: process.takesFrom) }
    }

    /// Runs a whole iteration of another reactor in the middle of a reactor's iteration, as threads
    /// do: after the reactor has read the run's directives, or before it has reported its result.
    private func interleave(with reactor: SimulatedReactor) {
        guard process.reactors.count > 1, !isInterleaving, random.chance(0.1) else { return }
        let other = process.reactors[random.below(process.reactors.count)]
        guard other !== reactor, !other.isDone else { return }
        note { "r\(other.index) has a turn within one of r\(reactor.index)" }
        trace.step(time: clock, kind: 12, other.index)
        isInterleaving = true
        turn(other)
        isInterleaving = false
    }

    private func tellTrouble() {
        guard process.coordinator.lastTrouble?.message != process.toldTrouble else { return }
        process.toldTrouble = process.coordinator.lastTrouble?.message
        note { "trouble: \(process.toldTrouble ?? "none")" }
    }

    private func hand(_ delivery: Delivery, to reactor: SimulatedReactor) {
        switch delivery {
        case .completion(let completion):
            trace.step(time: clock, kind: 1, reactor.index)
            note { "r\(reactor.index) <- \(Self.words(completion))" }
            if case .superseded = completion { reactor.isSuperseded = true }
            noteDeafness(completion, reactor)
            noteResolution(completion, reactor)
            noteRead(completion, reactor)
            reactor.machine.completed(completion, now: now)
        case .bytes(let link, let bytes):
            guard links[link].isOpenAtClient else { return }
            trace.step(time: clock, kind: 2, link, bytes.count)
            trace.mix(bytes[...])
            note { "r\(reactor.index) <- link \(link): \(bytes.count) bytes" }
            links[link].countAtClient += bytes.count
            links[link].bytesToldAt = clock
            if let server = servers[link] { hear(server, link) }
            if let gateway = gateways[link] { hear(gateway, link) }
            // The memory has exactly this size, so that a read beyond it is noticed.
            bytes.withUnsafeBytes { buffer in
                reactor.machine.received(
                    connection: links[link].slot, bytes: RawSpan(_unsafeBytes: buffer), now: now)
            }
        }
    }

    /// Records that the client learned of the end of a connection. It reads nothing more from it.
    private func noteDeafness(_ completion: ReactorCompletion, _ reactor: SimulatedReactor) {
        switch completion {
        case .sent(let slot, let result):
            guard let id = reactor.linkOfSlot[slot] else { return }
            links[id].sentToldAt = clock
            if result <= 0 {
                links[id].sendFailedAt = links[id].sendFailedAt ?? clock
                noteDeafness(id)
            }
        case .connected(let slot, let errno):
            guard let id = reactor.linkOfSlot[slot] else { return }
            links[id].isSurelyRefused = errno != 0 && links[id].isOpenAtClient
            if errno != 0 { noteReach() }
        case .receiveEnded(let slot, _):
            guard let id = reactor.linkOfSlot[slot] else { return }
            noteLosses(id)
            noteDeafness(id)
        default:
            break
        }
    }

    private func noteDeafness(_ id: Int) {
        links[id].isDeaf = true
        links[id].deafAt = links[id].deafAt ?? clock
    }

    /// Records what the client learns from the bytes that it has received so far.
    private func hear(_ server: SimulatedServer, _ link: Int) {
        let count = links[link].countAtClient
        if let offset = server.goAwayOffset, offset <= count, links[link].goAwayToldAt == nil {
            links[link].goAwayToldAt = clock
            links[link].hasSurelyGoneAway = !links[link].isDeaf && links[link].brokenAt == nil
            learnedTrouble(ofAddress: links[link].address)
            if !links[link].isDeaf, links[link].noRequestsSince == nil {
                links[link].noRequestsSince = (clock, "its server said GOAWAY")
            }
        }
        if let last = server.goAwayLast, last.offset <= count, links[link].lastStream == nil {
            links[link].lastStream = last.stream
            links[link].lastStreamToldAt = clock
            // The GOAWAY also excludes requests that are still in flight.
            links[link].refusal.mayBeRefused(clock)
            process.facts.refusals[refusalKey(links[link])] = links[link].refusal
        }
        while let refusal = server.refusals.first, refusal.offset <= count {
            links[link].refused.append((refusal.stream, clock))
            server.refusals.removeFirst()
            let request = taps[link].requests.last { $0.stream == refusal.stream }
            // If the client canceled the request before, it learns nothing from a refusal.
            let isAwaited =
                request.map { !mayBeGivenUp(link: link, sentAt: $0.time) } ?? true
                && !wasCancelled(link: link, stream: refusal.stream)
            learnedRefusal(
                link, row: request?.row, isSure: !links[link].isDeaf && isAwaited)
        }
        for (copy, frameCount) in server.takeEvidence(upTo: count) {
            journal.told(copy, at: clock, isTooLate: mayBeGivenUp(journal.copies[copy]))
            let isAwaited =
                !journal.copies[copy].isToldInVain
                && !wasCancelled(link: link, stream: journal.copies[copy].stream)
            if isAwaited { server.noteUsefulFrame(frameCount) }
            learned(copy)
        }
        if let violation = server.violation, violation.start < count {
            learnedViolation(link, isSure: violation.isSure && violation.end <= count)
        }
    }

    private static func words(_ completion: ReactorCompletion) -> String {
        switch completion {
        case .chunk(let chunk): "chunk of \(chunk.rowCount) rows from \(chunk.start.row)"
        default: "\(completion)"
        }
    }

    /// Counts requests when they are made, because the rate applies there.
    private func countRequests(of reactor: SimulatedReactor) {
        let requests = reactor.machine.statistics.requests
        let fresh = Int(requests - reactor.countedRequests)
        guard fresh > 0 else { return }
        reactor.countedRequests = requests
        process.requestTimes.append((clock, fresh))
        if isLonely { process.requestsMadeAt += repeatElement(clock, count: fresh) }
    }
}
