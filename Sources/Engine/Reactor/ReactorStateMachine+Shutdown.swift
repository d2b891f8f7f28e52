import BroadsideLedgerFormat
import BroadsideSupport

/// End of the run: no new requests start, requests in flight get their responses, the ledger
/// becomes durable, and connections close.
extension ReactorStateMachine where Records: ~Copyable {
    /// Time limit for an orderly close of the connections, once everything is recorded.
    private static var closeLimit: UInt64 { 2 * second }

    /// Handles a stop request: no new requests start, and requests in flight get their responses.
    mutating func handleStopRequest(_ now: Now) {
        guard run.directives.isStopping else { return }
        switch phase {
        case .running:
            phase = .draining(since: now.nanoseconds)
        case .draining(let since):
            assert(since <= now.nanoseconds, "a stop was requested before")
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

    /// Starts closing when nothing is left to send or await, and finishes when the ledger is
    /// durable and the connections are closed.
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
            // Requested chunks are not awaited either, because the list's disk may hang.
            guard rows.inFlight == 0 else { return }
            releaseEverything(now)
            beginClosing(now)
        case .closing(let since):
            let isLate = now.nanoseconds - since > Self.closeLimit
            guard recorder.isSafe, connections.areAllClosed || isLate else { return }
            leaveRate()
            assert(rows.slab.count == 0, "a row in hand has neither a verdict nor a release")
            phase = .finished
        case .finished:
            break
        }
    }

    private mutating func beginClosing(_ now: Now) {
        assert(rows.inFlight == 0, "connections stay open while a response may come")
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

    /// Releases rows that are reserved but not sent, or refused and waiting for a retry. A record
    /// in the ledger keeps them `remaining`. Without this record, they would be in doubt.
    private mutating func releaseEverything(_ now: Now) {
        while let tag = rows.takeUnsent() { release(tag, now: now) }
        while !rows.slab.isFull, let tag = takeHandedOverRow() { release(tag, now: now) }
        while let range = rows.chunks.takeUnsentRange() {
            recorder.ledger.release(
                row: range.firstRow, count: range.count, attempts: Int(range.attempts),
                nowMilliseconds: now.wallMilliseconds)
        }
    }
}
