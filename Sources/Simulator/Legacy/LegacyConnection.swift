internal import BroadsideAPNs
internal import BroadsideLegacyGateway
internal import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// One TLS connection of the gateway or the feedback service, on a nonblocking socket.
///
///     handshake -> reading -> rejecting -> ending -> gone
///                     |           (discards until its packet is due)
///                     '--------------------^  the peer ends it
final class LegacyConnection {
    enum Phase: Equatable {
        case handshake
        case reading
        /// A bad notification was received. Its error packet is due at this time, monotonic
        /// nanoseconds.
        case awaitingErrorPacket(due: UInt64)
        /// All output is queued. The connection is closed once the output is written and the peer
        /// has closed its side, at the latest at this time.
        case ending(due: UInt64)
        case gone
    }

    let descriptor: Int32
    let number: UInt64
    var phase = Phase.handshake
    /// The topics of the client's certificate.
    private(set) var topics: [[UInt8]] = []
    /// The reason for rejecting the client's certificate; nil if it is accepted.
    private(set) var refusal: Reason?
    var reader = BinaryNotificationReader()
    /// The identifier of the last accepted notification.
    var lastAccepted: UInt32?
    var accepted: UInt64 = 0
    /// True after a bad notification. All later input is then discarded.
    var discardsInput = false
    /// The error packet that is still to be sent; nil if there is none.
    var packet: BinaryErrorPacket?
    /// How the connection ends.
    var end = GatewayScript.End.fin

    private let certificates: ClientCertificateRule
    private var session: TLSSession
    /// Ciphertext queued for the socket.
    private var output: [UInt8] = []
    private var outputOffset = 0

    /// Time for which a connection may keep sending after its end was announced, nanoseconds.
    private static let lingerNanoseconds: UInt64 = 2_000_000_000
    private static let roomCount = 65_536

    init(
        descriptor: Int32, number: UInt64, context: TLSContext, certificates: ClientCertificateRule
    ) throws(TLSError) {
        self.descriptor = descriptor
        self.number = number
        self.certificates = certificates
        session = try TLSSession(context: context, serverName: nil)
    }

    deinit { _ = close(descriptor) }

    /// Whether bytes are queued for the socket.
    var wantsToWrite: Bool { outputOffset < output.count }

    /// Reads the available data, and returns its plaintext. Afterwards `phase` shows whether the
    /// peer has closed the connection.
    func read() -> [UInt8] {
        var opened: [UInt8] = []
        var input = [UInt8](repeating: 0, count: 32_768)
        let count = SystemCall.read(descriptor, &input)
        if count < 0, errno == EAGAIN || errno == EINTR { return [] }
        guard count > 0 else {
            phase = .gone
            return []
        }
        var offset = 0
        while true {
            var result = TLSSession.ReceiveResult.more
            opened += [UInt8](capacity: Self.roomCount) { plaintext in
                output += [UInt8](capacity: Self.roomCount) { replies in
                    result = session.receive(
                        input.span.rawBytes.extracting(first: count), at: &offset,
                        plaintext: &plaintext, ciphertext: &replies)
                }
            }
            switch result {
            case .plaintextFull, .ciphertextFull:
                continue
            case .more:
                if phase == .handshake, session.isEstablished { establish() }
                return opened
            case .closed, .failed:
                write()
                phase = .gone
                return opened
            }
        }
    }

    private func establish() {
        assert(phase == .handshake, "a second handshake")
        phase = .reading
        guard let certificate = session.peerCertificate else {
            // TLS requires a certificate; without one no topic is known.
            refusal = .badCertificate
            return
        }
        refusal = certificates.refusal(certificate)
        let scope = ClientCertificateRule.scope(of: certificate)
        topics = scope?.topics.map { Array($0.utf8) } ?? []
    }

    /// Encrypts and queues bytes for the peer.
    func enqueue(_ bytes: [UInt8]) {
        assert(phase != .handshake, "nothing is sealed before the handshake")
        for start in stride(from: 0, to: bytes.count, by: TLSSession.recordLimit) {
            let piece = Array(bytes[start..<min(start + TLSSession.recordLimit, bytes.count)])
            seal { session, output in
                _ = session.seal(piece.span.rawBytes, ciphertext: &output)
            }
        }
    }

    /// Announces the end of the output, and writes the output that is queued.
    ///
    /// - Parameter isOrderly: Whether a TLS close_notify shows that nothing is missing.
    func finish(now: UInt64, isOrderly: Bool = true) {
        assert(phase != .handshake, "a handshake is not finished by a close")
        if isOrderly { seal { session, output in session.close(ciphertext: &output) } }
        phase = .ending(due: now + Self.lingerNanoseconds)
        write()
        if end == .rst {
            SystemCall.setOption(descriptor, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
            phase = .gone
        }
    }

    private func seal(_ body: (inout TLSSession, inout OutputRawSpan) -> Void) {
        output += [UInt8](capacity: Self.roomCount) { body(&session, &$0) }
    }

    /// Writes as much as the socket accepts.
    func write() {
        while wantsToWrite {
            let count = SystemCall.send(
                descriptor, output.span.rawBytes.extracting(outputOffset...))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0 else {
                phase = .gone
                return
            }
            outputOffset += count
            assert(outputOffset <= output.count)
        }
        output = []
        outputOffset = 0
        // A connection that ends by RST sends no FIN first.
        if case .ending = phase, end != .rst { _ = shutdown(descriptor, Int32(SHUT_WR)) }
    }
}
