import BroadsideLedgerFormat
import BroadsideSupport

/// The run's end: no new requests, responses awaited, the ledger safe, connections closed.
extension ReactorStateMachine where Records: ~Copyable {
    /// At most so long is waited, once all is recorded, for connections to close in order.
    private static var closeLimit: UInt64 { 2 * second }

    /// Follows the word to stop: no new requests, responses in flight awaited.
    mutating func handleStopRequest(_ now: Now) {
        guard run.directives.isStopping else { return }
        switch phase {
        case .running:
            phase = .draining(since: now.nanoseconds)
        case .draining(let since):
            let isLongEnough = now.nanoseconds - since > settings.requestTimeout
            if isLongEnough || run.directives.isStoppingAtOnce {
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
            guard rows.inFlight == 0, !hasWork else { return }
            guard leaveHandoff() else {
                leaveRate()
                return
            }
            beginClosing(now)
        case .draining:
            // Nor are chunks awaited that were asked for: the list's disk may hang.
            guard rows.inFlight == 0 else { return }
            releaseEverything(now)
            beginClosing(now)
        case .closing(let since):
            let isLate = now.nanoseconds - since > Self.closeLimit
            guard recorder.isSafe, connections.areAllClosed || isLate else { return }
            leaveRate()
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
        while let tag = rows.takeUnsent() { release(tag, now: now) }
        while !rows.slab.isFull, let tag = takeHandedOverRow() { release(tag, now: now) }
        while let range = rows.chunks.takeUnsentRange() {
            recorder.ledger.release(
                row: range.firstRow, count: range.count, attempts: 0,
                nowMilliseconds: now.wallMilliseconds)
        }
    }
}
