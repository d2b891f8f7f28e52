internal import BroadsideRing
internal import Glibc

/// The output and the orderly end of connections.
extension EndpointWorker {
    func touch(_ connection: EndpointConnection) {
        guard !connection.isTouched else { return }
        connection.isTouched = true
        touched.append(connection)
    }

    func deliverDueResponses() {
        while let response = context.queue.pop(now: context.now) {
            guard let connection = connections[Int(response.slot)],
                connection.generation == response.generation, connection.phase == .open
            else { continue }
            connection.deliver(response)
            touch(connection)
        }
    }

    func flushTouched() {
        var position = 0
        while position < touched.count {
            let connection = touched[position]
            connection.isTouched = false
            flush(connection)
            position += 1
        }
        touched.removeAll(keepingCapacity: true)
    }

    private func flush(_ connection: EndpointConnection) {
        if connection.phase == .broken {
            breakOff(connection)
            return
        }
        if let strike = connection.takeStrike() {
            guard applyStrike(strike, connection) else { return }
        }
        if connection.stalledUntil > 0 {
            watch(connection)
            return
        }
        if connection.phase == .open || connection.phase == .finishing {
            guard connection.sealOutput(staging: &staging) else {
                breakOff(connection)
                return
            }
            if connection.phase == .open, connection.isSessionFinished {
                connection.phase = .finishing
            }
            watch(connection)
        }
        let limit =
            SimulatorLimits.unreadOutputCount + Int(context.options.maxStreams) * 256
        guard connection.outgoing.count <= limit else {
            context.totals.violations += 1
            breakOff(connection)
            return
        }
        if connection.phase == .finishing {
            connection.sealEnd()
            connection.phase = .lingering
            connection.lingersUntil = context.now + Self.lingerNanoseconds
            lingering.append(connection)
        }
        guard !connection.isSending else { return }
        if connection.prepareSend() {
            connection.isSending = true
            // SAFETY: `sending` is not modified until this send has completed; the connection stays
            // alive until then, or until the ring has ended. `sentCount` never exceeds the count of
            // `sending`.
            let bytes = unsafe UnsafeRawBufferPointer(
                rebasing: connection.sending.unsafeBytes[connection.sentCount...])
            unsafe ring.send(
                connection.descriptor, bytes,
                userData: userData(
                    .send, slot: connection.slot, generation: connection.generation))
        } else if connection.phase == .lingering {
            // All output is sent. Closing the socket with unread input would reset the connection,
            // and could lose the GOAWAY frame. Therefore only the sending direction is shut down,
            // and the client closes the connection.
            _ = shutdown(connection.descriptor, Int32(SHUT_WR))
        }
    }

    // MARK: Teardown

    /// Stops input and output; the connection is released after its last operation completes.
    func breakOff(_ connection: EndpointConnection) {
        if connection.phase != .broken {
            connection.phase = .broken
            _ = shutdown(connection.descriptor, Int32(SHUT_RDWR))
        }
        guard !connection.isReceiving, !connection.isSending, !connection.isTouched else { return }
        let slot = Int(connection.slot)
        guard slot < connections.count, connections[slot] === connection else { return }
        assert(!freeSlots.contains(connection.slot), "a slot is given back once")
        connections[slot] = nil
        freeSlots.append(connection.slot)
        Socket.close(connection.descriptor)
    }

    func endLingering() {
        guard !lingering.isEmpty else { return }
        lingering.removeAll { connection in
            if connection.phase == .broken { return true }
            guard connection.lingersUntil <= context.now else { return false }
            breakOff(connection)
            return true
        }
    }
}
