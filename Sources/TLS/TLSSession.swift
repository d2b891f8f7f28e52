internal import CBroadsideOpenSSL

/// One TLS connection without any I/O: ciphertext in, plaintext out, and back.
///
///     client: init -> receive(nothing): ClientHello in `ciphertext`
///     server: init
///
///          receive: .more                       receive: .more, plaintext; seal
///         +---------------+                    +------------------------------+
///         v               |                    v                              |
///     handshaking --------+-- finished --> established ----- close_notify ----+--> .closed
///         |                                    |
///         +------- .failed (alert in `ciphertext`: send it, then close) ------+
///
/// All output goes to the `ciphertext` that a call is given; the session keeps none of the
/// caller's memory after it returns. One thread at a time.
@safe public struct TLSSession: ~Copyable {
    // SAFETY: an SSL that `init` makes; `deinit` frees it before `transfer` and `context`, to which
    // it points.
    private let session: OpaquePointer
    private let transfer: SharedTransfer
    private let context: TLSContext
    /// The handshake is complete: plaintext may be sealed.
    public private(set) var isEstablished = false
    private var failure: TLSError?
    /// The handshake offers a ticket, and nothing was received that shows that the server takes it well.
    private var isResuming: Bool

    /// The most plaintext that one record holds, in bytes (RFC 8446 section 5.1).
    public static let recordLimit = 16_384

    /// What a record adds at most: header, explicit nonce or content type, and tag.
    private static let recordOverhead = 64

    /// What became of the input.
    public enum ReceiveResult: Equatable, Sendable {
        /// All input is consumed; more is needed from the peer.
        case more
        /// `plaintext` is full and there is more: make room and call again, with the rest of the
        /// input, even where that is empty.
        case plaintextFull
        /// `ciphertext` is full and there is more to send: make room and call again. Only
        /// handshakes and alerts write here, a few KiB.
        case ciphertextFull
        /// The peer said close_notify: nothing follows.
        case closed
        /// The session is over. An alert for the peer may be in `ciphertext`.
        case failed(TLSError)
    }

    /// Makes a session.
    ///
    /// - Parameter serverName: Whom a client connects to; nil on the server's side, and only there.
    public init(context: TLSContext, serverName: ServerName?) throws(TLSError) {
        precondition(context.isClient == (serverName != nil), "clients name their server")
        ErrorQueue.clear()
        // SAFETY: all three are made here. SSL_free frees the BIO too, which SSL_set_bio hands
        // over; the transfer goes after it, also after an error.
        guard let session = unsafe SSL_new(context.pointer) else {
            throw ErrorQueue.error("make a TLS session")
        }
        let transfer = SharedTransfer(RecordTransfer())
        transfer.value.serverName = serverName
        transfer.value.acceptsAnyCertificate = context.acceptsAnyCertificate
        transfer.value.tickets = context.tickets
        var isResuming = false
        do throws(TLSError) {
            guard let bio = unsafe transfer.makeBIO() else {
                throw ErrorQueue.error("make a TLS session")
            }
            unsafe SSL_set_bio(session, bio, bio)
            // Records are read as many at a time as OpenSSL's buffer holds, not header by header.
            unsafe SSL_set_read_ahead(session, 1)
            if let serverName {
                unsafe try PeerVerification.require(serverName, session)
                unsafe SSL_set_connect_state(session)
                let before = unsafe context.tickets?.offer(to: session, serverName)
                transfer.value.verifiedBefore = before
                isResuming = before != nil
            } else {
                unsafe SSL_set_accept_state(session)
            }
        } catch {
            unsafe SSL_free(session)
            unsafe transfer.deallocate()
            throw error
        }
        unsafe self.session = session
        self.isResuming = isResuming
        self.transfer = transfer
        self.context = context
    }

    deinit {
        // However it ended: the server said nothing since it got the ticket.
        if isResuming { context.tickets?.refuse() }
        // SAFETY: the session is this value's alone; its BIO goes with it, and only then the
        // transfer.
        unsafe SSL_free(session)
        unsafe transfer.deallocate()
    }

    // MARK: Receiving

