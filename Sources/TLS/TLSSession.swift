internal import CBroadsideOpenSSL

/// One TLS connection without I/O: it transforms ciphertext to plaintext and back.
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
/// All output goes to the `ciphertext` argument of a call; the session keeps no reference to the
/// caller's memory after the call returns. Must be used by one thread at a time.
@safe public struct TLSSession: ~Copyable {
    // SAFETY: an SSL created in `init`; `deinit` frees it before `transfer` and `context`, to which
    // it points.
    private let session: OpaquePointer
    private let transfer: SharedTransfer
    private let context: TLSContext
    /// True once the handshake is complete and plaintext may be encrypted.
    public private(set) var isEstablished = false
    private var failure: TLSError?
    /// Ciphertext bytes that were received until the handshake was complete.
    private var handshakeByteCount = 0
    /// True from the offer of a ticket until received data shows that the server accepts the
    /// ticket.
    private var isResuming: Bool

    /// Maximum number of plaintext bytes in one record (RFC 8446 section 5.1).
    public static let recordLimit = 16_384

    /// Maximum overhead of a record in bytes: header, explicit nonce or content type, and tag.
    private static let recordOverhead = 64

    /// The result of processing input.
    public enum ReceiveResult: Equatable, Sendable {
        /// All input is consumed; more is needed from the peer.
        case more
        /// `plaintext` is full and more is available: empty it and call again with the rest of the
        /// input, even if that is empty.
        case plaintextFull
        /// `ciphertext` is full and there is more to send: empty it and call again. `receive`
        /// writes only handshakes and alerts to it, a few KiB.
        case ciphertextFull
        /// The peer sent close_notify: no data follows.
        case closed
        /// The session has failed. `ciphertext` may contain an alert for the peer.
        case failed(TLSError)
    }

    /// Creates a session.
    ///
    /// - Parameter serverName: For a client, the name of the server; nil for a server.
    public init(context: TLSContext, serverName: ServerName?) throws(TLSError) {
        precondition(context.isClient == (serverName != nil), "clients name their server")
        ErrorQueue.clear()
        // SAFETY: all three are created here. SSL_free also frees the BIO, whose ownership
        // SSL_set_bio transfers; the transfer is freed after it, including after an error.
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
            // OpenSSL reads as many records at a time as its buffer holds, instead of one header at
            // a time.
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
        // The server sent nothing after it received the ticket, whatever ended the session.
        if isResuming { context.tickets?.refuse() }
        // SAFETY: the session belongs to this value alone; its BIO is freed with it, and the
        // transfer only after that.
        unsafe SSL_free(session)
        unsafe transfer.deallocate()
    }

    // MARK: Receiving

