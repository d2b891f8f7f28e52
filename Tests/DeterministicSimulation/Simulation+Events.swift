import Broadside
import BroadsideEngine
import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

extension Simulation {
    /// Handles an event.
    ///
    /// - Parameter time: Time for which the event was planned. The clock may be later.
    func handle(_ event: SimulationEvent, at time: UInt64) {
        if let until = stallEnd(of: event), until > time {
            events.insert(event, at: until)
            return
        }
        if clock < process.frozenUntil, event.isOfProcess {
            events.insert(event, at: process.frozenUntil)
            return
        }
        switch event {
        case .turn(let index, let ticket):
            let reactor = process.reactors[index]
            // The wake is stale, of this process or of an earlier one.
            guard ticket == reactor.turnTicket else { return }
            trace.step(time: clock, kind: 3, index)
            turn(reactor)
        case .deliver(let index, let epoch, let completion):
            guard epoch == process.epoch else { return }
            deliver(.completion(completion), to: process.reactors[index])
        case .connected(let link, let errno):
            connected(link, errno: errno)
        case .sendDone(let link):
            sendDone(link)
        case .bytesToServer(let link, let bytes, let sentAt):
            links[link].arrivingSentAt = sentAt
            bytesArrived(bytes, atServerOf: link)
        case .endToServer(let link):
            links[link].isOpenAtServer = false
            servers[link] = nil
            gateways[link] = nil
        case .bytesToClient(let link, let bytes):
            bytesArrived(bytes, atClientOf: link)
        case .endToClient(let link, let errno):
            endArrived(atClientOf: link, errno: errno)
        case .closed(let link):
            closed(link)
        case .server(let link, let act):
            guard links[link].isOpenAtServer else { return }
            guard servers[link] != nil || gateways[link] != nil else { return }
            trace.step(time: clock, kind: 4, link)
            note { "link \(link): server \(act)" }
            servers[link]?.perform(act)
            gateways[link]?.perform(act)
        case .gatewaySpeaks(let link):
            trace.step(time: clock, kind: 10, link)
            gateways[link]?.speak()
        case .gatewayLeaves(let link):
            trace.step(time: clock, kind: 11, link)
            gateways[link]?.sayGoodbye()
        case .writeDone(let reactor, let epoch):
            guard epoch == process.epoch else { return }
            writeDone(process.reactors[reactor])
        case .syncDone(let reactor, let epoch):
            guard epoch == process.epoch else { return }
            syncDone(process.reactors[reactor])
        case .readChunk(let reactor, let epoch, let rowLimit):
            guard epoch == process.epoch else { return }
            readChunk(rowLimit: rowLimit, for: process.reactors[reactor])
        case .changesTold(let epoch):
            guard epoch == process.epoch else { return }
            tellChanges()
        case .signal(let epoch, let isSecond):
            guard epoch == process.epoch, process.calmSince == nil else { return }
            signal(isSecond: isSecond)
        case .freeze(let epoch, let duration):
            guard epoch == process.epoch, plan.hasSenders || process.calmSince == nil else {
                return
            }
            note { "the process is stopped for \(duration / millisecond) ms" }
            trace.step(time: clock, kind: 13, 0)
            cover(.freeze)
            process.frozenUntil = max(process.frozenUntil, clock + duration)
            process.takesFrom = process.frozenUntil + random.delay(300 * millisecond)
        case .claim(let epoch):
            guard epoch == process.epoch, plan.hasSenders || process.calmSince == nil else {
                return
            }
            claim()
        case .rate(let epoch, let rate):
            guard epoch == process.epoch else { return }
            note { "the rate is \(String(describing: rate)) from now on" }
            cover(.newRate)
            process.coordinator.milliRate = rate.map { $0 * 1000 }
            process.rates.append((clock, rate))
        case .pause(let epoch, let duration):
            guard epoch == process.epoch, process.calmSince == nil else { return }
            pause(for: duration)
        case .growth(let epoch, let connections, let reactors):
            guard epoch == process.epoch else { return }
            grow(to: connections, reactors: reactors)
        case .renewal(let epoch):
            guard epoch == process.epoch else { return }
            renewToken()
        case .reload(let epoch):
            guard epoch == process.epoch else { return }
            note { "the credentials are read again" }
            trace.step(time: clock, kind: 7, 0)
            cover(.reload)
            process.coordinator.replaceConnections()
            process.reloadedAt = clock
        case .calm(let epoch):
            guard epoch == process.epoch else { return }
            calmDown()
        case .quiet(let epoch):
            guard epoch == process.epoch else { return }
            beginQuiet()
        case .death(let epoch, let isPowerCut):
            guard epoch == process.epoch, process.calmSince == nil else { return }
            die(isPowerCut: isPowerCut)
        }
    }

