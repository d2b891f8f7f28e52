import BroadsideHTTP2
import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// The input from the driver: received bytes and completed operations.
extension ReactorStateMachine where Records: ~Copyable {
    /// Processes received bytes, which are valid only during this call.
    mutating func received(connection index: Int, bytes: RawSpan, now: Now) {
        guard connections[index].isListening else { return }
        connections[index].liveness.recordReceived(now: now.nanoseconds)
        if !connections[index].liveness.awaitsReply { connections[index].trust.recordSign() }
        connections[index].isSaturated = false
        recordStall(now)
        var offset = 0
        while true {
            // SAFETY: the plaintext goes to memory that is used only in this call, TLS replies go
            // to the tail of the outbox, which nothing else changes meanwhile; both outputs check
            // their bounds. Only the plaintext bytes that the output reports as set are read,
            // before the next ones replace them.
            var plaintext = unsafe OutputRawSpan(buffer: received, initializedCount: 0)
            let target = unsafe connections[index].outbox.tail
            var replies = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
            guard
                let result = connections[index].records?.receive(
                    bytes, at: &offset, plaintext: &plaintext, ciphertext: &replies)
            else { return }
            let count = unsafe plaintext.finalize(for: received)
            connections[index].outbox.append(unsafe replies.finalize(for: target))

            if connections[index].phase == .handshaking,
                connections[index].records?.isEstablished == true
            {
                connections[index].enter(.open, now: connections[index].phaseSince)
                if let outcome = connections[index].session.start() {
                    handle(outcome, index, now: now)
                }
            }
            if count > 0 {
                let span = unsafe RawSpan(
                    _unsafeBytes: UnsafeRawBufferPointer(rebasing: received[..<count]))
                takeOutcomes(index, of: span, now: now)
                guard connections[index].isListening else { return }
            }
            switch result {
            case .more:
                return
            case .plaintextFull:
                continue
            case .closed:
                receiveEnded(index, errno: 0, now: now)
                return
            case .failed(let error):
                fail(
                    index, connections.trouble(index, error), isLasting: error.isLasting,
                    precedesData: error.precedesData, now: now)
                return
            }
        }
    }

    /// Processes the outcomes of received bytes.
    private mutating func takeOutcomes(_ index: Int, of bytes: RawSpan, now: Now) {
        var offset = 0
        while let outcome = connections[index].session.nextOutcome(
            in: bytes, at: &offset, firstUnsent: connections[index].outbox.firstUnsent)
        {
            if case .accepted(let tag) = outcome {
                handleAccepted(tag, index, now: now)
            } else {
                handle(outcome, index, now: now)
                guard connections[index].isListening else { return }
            }
        }
        if run.isFull { exchangeWithRun(now) }
    }

    /// Excludes a stall of the reactor from the measured latencies, because the server did not
    /// cause it.
    mutating func recordStall(_ now: Now) {
        guard now.nanoseconds > timers.nextDeadline + LatencyMonitor.stallThreshold,
            now.nanoseconds != connections.latencyMonitor.lastStall
        else { return }
        connections.latencyMonitor.lastStall = now.nanoseconds
        let stall = now.nanoseconds - connections.latencyMonitor.lastIteration
        for index in 0..<connections.count {
            connections[index].pace.recordStall(nanoseconds: stall)
        }
    }

    mutating func connected(_ index: Int, errno: Int32, now: Now) {
        guard connections[index].phase == .connecting else { return }
        guard errno == 0 else {
            fail(index, connections.troubleAtEnd(index, errno: errno), isLasting: false, now: now)
            return
        }
        do {
            connections[index].records = try Records(configuration: connections.recordConfiguration)
        } catch {
            fail(index, connections.trouble(index, error), isLasting: error.isLasting, now: now)
            return
        }
        metrics.countConnection(share: connections.share)
        connections[index].enter(.handshaking, now: connections[index].phaseSince)
        submissions.append(.receive(connection: index))
        // The client sends first, in TLS as in HTTP/2.
        received(connection: index, bytes: RawSpan(), now: now)
    }

    mutating func sent(_ index: Int, result: Int, now: Now) {
        connections[index].outbox.sendStopped()
        connections[index].isSaturated = false
        guard connections[index].isListening else { return }
        guard result > 0 else {
            stopSending(index, errno: Int32(truncatingIfNeeded: -result), now: now)
            return
        }
        if let since = connections[index].outbox.recordSent(result, now: now.nanoseconds) {
            restartResponseClocks(index, since: since, now: now)
        }
    }

    /// Sends nothing more on a connection on which a send failed. If the server ended the connection
    /// while requests were on their way to it, its last responses and its GOAWAY arrived before that
    /// end. They are received until the end of the connection follows them.
    private mutating func stopSending(_ index: Int, errno: Int32, now: Now) {
        if connections[index].session.handleUnwritable() {
            connections[index].outbox.clear()
            connections[index].enter(.draining, now: now.nanoseconds)
            return
        }
        if endsInOrder(index) {
            beginClose(index, now: now)
            return
        }
        switch connections[index].phase {
        case .open, .draining:
            connections[index].outbox.fail(now: now.nanoseconds)
        case .idle, .connecting, .handshaking, .flushing, .closing:
            fail(index, connections.troubleAtEnd(index, errno: errno), isLasting: false, now: now)
        }
    }

    /// If bytes waited in the buffer for longer than this, the response clocks of their requests
    /// restart.
    private static var slowWrite: UInt64 { 100 * millisecond }

    /// Restarts the response clocks of requests that left the buffer late. `--request-timeout` and
    /// a legacy gateway's silence count from the time of writing to the socket, not from queueing.
    ///
    /// - Parameter since: Time at which the first of the bytes began to wait.
    mutating func restartResponseClocks(_ index: Int, since: UInt64, now: Now) {
        guard now.nanoseconds > since, now.nanoseconds - since > Self.slowWrite else { return }
        func restart(_ tag: RowTag) {
            if rows.slab[tag].sentNanoseconds >= since {
                rows.slab[tag].sentNanoseconds = now.nanoseconds
            }
        }
        connections[index].session.forEachInFlight(restart)
    }

    mutating func closed(_ index: Int) {
        connections[index].end()
    }
}
