import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// At most so long is waited, once all is recorded, for connections to close in order.
    private static var closeLimit: UInt64 { 2 * second }

    var isClosing: Bool {
        if case .closing = phase { return true }
        return false
    }

    /// Connection slots that the driver has to provide for.
    package var slotCount: Int { connections.capacity }

    /// The segment's length once all is written.
    package var ledgerByteCount: UInt64 { ledger.writtenPosition }

    /// The counters as others may see them now.
    package func snapshot() -> RunStatistics {
        var snapshot = statistics
        snapshot.inFlight = inFlight
        snapshot.pausedAddresses = addresses.troubledCount
        snapshot.openConnections = (0..<connections.count).count {
            connections[$0].isReady && connections[$0].isListening
        }
        return snapshot
    }

    /// Follows the word to stop: no new requests, answers in flight awaited.
    mutating func followStopWord(_ now: Now) {
        guard shared.isStopping else { return }
        switch phase {
        case .running:
            phase = .draining(since: now.nanoseconds)
        case .draining(let since):
            let isLongEnough = now.nanoseconds - since > settings.requestTimeout
            if isLongEnough || shared.isStoppingAtOnce {
                for index in 0..<connections.count where connections[index].isListening {
                    loseStreams(index, now: now)
                    beginClose(index, now: now)
                }
            }
        case .closing, .finished:
            break
        }
    }

    /// Goes on to closing when nothing is left to send or to wait for, and ends when the ledger is
    /// safe and the connections are closed.
    mutating func endIfDone(_ now: Now) {
        switch phase {
        case .running:
            guard inFlight == 0, !hasWork, shared.exchange.leave(reactor) else { return }
            beginClosing(now)
        case .draining:
            guard inFlight == 0, chunks.asked == 0 else { return }
            releaseEverything(now)
            beginClosing(now)
        case .closing(let since):
            let isLate = now.nanoseconds - since > Self.closeLimit
            let areClosed = (0..<connections.count).allSatisfy {
                connections[$0].phase == .idle
            }
            guard isLedgerSafe, areClosed || isLate else { return }
            leaveHungry()
            phase = .finished
        case .finished:
            break
        }
    }

    private mutating func beginClosing(_ now: Now) {
        phase = .closing(since: now.nanoseconds)
        for index in 0..<connections.count {
            switch connections[index].phase {
            case .open, .draining:
                flush(index, now: now)
                fill(index, now: now)
            case .connecting, .handshaking:
                beginClose(index, now: now)
            case .idle, .flushing, .closing:
                break
            }
        }
    }

    /// Rows that were reserved and not sent, or refused and waiting for another try, stay
    /// `remaining`: said in the ledger, so that they are not in doubt.
    private mutating func releaseEverything(_ now: Now) {
        while let tag = again.popFirst(in: slab) { release(tag, now: now) }
        while let entry = retryQueue.popFirst() { release(entry.tag, now: now) }
        while let tag = held.popFirst(in: slab) { release(tag, now: now) }
        while !slab.isFull, let tag = takeExchangedRow() { release(tag, now: now) }
        while let range = chunks.takeUnsentRange() {
            ledger.release(
                row: range.firstRow, count: range.count, attempts: 0,
                nowMilliseconds: now.wallMilliseconds)
        }
    }

    private mutating func leaveHungry() {
        if isCountedHungry {
            isCountedHungry = false
            shared.leaveHungry()
        }
    }
}
