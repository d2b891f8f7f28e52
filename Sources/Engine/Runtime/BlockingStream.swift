package import BroadsideRing
import BroadsideSupport
package import BroadsideTLS
internal import Glibc

/// TLS over a blocking socket, for callers that may wait, such as the doctor and the feedback
/// service.
package final class BlockingStream {
    /// Error that ends the stream.
    package enum Failure: Error {
        /// The socket could not be connected.
        case connect(errno: Int32)
        case network(String)
        case tls(TLSError)

        package var message: String {
            switch self {
            case .connect(let code): describe(errno: code)
            case .network(let message): message
            case .tls(let error): error.sentence
            }
        }

        /// Whether the server refuses the connection because of the client's certificate.
        package var refusesCertificate: Bool {
            guard case .tls(let error) = self else { return false }
            return error.code == .clientCertificateRefused
                || error.code == .clientCertificateRequired
        }
    }

    /// Timeouts in seconds.
    package struct Timeouts {
        /// Time limit for connecting to an address. After this time the next address is tried,
        /// because a firewall that drops packets sends no error.
        var connecting: Int
        /// Time limit for the peer to send or accept bytes.
        var silence: Int
        /// Total time; nil: unlimited.
        var whole: Int?

        package init(connecting: Int, silence: Int, whole: Int? = nil) {
            self.connecting = connecting
            self.silence = silence
            self.whole = whole
        }
    }

    private let descriptor: Int32
    package private(set) var session: TLSSession
    /// TLS error if the stream ended without an orderly close.
    package private(set) var endFailure: TLSError?
    private let deadline: UInt64
    /// Maximum number of times that an interrupted connect is continued.
    private static let interruptions = 8
    private static let plainByteCount = 32_768
    /// Size of the buffer for ciphertext, in bytes: room for several records and the messages of a
    /// handshake.
    private static let cipherByteCount = 98_304
    /// Plaintext that was decrypted but not returned yet.
    private var opened: [UInt8] = []
    /// Error to report after the bytes in `opened` are returned.
    private var failure: Failure?
    private var hasEnded = false

    /// Connects the socket; nothing is sent yet.
    package init(
        to address: SocketAddress, context: TLSContext, serverName: ServerName, timeouts: Timeouts
    ) throws(Failure) {
        do {
            session = try TLSSession(context: context, serverName: serverName)
        } catch {
            throw .tls(error)
        }
        deadline = timeouts.whole.map { Clock.now().nanoseconds + UInt64($0) * second } ?? .max
        do {
            descriptor = try Socket.stream(for: address)
        } catch {
            throw .network("\(error)")
        }
        limitWaits(seconds: min(timeouts.connecting, timeouts.silence))
        var code = Socket.connect(descriptor, to: address)
        // The kernel interrupts connect to finish a ring that was just closed; a second call
        // continues it.
        for _ in 0..<Self.interruptions where code == EINTR {
            code = Socket.connect(descriptor, to: address)
        }
        // A connect that exceeds SO_SNDTIMEO fails with EINPROGRESS (socket(7)); a connect that was
        // continued fails with EALREADY.
        guard code == 0 || code == EISCONN else {
            throw .connect(errno: code == EINPROGRESS || code == EALREADY ? ETIMEDOUT : code)
        }
        limitWaits(seconds: timeouts.silence)
    }

    private func limitWaits(seconds: Int) {
        let limit = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            SystemCall.setOption(descriptor, option, limit)
        }
    }

    /// Limits the wait that follows an interrupted one, which would otherwise last as long again.
    private func limitWaitsToDeadline() {
        let now = Clock.now().nanoseconds
        guard deadline != .max, now < deadline else { return }
        limitWaits(seconds: Int((deadline - now) / second) + 1)
    }

    deinit {
        Glibc.close(descriptor)
    }

    // MARK: Before TLS

    /// Sends bytes without TLS.
    package func writePlaintext(_ bytes: [UInt8]) throws(Failure) {
        try send(bytes)
    }

    /// Reads and returns exactly one byte without TLS; nil at the end of the stream.
    package func nextPlainByte() throws(Failure) -> UInt8? {
        try read(limit: 1).first
    }

    // MARK: TLS

    /// Performs the handshake.
    package func handshake() throws(Failure) {
        assert(!session.isEstablished, "a connection has one handshake")
        try feed([])
        while !session.isEstablished {
            if let failure { throw failure }
            guard !hasEnded else {
                if let endFailure { throw .tls(endFailure) }
                throw .network("the server closed the connection")
            }
            try receive()
        }
    }

    /// Returns the next bytes; empty at the end of the stream, orderly or not.
    package func next() throws(Failure) -> [UInt8] {
        while opened.isEmpty, !hasEnded {
            if let failure { throw failure }
            try receive()
        }
        let bytes = opened
        opened = []
        return bytes
    }

    /// Sends bytes, at most a few records.
    package func write(_ bytes: [UInt8]) throws(Failure) {
        assert(
            TLSSession.sealedCount(bytes.count) <= Self.cipherByteCount, "the records have room")
        var isSealed = false
        let records = [UInt8](capacity: Self.cipherByteCount) {
            isSealed = session.seal(bytes.rawSpan, ciphertext: &$0)
        }
        guard isSealed else { throw .network("the TLS session ended") }
        try send(records)
    }

    private func receive() throws(Failure) {
        let bytes = try read(limit: Self.plainByteCount)
        guard !bytes.isEmpty else {
            endFailure = session.receiveEnd()
            hasEnded = true
            return
        }
        try feed(bytes)
    }

    /// Returns received bytes; empty at the end of the stream.
    private func read(limit: Int) throws(Failure) -> [UInt8] {
        var room = [UInt8](repeating: 0, count: limit)
        while true {
            guard Clock.now().nanoseconds < deadline else { throw .network("no response in time") }
            let count = SystemCall.read(descriptor, &room)
            if count >= 0 { return Array(room[..<count]) }
            if errno == EINTR {
                limitWaitsToDeadline()
                continue
            }
            throw .network(errno == EAGAIN ? "no response in time" : describe(errno: errno))
        }
    }

    private func feed(_ bytes: [UInt8]) throws(Failure) {
        var offset = 0
        while true {
            var result = TLSSession.ReceiveResult.more
            let replies = [UInt8](capacity: Self.cipherByteCount) { replies in
                opened += [UInt8](capacity: Self.plainByteCount) { plaintext in
                    result = session.receive(
                        bytes.rawSpan, at: &offset, plaintext: &plaintext, ciphertext: &replies)
                }
            }
            try send(replies)
            switch result {
            case .more: return
            case .plaintextFull, .ciphertextFull: continue
            case .closed:
                hasEnded = true
                return
            case .failed(let error):
                // Plaintext before the error is returned first.
                failure = .tls(error)
                return
            }
        }
    }

    private func send(_ bytes: [UInt8]) throws(Failure) {
        var sent = 0
        while sent < bytes.count {
            let written = SystemCall.send(descriptor, bytes.rawSpan.extracting(sent...))
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw .network(describe(errno: errno)) }
            sent += written
        }
    }
}