    /// Takes ciphertext from the peer; shakes hands and decrypts alike.
    ///
    /// - Parameters:
    ///   - input: What was received.
    ///   - offset: Where in `input` to go on; moves past what was taken.
    ///   - plaintext: Decrypted bytes are appended.
    ///   - ciphertext: Bytes for the peer are appended.
    public mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> ReceiveResult {
        precondition(offset >= 0 && offset <= input.byteCount)
        if let failure { return .failed(failure) }
        ErrorQueue.clear()
        return Self.lend(transfer, input, &offset, &ciphertext) {
            // SAFETY: `session` lives as long as this value; `readRecords` counts what it sets.
            unsafe plaintext.withUnsafeMutableBytes { buffer, count in
                if !isEstablished {
                    let result = unsafe SSL_do_handshake(session)
                    guard result == 1 else { return outcome(of: result) }
                    if let failure = negotiationFailure() { return .failed(fail(failure)) }
                    isEstablished = true
                    if context.tickets != nil { transfer.value.verified = .now }
                }
                return unsafe readRecords(into: buffer, &count)
            }
        }
    }

    /// Decrypts until the input is used up or the room is.
    private mutating func readRecords(
        into buffer: UnsafeMutableRawBufferPointer, _ count: inout Int
    ) -> ReceiveResult {
        while true {
            // SAFETY: `session` lives as long as this value; `room` bytes of the buffer follow the
            // `count` that are set.
            let room = buffer.count - count
            guard room > 0 else {
                let pending = unsafe SSL_has_pending(session) == 1 || transfer.value.hasSource
                return pending ? .plaintextFull : .more
            }
            let result = unsafe SSL_read(
                session, buffer.baseAddress! + count, Int32(min(room, Int(Int32.max))))
            guard result > 0 else { return outcome(of: result) }
            count += Int(result)
            isResuming = false
        }
    }

    /// The input ended: the peer closed the connection, or it broke. Nil where close_notify came
    /// before.
    public mutating func receiveEnd() -> TLSError? {
        if let failure { return failure }
        // SAFETY: `session` lives as long as this value.
        if unsafe SSL_get_shutdown(session) & SSL_RECEIVED_SHUTDOWN != 0 { return nil }
        return fail(FailureReport(transfer.value, context).end(established: isEstablished))
    }

    // MARK: Sending

    /// The most ciphertext that so much plaintext makes, in bytes.
    public static func sealedCount(_ plaintextCount: Int) -> Int {
        let records = (plaintextCount + recordLimit - 1) / recordLimit
        return plaintextCount + records * recordOverhead
    }