    /// Time until which an event of a server has to wait.
    private func stallEnd(of event: SimulationEvent) -> UInt64? {
        switch event {
        case .bytesToServer(let link, _, _), .endToServer(let link), .server(let link, _),
            .gatewaySpeaks(let link), .gatewayLeaves(let link):
            links[link].stalledUntil
        default: nil
        }
    }

    /// Time from which a limit counts for the process, if the cause was at `time`. Time during
    /// which the process was paused or frozen does not count.
    func since(_ time: UInt64) -> UInt64 {
        if process.pausedSince != nil { return clock }
        let time = max(time, process.continuedAt)
        guard process.takesFrom > 0 else { return time }
        // It checks its timers a second later, after it has read what arrived before.
        return min(clock, max(time, process.takesFrom + second))
    }

    private func signal(isSecond: Bool) {
        note { isSecond ? "the second signal" : "a signal" }
        trace.step(time: clock, kind: 5, isSecond ? 1 : 0)
        cover(isSecond ? .secondSignal : .signal)
        process.coordinator.stop(.signal)
        if isSecond {
            process.coordinator.stopAtOnce()
            process.stoppedAtOnceAt = process.stoppedAtOnceAt ?? clock
        }
        for reactor in process.reactors { wake(reactor, at: clock + random.delay(50_000)) }
    }

    /// The process dies now. The operations that it has submitted to the kernel may still complete.
    func die(isPowerCut: Bool) {
        note { isPowerCut ? "the power fails" : "the process is killed" }
        trace.step(time: clock, kind: 6, isPowerCut ? 1 : 0)
        cover(isPowerCut ? .powerCut : .kill)
        checkSums(process)
        for reactor in process.reactors { abandonWrite(of: reactor) }
        // What a newer attempt has read is safe on the machine that stores the ledger.
        if isPowerCut, !plan.hasSenders || process.claimedAt == nil {
            let last = process.epoch - 1
            for index in segments[last].indices {
                segments[last][index].loseUnsynced(random: &random)
            }
        }
        process.hasDied = true
    }

    // MARK: Submissions

    /// Begins the operation that a reactor submits.
    func perform(_ submission: ReactorSubmission, for reactor: SimulatedReactor) {
        let faults = process.current
        func answer(_ completion: ReactorCompletion, after delay: UInt64) {
            events.insert(
                .deliver(reactor: reactor.index, epoch: process.epoch, completion),
                at: clock + delay)
        }
        switch submission {
        case .resolve:
            reactor.lookingUpSince = clock
            let fails = random.chance(faults.resolveFailure)
            if fails { cover(.noName) }
            let isSilent =
                faults.silentNames > 0
                && (random.chance(faults.silentNames) || springs(.silentName))
            if isSilent { cover(.silentName) }
            var addresses = (0..<plan.addresses).map {
                SocketAddress.v4(0x0a00_0001 + UInt32($0), port: 443)
            }
            if random.chance(faults.addressChange) {
                addresses = [random.pick(addresses)]
            }
            if plan.bounds.changesNames {
                let first = 0x0a01_0000 + UInt32(clock / second % 1000) * 60
                addresses = (first..<(first + 60)).map { SocketAddress.v4($0, port: 443) }
            }
            answer(
                .resolved(
                    fails
                        ? .failure(ResolutionFailure(message: "no such name")) : .success(addresses)
                ),
                after: isSilent
                    ? UInt64(random.between(1...60)) * (faults.silentNames == 1 ? 4 : 1) * second
                    : random.skewedDelay(100 * millisecond))
        case .requestChunk(let rowLimit):
            reactor.readsOut += 1
            guard faults.listDelay > 0 else { return readChunk(rowLimit: rowLimit, for: reactor) }
            events.insert(
                .readChunk(reactor: reactor.index, epoch: process.epoch, rowLimit: rowLimit),
                at: clock + random.skewedDelay(faults.listDelay))
        case .connect(let slot, let address):
            connect(slot: slot, to: address, for: reactor)
        case .receive(let slot):
            startReceiving(link(of: slot, reactor))
        case .send(let slot, let bytes):
            send(bytes, on: link(of: slot, reactor))
        case .close(let slot):
            close(link(of: slot, reactor))
        case .write(let bytes, let offset):
            write(bytes, at: Int(offset), for: reactor)
        case .sync(let position):
            sync(position: position, for: reactor)
        }
    }

    private func link(of slot: Int, _ reactor: SimulatedReactor) -> Int {
        guard let link = reactor.linkOfSlot[slot] else {
            preconditionFailure("slot \(slot) has no connection")
        }
        return link
    }
}
