internal import BroadsideTLS
internal import Glibc

/// One accepted connection: its socket, its TLS session, and its HTTP/2 session once the handshake
/// is complete.
///
///     handshaking -> open -> finishing (write what waits, then end our side) -> lingering
///          |           |         |                                                 |
///          +-----------+---------+---------- broken: no more input or output ------+--> gone
///
/// It is gone, and its slot free, when no operation is in flight on its socket.
final class EndpointConnection {
    enum Phase {
        case handshaking, open, finishing, lingering, broken
    }

    /// The HTTP/2 half.
    enum Session {
        case strict(ServerSession)
        case fast(FastSession)
    }

    let descriptor: Int32
    let slot: UInt32
    let generation: UInt32
    /// As the journal numbers it.
    let number: UInt64
    var phase = Phase.handshaking
    var records: TLSSession
    var session: Session?
    /// Ciphertext that waits for the send in flight.
    var outgoing = ByteBuffer(capacity: 16_384)
    /// Ciphertext that the kernel looks at, or was sent.
    var sending = ByteBuffer(capacity: 16_384)
    /// How much of `sending` is sent; the kernel has the rest while `isSending`.
    var sentCount = 0
    var isSending = false
    var isReceiving = false
    /// There may be output since the last flush.
    var isTouched = false
    /// When a lingering connection is closed, nanoseconds.
    var lingersUntil: UInt64 = 0
    /// When the handshake has to be complete, nanoseconds.
    var handshakeUntil: UInt64 = .max
    /// Until when nothing is read or written, nanoseconds; 0 where it is.
    var stalledUntil: UInt64 = 0
    /// How fast it is read; nil: as fast as it comes. And when the next portion is due.
    var reading: Portion?
    var readingDue: UInt64 = .max
    /// Ciphertext that was received and is held back.
    var held = ByteBuffer(capacity: 0)
    /// The kernel was told to keep what comes.
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

    /// What came of a piece of ciphertext.
    enum Outcome {
        case more, ended, handshakeFailed, failed
    }

    /// Takes received ciphertext in, through TLS and into the session, which `open` makes.
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

    /// What the session says the connection is to suffer, once.
    func takeStrike() -> ConnectionStrike? {
        guard case .strict(let session) = session, let strike = session.strike else { return nil }
        session.strike = nil
        return strike
    }

    /// Whether received bytes are to be held back.
    var holdsInput: Bool { stalledUntil > 0 || reading != nil }

    /// When something is due here, nanoseconds; `.max` for nothing.
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

    /// Gives a stream its answer.
    func deliver(_ response: PendingResponse) {
        switch session {
        case .strict(let session): session.deliver(response)
        case .fast(let session): session.deliver(response)
        case nil: break
        }
    }

    /// The HTTP/2 session has nothing more to read or say.
    var isSessionFinished: Bool {
        switch session {
        case .strict(let session): session.isFinished
        case .fast(let session): session.isFinished
        case nil: false
        }
    }

    /// Seals what the session has to say. False: TLS refuses.
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

    /// Says close_notify, behind all that was sealed before.
    func sealEnd() {
        guard records.isEstablished else { return }
        outgoing.append(room: TLSSession.sealedCount(2)) { records.close(ciphertext: &$0) }
    }

    /// Moves what waits under the kernel's eyes; false where nothing waits.
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