    /// Encrypts all of the plaintext, in as few records as hold it.
    ///
    /// The session has to be established, and `ciphertext` have room for `sealedCount`.
    ///
    /// - Returns: False where nothing was sealed: the session failed, or half a message of the
    ///   peer's (a key update in pieces) has to be completed first. Keep the plaintext then and
    ///   receive.
    public mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        let count = plaintext.byteCount
        precondition(isEstablished, "no handshake yet")
        precondition(ciphertext.freeCapacity >= Self.sealedCount(count), "no room to seal")
        guard failure == nil else { return false }
        guard count > 0 else { return true }
        ErrorQueue.clear()
        var offset = 0
        let nothing = RawSpan()
        let written = Self.lend(transfer, nothing, &offset, &ciphertext) {
            // SAFETY: `session` lives as long as this value; SSL_write reads the bytes during the
            // call only.
            unsafe plaintext.withUnsafeBytes {
                unsafe SSL_write(session, $0.baseAddress, Int32($0.count))
            }
        }
        if written > 0 {
            precondition(Int(written) == count, "the sink has room for all")
            return true
        }
        recordFailedWrite(written)
        return false
    }

    /// Apart from `seal`, which runs for each record.
    @inline(never)
    private mutating func recordFailedWrite(_ written: Int32) {
        // SAFETY: `session` lives as long as this value.
        if unsafe SSL_get_error(session, written) != SSL_ERROR_WANT_READ {
            failure = TLSError(
                .protocolViolation, "OpenSSL cannot encrypt: \(ErrorQueue.take().text)")
        }
    }

    /// Says close_notify. Nothing can be sealed afterwards. Before the handshake is complete, or
    /// after a failure, it does nothing. Needs room for `sealedCount(2)`.
    public mutating func close(ciphertext: inout OutputRawSpan) {
        guard isEstablished, failure == nil else { return }
        precondition(ciphertext.freeCapacity >= Self.sealedCount(2), "no room for close_notify")
        ErrorQueue.clear()
        var offset = 0
        let nothing = RawSpan()
        _ = Self.lend(transfer, nothing, &offset, &ciphertext) {
            // SAFETY: `session` lives as long as this value; it writes to the sink.
            unsafe SSL_shutdown(session)
        }
        ErrorQueue.clear()
    }

    // MARK: What was agreed

    /// The protocol that ALPN selected, `h2`; nil where none was.
    public var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        // SAFETY: the `count` bytes at `name` belong to the session, and are copied at once.
        unsafe SSL_get0_alpn_selected(session, &name, &count)
        guard count > 0, let name = unsafe name else { return nil }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    /// `TLSv1.2` or `TLSv1.3`.
    public var versionName: String {
        // SAFETY: OpenSSL's names of versions are constant.
        unsafe String(cString: SSL_get_version(session))
    }

    /// The cipher suite, in OpenSSL's spelling.
    public var cipherName: String {
        // SAFETY: ciphers and their names are constant in OpenSSL.
        guard let cipher = unsafe SSL_get_current_cipher(session) else { return "none" }
        return unsafe String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// The session resumed an earlier one.
    var isResumed: Bool {
        // SAFETY: `session` lives as long as this value.
        unsafe SSL_session_reused(session) == 1
    }

    /// The certificate that the peer presented, verified as the context says; nil where it had none.
    /// That of a resumed session was presented in the one that it resumed.
    public var peerCertificate: Certificate? {
        // SAFETY: the certificate is the session's; `retaining` adds a reference, or takes nil.
        unsafe Certificate(retaining: SSL_get0_peer_certificate(session))
    }

    // MARK: Inside

    /// Lends input and output to the BIO for one call.
    private static func lend<Result>(
        _ transfer: SharedTransfer, _ input: RawSpan, _ offset: inout Int,
        _ ciphertext: inout OutputRawSpan,
        _ body: () -> Result
    ) -> Result {
        // SAFETY: both ranges are taken away before these closures end, and OpenSSL reaches them
        // only in `body`. `offset` was checked to be within the input; of the sink, `count` bytes
        // are set.
        unsafe input.withUnsafeBytes { source in
            unsafe ciphertext.withUnsafeMutableBytes { sink, count in
                unsafe transfer.value.attach(
                    source: UnsafeRawBufferPointer(rebasing: source[offset...]),
                    sink: UnsafeMutableRawBufferPointer(rebasing: sink[count...]))
                let result = body()
                offset += transfer.value.consumed
                count += transfer.value.produced
                transfer.value.detach()
                return result
            }
        }
    }

    /// What a call that returned no success means.
    private mutating func outcome(of result: Int32) -> ReceiveResult {
        // SAFETY: `session` lives as long as this value.
        switch unsafe SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ: return .more
        case SSL_ERROR_WANT_WRITE: return .ciphertextFull
        case SSL_ERROR_ZERO_RETURN where isEstablished: return .closed
        default:
            let report = FailureReport(transfer.value, context)
            return .failed(fail(report.failure(ErrorQueue.take(), established: isEstablished)))
        }
    }

    /// Ends the session. If it offered a ticket, that may be what failed: no other session offers one, and
    /// the next one tells whether the failure is one that stays.
    private mutating func fail(_ failure: TLSError) -> TLSError {
        var failure = failure
        if isResuming {
            context.tickets?.refuse()
            failure = TLSError(.handshakeFailed, failure.message)
        }
        self.failure = failure
        return failure
    }

    /// A client that offers protocols needs one of them selected: without ALPN there is no telling
    /// that the server speaks HTTP/2 (RFC 9113 section 3.2).
    private func negotiationFailure() -> TLSError? {
        guard context.isClient, !context.applicationProtocols.isEmpty else { return nil }
        if let selected = applicationProtocol, context.applicationProtocols.contains(selected) {
            return nil
        }
        return FailureReport(transfer.value, context).noApplicationProtocol
    }
}
