import Broadside
import BroadsideRing
import BroadsideSupport

extension Simulation {
    // MARK: Connecting

    func connect(slot: Int, to address: SocketAddress, for reactor: SimulatedReactor) {
        let faults = process.current
        let id = links.count
        var link = Link(
            id: id, epoch: process.epoch, reactor: reactor.index, slot: slot,
            address: Self.number(of: address), openedAt: clock,
            latency: faults.latency / 2 + random.delay(faults.latency))
        link.isSlow = faults.slowReading > 0 && random.chance(faults.slowReading)
        link.lastArrivalAtServer = clock
        link.lastArrivalAtClient = clock
        links.append(link)
        servers.append(nil)
        gateways.append(nil)
        taps.append(
            plan.gateway == nil
                ? FrameTap(idPrefix: plan.idPrefix) : FrameTap(rowOfToken: rowOfToken))
        reactor.linkOfSlot[slot] = id
        process.triedAt = clock
        checkChurn(reactor)
        checkBackoff(id, reactor)
        checkAsked(id)
        checkNeglect(id)
        links[id].refusal = inheritedRefusal(links[id])
        note { "r\(reactor.index) connects link \(id), slot \(slot)" }
        if random.chance(faults.connectSilence) {
            cover(.noConnection)
            return
        }
        var errno: Int32 = random.chance(faults.connectFailure) ? random.pick([111, 113]) : 0
        if faults.connectionsMost > 0,
            ownLinks.count(where: {
                $0.isOpenAtServer || $0.isConnecting && $0.isOpenAtClient && $0.id != id
            })
                >= faults.connectionsMost
        {
            errno = 111
        }
        if errno != 0 { cover(.noConnection) }
        events.insert(.connected(link: id, errno: errno), at: clock + 2 * link.latency)
    }

    private static func number(of address: SocketAddress) -> Int {
        if case .v4(let number, _) = address { return Int(number & 0xff) }
        return 0
    }

    func connected(_ id: Int, errno: Int32) {
        guard links[id].isOpenAtClient else { return }
        links[id].isConnecting = false
        noteAttempt(id, reactor(of: id), hasFailed: errno != 0)
        if errno == 0 { accept(id) }
        deliver(
            .completion(.connected(connection: links[id].slot, errno: errno)), to: reactor(of: id))
    }

    /// Creates the server's side of a new connection, and schedules its faults.
    private func accept(_ id: Int) {
        let faults = process.current
        links[id].isOpenAtServer = true
        func sometime(_ act: ServerAct) {
            schedule(act, link: id, after: random.skewedDelay(8 * second))
        }
        if plan.gateway == nil {
            servers[id] = SimulatedServer(
                link: id, faults: faults, simulation: self, random: random.fork())
        } else {
            gateways[id] = SimulatedGateway(
                link: id, faults: faults, simulation: self, random: random.fork())
            if random.chance(faults.gateway.goodbye) {
                events.insert(
                    .gatewayLeaves(link: id), at: clock + random.skewedDelay(8 * second))
            }
        }
        if random.chance(faults.reset) {
            sometime(random.chance(0.5) ? .resetConnection : .close)
        }
        if random.chance(faults.silence) { sometime(.fallSilent) }
        if random.chance(faults.goAway) {
            let closesAfter: UInt64? = random.pick([0, 30 * millisecond, nil])
            let delay = random.skewedDelay(4 * second)
            if random.chance(0.5) {
                schedule(.announceEnd, link: id, after: delay)
                schedule(.goAway(closesAfter: closesAfter), link: id, after: delay + second / 4)
            } else {
                schedule(.goAway(closesAfter: closesAfter), link: id, after: delay)
            }
        }
        if random.chance(faults.stall) {
            let duration = random.skewedDelay(30 * second)
            sometime(.stall(duration))
        }
        if random.chance(faults.halfClose) { sometime(.halfClose) }
        if random.chance(faults.violation) { sometime(.violate) }
        for _ in 0..<random.between(1...6) where random.chance(faults.settingsChanges) {
            sometime(.changeSettings)
        }
        servers[id]?.start()
    }

    private func reactor(of id: Int) -> SimulatedReactor {
        process.reactors[links[id].reactor]
    }

    /// From now on, all bytes are lost without notice.
    func fallSilent(link id: Int) {
        links[id].isSilent = true
    }

    /// The server stalls for a while. Everything that arrives during that time waits.
    func stall(link id: Int, for duration: UInt64) {
        links[id].stalledUntil = max(links[id].stalledUntil, clock + duration)
    }

    /// The server ends its sending direction, but continues to read.
    func serverEndsSending(link id: Int) {
        guard links[id].isOpenAtServer, !links[id].isSilent else { return }
        events.insert(.endToClient(link: id, errno: 0), at: arrivalAtClient(id))
    }

    // MARK: From the client

