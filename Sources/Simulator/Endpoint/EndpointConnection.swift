internal import BroadsideTLS
internal import Glibc

/// One accepted connection: its socket, its TLS session and, once the handshake is complete, its
/// HTTP/2 session.
///
///     handshaking -> open -> finishing (write what waits, then end our side) -> lingering
///          |           |         |                                                 |
///          +-----------+---------+---------- broken: no more input or output ------+--> gone
///
/// The slot is released once no operation is in flight on the socket.
final class EndpointConnection {
    enum Phase {
        case handshaking, open, finishing, lingering, broken
    }

    /// The HTTP/2 session of the connection, strict or fast.
    enum Session {
        case strict(ServerSession)
        case fast(FastSession)
    }

    let descriptor: Int32
    let slot: UInt32
    let generation: UInt32
    /// The connection's number in the journal.
    let number: UInt64
    var phase = Phase.handshaking
    var records: TLSSession
    var session: Session?
    /// Ciphertext to send after the send in flight.
    var outgoing = ByteBuffer(capacity: 16_384)
    /// Ciphertext that the kernel is sending or has sent.
    var sending = ByteBuffer(capacity: 16_384)
    /// Bytes of `sending` that were sent. While `isSending`, the kernel reads the remaining bytes.
    var sentCount = 0
    var isSending = false
    var isReceiving = false
    /// True if the connection may have new output since the last flush.
    var isTouched = false
    /// Time at which a lingering connection is closed, nanoseconds.
    var lingersUntil: UInt64 = 0
    /// Deadline of the handshake, nanoseconds.
    var handshakeUntil: UInt64 = .max
    /// Time until which reading and writing are suspended, nanoseconds; 0 if they are not.
    var stalledUntil: UInt64 = 0
    /// The rate at which input is read, with the time of the next portion; nil for no limit.
    var reading: Portion?
    var readingDue: UInt64 = .max
    /// Received ciphertext whose processing is deferred.
    var held = ByteBuffer(capacity: 0)
    /// True if receiving from the kernel is suspended.
    var isPaused = false

    init(
        descriptor: Int32, slot: UInt32, generation: UInt32, number: UInt64, context: TLSContext
    ) throws(TLSError) {
        assert(descriptor >= 0, "a connection is an open socket")
        self.descriptor = descriptor
        self.slot = slot
        self.generation = generation
        self.number = number
        records = try TLSSession(context: context, serverName: nil)
    }

    /// The result of processing received ciphertext.
    enum Outcome {
        case more, ended, handshakeFailed, failed
    }

    /// Decrypts received ciphertext and passes it to the session. `open` creates the session.
    func receive(
        _ input: RawSpan, scratch: inout ByteBuffer, open: (borrowing TLSSession) -> Session
    ) -> Outcome {
        var offset = 0
        while true {
            scratch.removeAll()
            let result = scratch.append(room: 0) { plaintext in
                outgoing.append(room: 8192) { replies in
                    records.receive(
                        input, at: &offset, plaintext: &plaintext, ciphertext: &replies)
                }
            }

            if phase == .handshaking, records.isEstablished {
                phase = .open
                session = open(records)
            }
            if scratch.count > 0 {
                guard give(scratch.bytes) else { return .failed }
            }
            switch result {
            case .more: return .more
            case .plaintextFull, .ciphertextFull: continue
            case .closed: return .ended
            case .failed: return records.isEstablished ? .failed : .handshakeFailed
            }
        }
    }

    private func give(_ plaintext: RawSpan) -> Bool {
        switch session {
        case .strict(let session): return session.receive(plaintext)
        case .fast(let session): return session.receive(plaintext)
        case nil: return true
        }
    }

    /// Returns and clears the fault that the session has requested for the connection.
    func takeStrike() -> ConnectionStrike? {
        guard case .strict(let session) = session, let strike = session.strike else { return nil }
        session.strike = nil
        return strike
    }

    /// Whether the connection must not process received bytes yet.
    var holdsInput: Bool { stalledUntil > 0 || reading != nil }

    /// Time at which the next work is due, nanoseconds; `.max` for none.
    var alarm: UInt64 {
        switch phase {
        case .handshaking: return handshakeUntil
        case .open:
            if stalledUntil > 0 { return stalledUntil }
            guard case .strict(let session) = session else { return .max }
            return min(session.alarm, held.count > 0 ? readingDue : .max)
        case .finishing, .lingering, .broken: return .max
        }
    }

    /// Delivers a response to its stream.
    func deliver(_ response: PendingResponse) {
        switch session {
        case .strict(let session): session.deliver(response)
        case .fast(let session): session.deliver(response)
        case nil: break
        }
    }

    /// True if the HTTP/2 session has nothing more to read or write.
    var isSessionFinished: Bool {
        switch session {
        case .strict(let session): session.isFinished
        case .fast(let session): session.isFinished
        case nil: false
        }
    }

    /// Encrypts the session's pending output. Returns false if TLS fails.
    func sealOutput(staging: inout ByteBuffer) -> Bool {
        guard records.isEstablished else { return true }
        staging.removeAll()
        switch session {
        case .strict(let session): session.takeOutput(into: &staging)
        case .fast(let session): session.takeOutput(into: &staging)
        case nil: return true
        }
        guard staging.count > 0 else { return true }
        return outgoing.append(room: TLSSession.sealedCount(staging.count)) {
            records.seal(staging.bytes, ciphertext: &$0)
        }
    }

    /// Queues a close_notify alert after all data encrypted so far.
    func sealEnd() {
        guard records.isEstablished else { return }
        outgoing.append(room: TLSSession.sealedCount(2)) { records.close(ciphertext: &$0) }
    }

    /// Moves queued ciphertext to the send buffer; returns false if there is none.
    func prepareSend() -> Bool {
        precondition(!isSending)
        assert(sentCount <= sending.count, "no more is sent than there is")
        if sentCount == sending.count {
            guard outgoing.count > 0 else { return false }
            sending.removeAll()
            sentCount = 0
            swap(&sending, &outgoing)
        }
        assert(sentCount < sending.count, "there is something to send")
        return true
    }
}