    /// Processes ciphertext from the peer, for both handshake and decryption.
    ///
    /// - Parameters:
    ///   - input: The received bytes.
    ///   - offset: Position in `input` at which to continue; advanced past the bytes consumed.
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
            // SAFETY: `session` lives as long as this value; `readRecords` counts the bytes it
            // initializes.
            unsafe plaintext.withUnsafeMutableBytes { buffer, count in
                if !isEstablished {
                    let result = unsafe SSL_do_handshake(session)
                    guard result == 1 else { return outcome(of: result) }
                    if let failure = negotiationFailure() { return .failed(fail(failure)) }
                    isEstablished = true
                    handshakeByteCount = transfer.value.receivedCount
                    if context.tickets != nil { transfer.value.verified = .now }
                }
                return unsafe readRecords(into: buffer, &count)
            }
        }
    }

    /// Decrypts until the input is exhausted or the output is full.
    private mutating func readRecords(
        into buffer: UnsafeMutableRawBufferPointer, _ count: inout Int
    ) -> ReceiveResult {
        while true {
            // SAFETY: `session` lives as long as this value; `room` bytes of the buffer follow the
            // `count` initialized ones.
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

    /// Handles the end of the connection's input, orderly or not. Returns nil if close_notify was
    /// received before, otherwise the error.
    public mutating func receiveEnd() -> TLSError? {
        if let failure { return failure }
        // SAFETY: `session` lives as long as this value.
        if unsafe SSL_get_shutdown(session) & SSL_RECEIVED_SHUTDOWN != 0 { return nil }
        return fail(FailureReport(transfer.value, context).end(established: isEstablished))
    }

    // MARK: Sending

    /// Returns the maximum number of ciphertext bytes for a number of plaintext bytes.
    public static func sealedCount(_ plaintextCount: Int) -> Int {
        let records = (plaintextCount + recordLimit - 1) / recordLimit
        return plaintextCount + records * recordOverhead
    }

    /// Encrypts all of the plaintext in as few records as possible.
    ///
    /// The session must be established, and `ciphertext` must have `sealedCount` free bytes.
    ///
    /// - Returns: False if nothing was encrypted: the session has failed, or must first receive the
    ///   rest of a message from the peer (a fragmented key update). If the result is false, keep
    ///   the plaintext and call `receive`.
    public mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        let count = plaintext.byteCount
        precondition(isEstablished, "no handshake yet")
        precondition(ciphertext.freeCapacity >= Self.sealedCount(count), "no room to seal")
        // A comparison with nil would release a copy of the failure.
        if case .some = failure { return false }
        guard count > 0 else { return true }
        ErrorQueue.clear()
        var offset = 0
        let nothing = RawSpan()
        let written = Self.lend(transfer, nothing, &offset, &ciphertext) {
            // SAFETY: `session` lives as long as this value; SSL_write reads the bytes only during
            // the call.
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

    /// Handles a failed write. This is a separate function that is not inlined, so that `seal`
    /// stays small.
    @inline(never)
    private mutating func recordFailedWrite(_ written: Int32) {
        // SAFETY: `session` lives as long as this value.
        if unsafe SSL_get_error(session, written) != SSL_ERROR_WANT_READ {
            failure = TLSError(
                .protocolViolation, "OpenSSL cannot encrypt: \(ErrorQueue.take().text)")
        }
    }

    /// Sends close_notify. Nothing can be encrypted afterwards. Does nothing before the handshake
    /// is complete or after a failure. Requires `sealedCount(2)` free bytes.
    public mutating func close(ciphertext: inout OutputRawSpan) {
        guard isEstablished, failure == nil else { return }
        precondition(ciphertext.freeCapacity >= Self.sealedCount(2), "no room for close_notify")
        ErrorQueue.clear()
        var offset = 0
        let nothing = RawSpan()
        _ = Self.lend(transfer, nothing, &offset, &ciphertext) {
            // SAFETY: `session` lives as long as this value; the call writes to the sink.
            unsafe SSL_shutdown(session)
        }
        ErrorQueue.clear()
    }

    // MARK: Negotiated parameters

    /// The protocol selected by ALPN, such as `h2`; nil if there is none.
    public var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        // SAFETY: the `count` bytes at `name` belong to the session and are copied immediately.
        unsafe SSL_get0_alpn_selected(session, &name, &count)
        guard count > 0, let name = unsafe name else { return nil }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    /// The negotiated version, `TLSv1.2` or `TLSv1.3`.
    public var versionName: String {
        // SAFETY: OpenSSL's names of versions are constant.
        unsafe String(cString: SSL_get_version(session))
    }

    /// The cipher suite in OpenSSL's notation.
    public var cipherName: String {
        // SAFETY: ciphers and their names are constant in OpenSSL.
        guard let cipher = unsafe SSL_get_current_cipher(session) else { return "none" }
        return unsafe String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// Whether the session resumed an earlier one.
    var isResumed: Bool {
        // SAFETY: `session` lives as long as this value.
        unsafe SSL_session_reused(session) == 1
    }

    /// The certificate presented by the peer, verified as configured by the context; nil if there
    /// was none. In a resumed session, it is the certificate presented in the original session.
    public var peerCertificate: Certificate? {
        // SAFETY: the certificate belongs to the session; `retaining` adds a reference, or accepts
        // nil.
        unsafe Certificate(retaining: SSL_get0_peer_certificate(session))
    }

    // MARK: Internals

    /// Provides input and output to the BIO for one call.
    private static func lend<Result>(
        _ transfer: SharedTransfer, _ input: RawSpan, _ offset: inout Int,
        _ ciphertext: inout OutputRawSpan,
        _ body: () -> Result
    ) -> Result {
        // SAFETY: both ranges are removed before these closures end, and OpenSSL accesses them only
        // in `body`. `offset` was checked to be within the input; `count` bytes of the sink are
        // initialized.
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

    /// Converts the result of an unsuccessful OpenSSL call to a `ReceiveResult`.
    private mutating func outcome(of result: Int32) -> ReceiveResult {
        // SAFETY: `session` lives as long as this value.
        switch unsafe SSL_get_error(session, result) {
        case SSL_ERROR_WANT_READ: return .more
        case SSL_ERROR_WANT_WRITE: return .ciphertextFull
        case SSL_ERROR_ZERO_RETURN where isEstablished: return .closed
        default:
            let report = FailureReport(transfer.value, context)
            var failure = report.failure(ErrorQueue.take(), established: isEstablished)
            failure.precedesData = precedesData(failure)
            return .failed(fail(failure))
        }
    }

    /// Size of a TLS 1.3 record with an alert and no padding: header, alert, content type, and tag.
    private static let alertRecordByteCount = 24

    /// Returns whether the server refused the certificate before it processed application data. In
    /// TLS 1.3, the client sends data right after its certificate, but the server accepts the data
    /// only after its own side of the handshake (RFC 8446 section 4.4.4). If it sent anything
    /// besides the alert, such as a ticket, its side may have been complete.
    private func precedesData(_ failure: TLSError) -> Bool {
        switch failure.code {
        case .clientCertificateRequired, .clientCertificateRefused: break
        default: return false
        }
        // SAFETY: `session` lives as long as this value.
        guard isEstablished, unsafe SSL_version(session) == TLS1_3_VERSION else { return false }
        return transfer.value.receivedCount - handshakeByteCount == Self.alertRecordByteCount
    }

    /// Ends the session after a failure. If the session offered a ticket, the ticket may be the
    /// cause. Later sessions then offer no ticket, so the next session shows whether the failure is
    /// permanent.
    private mutating func fail(_ failure: TLSError) -> TLSError {
        var failure = failure
        if isResuming {
            context.tickets?.refuse()
            failure = TLSError(.handshakeFailed, failure.message)
        }
        self.failure = failure
        return failure
    }

    /// Returns an error if a client offered protocols and the server selected none. Without ALPN,
    /// the client cannot know that the server supports HTTP/2 (RFC 9113 section 3.2).
    private func negotiationFailure() -> TLSError? {
        guard context.isClient, !context.applicationProtocols.isEmpty else { return nil }
        if let selected = applicationProtocol, context.applicationProtocols.contains(selected) {
            return nil
        }
        return FailureReport(transfer.value, context).noApplicationProtocol
    }
}