    func send(_ bytes: UnsafeRawBufferPointer, on id: Int) {
        precondition(links[id].pendingSend == nil, "one send a connection")
        precondition(bytes.count > 0)
        let copy = Array(bytes)
        links[id].pendingSend = Link.PendingSend(bytes: bytes, copy: copy)
        let (requests, cancelled) = (taps[id].requests.count, taps[id].cancelled.count)
        let (hadBlamed, pings) = (taps[id].hasBlamed, taps[id].pings.count)
        taps[id].hear(copy.dropFirst(links[id].heardAhead), at: clock)
        for stream in taps[id].cancelled[cancelled...] {
            checkCancelling(stream, link: id)
            learnedTrouble(ofAddress: links[id].address)
        }
        checkBlame(id, hadBlamed: hadBlamed, requests: requests)
        checkPings(id, after: pings)
        checkRequests(id, after: requests)
        if copy.count > links[id].heardAhead {
            links[id].waiting.append((links[id].takenCount + copy.count, clock))
        }
        links[id].heardAhead = copy.count
        links[id].lastHeardAt = clock
        note { "link \(id): sends \(copy.count) bytes" }
        events.insert(.sendDone(link: id), at: clock + random.skewedDelay(200_000))
    }

    func sendDone(_ id: Int) {
        guard let pending = links[id].pendingSend, links[id].isOpenAtClient else { return }
        links[id].lastSendDone = clock
        if let errno = links[id].sendError {
            links[id].pendingSend = nil
            // The connection stays open for what the server sent before. The bytes after the failed
            // send are never sent.
            links[id].endedWhileSending = true
            deliver(
                .completion(.sent(connection: links[id].slot, result: -Int(errno))),
                to: reactor(of: id))
            return
        }
        let room = sendBufferCount(of: id) - links[id].countToServer
        if room < pending.copy.count { links[id].wasSendBlocked = true }
        guard room > 0 else {
            links[id].isSendBlocked = true
            cover(.sendBlocked, link: id)
            return
        }
        if !isEqual(pending.bytes, pending.copy) {
            fail("bytes of link \(id) changed while they were being sent")
        }
        var count = min(room, pending.copy.count)
        if random.chance(process.current.shortSend) {
            count = random.between(1...count)
            cover(.shortSend, link: id)
        }
        links[id].pendingSend = nil
        take(pending.copy.prefix(count), from: id)
        deliver(
            .completion(.sent(connection: links[id].slot, result: count)), to: reactor(of: id))
    }

    private func sendBufferCount(of id: Int) -> Int {
        links[id].isSlow ? 1000 : process.current.sendBufferCount
    }

    /// Whether a socket whose buffer was full accepts bytes again: a third of the buffer must be
    /// free, as in kernels.
    private func hasRoomAgain(_ id: Int) -> Bool {
        let limit = sendBufferCount(of: id)
        return links[id].countToServer <= limit - max(1, limit / 3)
    }

    /// The network accepts bytes from the client, in pieces.
    private func take(_ bytes: ArraySlice<UInt8>, from id: Int) {
        checkWaiting(id)
        links[id].heardAhead -= bytes.count
        links[id].takenCount += bytes.count
        if plan.gateway != nil { links[id].takenTimes.append((links[id].takenCount, clock)) }
        while let first = links[id].waiting.first, first.end <= links[id].takenCount {
            links[id].waiting.removeFirst()
        }
        links[id].countToServer += bytes.count
        guard !links[id].isSilent else { return }
        for piece in links[id].isSlow ? Self.slowPieces(bytes) : pieces(bytes) {
            events.insert(
                .bytesToServer(link: id, piece, sentAt: clock), at: arrivalAtServer(id))
        }
    }

    private func arrivalAtServer(_ id: Int) -> UInt64 {
        let arrival = clock + links[id].latency + random.skewedDelay(process.current.jitter)
        let slowness = links[id].isSlow ? 20 * millisecond : 0
        let before =
            links[id].lastArrivalAtServer + slowness + random.delay(process.current.trickle)
        links[id].lastArrivalAtServer = max(before, arrival)
        return links[id].lastArrivalAtServer
    }

    private static func slowPieces(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        stride(from: bytes.startIndex, to: bytes.endIndex, by: 20).map {
            Array(bytes[$0..<min($0 + 20, bytes.endIndex)])
        }
    }

