internal import BroadsideAPNs
internal import BroadsideLegacyGateway
internal import BroadsideSupport
internal import BroadsideTLS
internal import Glibc

/// One TLS connection of the gateway or the feedback service, on a socket that never blocks.
///
///     handshake -> reading -> condemned -> ending -> gone
///                     |           (discards until its packet is due)
///                     '--------------------^  the peer ends it
final class LegacyConnection {
    enum Phase: Equatable {
        case handshake
        case reading
        /// Bad: the packet follows at that time, monotonic nanoseconds.
        case awaitingErrorPacket(due: UInt64)
        /// All is said; closed once it is out and the peer has ended, or at that time.
        case ending(due: UInt64)
        case gone
    }

    let descriptor: Int32
    let number: UInt64
    var phase = Phase.handshake
    /// The topics of the client's certificate.
    private(set) var topics: [[UInt8]] = []
    /// Why the client's certificate is refused; nil if it is accepted.
    private(set) var refusal: Reason?
    var reader = BinaryNotificationReader()
    /// The identifier of the last accepted notification.
    var lastAccepted: UInt32?
    var accepted: UInt64 = 0
    /// A bad notification came: what follows it is discarded.
    var discardsInput = false
    /// What is said when it is due; nil: nothing is, or it was said.
    var packet: BinaryErrorPacket?
    /// How it ends.
    var end = GatewayScript.End.fin

    private let certificates: ClientCertificateRule
    private var session: TLSSession
    /// Ciphertext that waits for the socket.
    private var output: [UInt8] = []
    private var outputOffset = 0

    /// For how long a connection whose end was said may go on sending.
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

    /// Whether bytes wait for the socket.
    var wantsToWrite: Bool { outputOffset < output.count }

    /// Reads what there is; the plaintext. The phase says whether the peer has ended.
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
        phase = .reading
        guard let certificate = session.peerCertificate else {
            // TLS demands one; without it nobody is spoken for.
            refusal = .badCertificate
            return
        }
        refusal = certificates.refusal(certificate)
        let scope = ClientCertificateRule.scope(of: certificate)
        topics = scope?.topics.map { Array($0.utf8) } ?? []
    }

    /// Seals bytes for the peer.
    func enqueue(_ bytes: [UInt8]) {
        for start in stride(from: 0, to: bytes.count, by: TLSSession.recordLimit) {
            let piece = Array(bytes[start..<min(start + TLSSession.recordLimit, bytes.count)])
            seal { session, output in
                _ = session.seal(piece.span.rawBytes, ciphertext: &output)
            }
        }
    }

    /// Says that nothing follows, and lets the rest out.
    func finish(now: UInt64) {
        seal { session, output in session.close(ciphertext: &output) }
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

    /// Writes what the socket takes.
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
        }
        output = []
        outputOffset = 0
        // An end by RST has no FIN before it.
        if case .ending = phase, end != .rst { _ = shutdown(descriptor, Int32(SHUT_WR)) }
    }
}