    private func pieces(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = bytes
        while random.chance(process.current.tearing), rest.count > 1, pieces.count < 64 {
            let count = random.between(1...min(rest.count - 1, random.pick([3, 40, 20_000])))
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        pieces.append(Array(rest))
        return pieces
    }

    func bytesArrived(_ bytes: [UInt8], atServerOf id: Int) {
        guard !links[id].isSilent else { return }
        links[id].countToServer -= bytes.count
        if links[id].isSendBlocked, hasRoomAgain(id) {
            links[id].isSendBlocked = false
            sendDone(id)
        }
        guard links[id].isOpenAtServer, servers[id] != nil || gateways[id] != nil else { return }
        trace.step(time: clock, kind: 8, id, bytes.count)
        trace.mix(bytes[...])
        servers[id]?.receive(bytes)
        gateways[id]?.receive(bytes)
    }

    /// The client closes its socket. The bytes that the kernel has accepted are sent, followed by
    /// the end.
    func close(_ id: Int) {
        note { "link \(id): closed by the client" }
        checkPatience(id)
        checkWaiting(id)
        checkHearing(id)
        // An error response is a gateway's last output on a connection. The client reads it, and
        // then closes the connection.
        if plan.gateway == nil { journal.toldInVain(link: id, at: clock) }
        learnedTrouble(ofAddress: links[id].address)
        links[id].closedAt = clock
        endAtClient(id)
        events.insert(.closed(link: id), at: clock + random.skewedDelay(millisecond))
    }

    /// The process is dead, so the kernel closes its sockets.
    func abandon(link id: Int) {
        guard links[id].isOpenAtClient else { return }
        endAtClient(id)
    }

    private func endAtClient(_ id: Int) {
        links[id].isOpenAtClient = false
        // The client may have read the end of the connection before the result of its send.
        let isHeardFirst = links[id].sentToldAt == clock && links[id].bytesToldAt == clock
        links[id].endedWhileSending =
            links[id].endedWhileSending || links[id].pendingSend != nil || isHeardFirst
            || (links[id].endWasTold
                && clock - max(links[id].lastSendDone, links[id].sentToldAt) < 50_000)
            // After the process was frozen, it has not read the result of the send yet.
            || links[id].sentToldAt < links[id].lastSendDone
            // The error response and the result of the send may arrive together.
            || (links[id].firstWordAt != nil && links[id].sentToldAt == clock)
            // The same is true for that result and the end by a second signal, with more bytes
            // written since.
            || (process.stoppedAtOnceAt != nil && links[id].sentToldAt == clock)
        if let pending = links[id].pendingSend {
            // The kernel may have accepted some of the bytes.
            links[id].pendingSend = nil
            if random.chance(0.5), links[id].sendError == nil {
                take(pending.copy.prefix(random.between(0...pending.copy.count)), from: id)
            }
        }
        if !links[id].isSilent { events.insert(.endToServer(link: id), at: arrivalAtServer(id)) }
    }

    func closed(_ id: Int) {
        guard links[id].epoch == process.epoch else { return }
        let reactor = reactor(of: id)
        reactor.linkOfSlot[links[id].slot] = nil
        deliver(.completion(.closed(connection: links[id].slot)), to: reactor)
    }

    // MARK: From the server

    /// - Parameter isWhole: Whether the client receives all bytes at once.
    func serverSent(link id: Int, _ bytes: [UInt8], isWhole: Bool = false) {
        guard !links[id].isSilent, links[id].isOpenAtServer else { return }
        for piece in isWhole ? [bytes] : pieces(bytes[...]) {
            events.insert(.bytesToClient(link: id, piece), at: arrivalAtClient(id))
        }
    }

    private func arrivalAtClient(_ id: Int) -> UInt64 {
        let arrival = clock + links[id].latency + random.skewedDelay(process.current.jitter)
        let before = links[id].lastArrivalAtClient + random.delay(process.current.trickle)
        links[id].lastArrivalAtClient = max(before, arrival)
        return links[id].lastArrivalAtClient
    }

    /// The server ends a connection: in an orderly way (0), or by a reset that overtakes bytes in
    /// flight.
    func serverCloses(link id: Int, errno: Int32) {
        guard links[id].isOpenAtServer else { return }
        links[id].isOpenAtServer = false
        guard !links[id].isSilent else { return }
        // Bytes that arrive at the server from now on cause a reset, which may fail a send before
        // the client has read what the server sent.
        if plan.gateway == nil, random.chance(0.3) { links[id].sendError = errno == 0 ? 32 : errno }
        let arrival = errno == 0 ? arrivalAtClient(id) : clock + links[id].latency
        events.insert(.endToClient(link: id, errno: errno), at: arrival)
    }

    func bytesArrived(_ bytes: [UInt8], atClientOf id: Int) {
        guard links[id].isOpenAtClient, !links[id].endWasTold, !links[id].isSilent else { return }
        guard links[id].isReceiving else {
            links[id].early.append(bytes)
            return
        }
        deliver(.bytes(link: id, bytes), to: reactor(of: id))
    }

    func startReceiving(_ id: Int) {
        links[id].isReceiving = true
        for bytes in links[id].early { deliver(.bytes(link: id, bytes), to: reactor(of: id)) }
        links[id].early = []
        if let errno = links[id].earlyEnd { endArrived(atClientOf: id, errno: errno) }
    }

    func endArrived(atClientOf id: Int, errno: Int32) {
        guard links[id].isOpenAtClient, !links[id].endWasTold, !links[id].isSilent else { return }
        guard links[id].isReceiving else {
            links[id].earlyEnd = errno
            return
        }
        links[id].endWasTold = true
        links[id].sendError = errno == 0 ? 32 : errno
        if links[id].isSendBlocked { sendDone(id) }
        deliver(
            .completion(.receiveEnded(connection: links[id].slot, errno: errno)),
            to: reactor(of: id))
    }
}
