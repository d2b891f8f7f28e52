internal import Glibc
package import Ring
import Support
package import TLS

/// Bytes over TLS on a blocking socket: for what has time, such as the doctor, or reading a feedback
/// service.
@safe package final class BlockingStream {
    /// Why it goes no further.
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
    }

    /// How long it waits, seconds.
    package struct Patience {
        /// For a connection. An address that does not answer is passed over then: a firewall that
        /// swallows packets says nothing, and there may be others.
        var connecting: Int
        /// For the peer, at any one moment.
        var silence: Int
        /// For all of it; nil: as long as the peer goes on.
        var whole: Int?

        package init(connecting: Int, silence: Int, whole: Int? = nil) {
            self.connecting = connecting
            self.silence = silence
            self.whole = whole
        }
    }

    private let descriptor: Int32
    package private(set) var session: TLSSession
    /// Set at the stream's end where that was not said in order.
    package private(set) var endFailure: TLSError?
    private let deadline: UInt64
    private let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    private let cipher = UnsafeMutableRawBufferPointer.allocate(byteCount: 98_304, alignment: 16)
    /// What was opened and not taken yet.
    private var opened: [UInt8] = []
    /// What went wrong behind it.
    private var failure: Failure?
    private var hasEnded = false

    /// Connects the socket; nothing is said yet.
    package init(
        to address: SocketAddress, context: TLSContext, serverName: ServerName, patience: Patience
    ) throws(Failure) {
        do {
            session = try TLSSession(context: context, serverName: serverName)
        } catch {
            throw .tls(error)
        }
        deadline = patience.whole.map { Clock.now().nanoseconds + UInt64($0) * second } ?? .max
        do {
            descriptor = try Socket.stream(for: address)
        } catch {
            throw .network("\(error)")
        }
        limitWaits(seconds: min(patience.connecting, patience.silence))
        let code = Socket.connect(descriptor, to: address)
        // A connect that ran into SO_SNDTIMEO says EINPROGRESS (socket(7)).
        guard code == 0 else {
            throw .connect(errno: code == EINPROGRESS ? ETIMEDOUT : code)
        }
        limitWaits(seconds: patience.silence)
    }

    private func limitWaits(seconds: Int) {
        let limit = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            SystemCall.setOption(descriptor, option, limit)
        }
    }

    deinit {
        Glibc.close(descriptor)
        unsafe input.deallocate()
        unsafe plain.deallocate()
        unsafe cipher.deallocate()
    }

    // MARK: Before TLS

    /// Says bytes as they are.
    package func sayPlainly(_ bytes: [UInt8]) throws(Failure) {
        unsafe cipher.copyBytes(from: bytes)
        try send(bytes.count)
    }

    /// The next byte as it is, and no more than it; nil at the stream's end.
    package func nextPlainByte() throws(Failure) -> UInt8? {
        try read(limit: 1) == 0 ? nil : unsafe input[0]
    }

    // MARK: TLS

    /// The handshake.
    package func handshake() throws(Failure) {
        try feed(0)
        while !session.isEstablished {
            if let failure { throw failure }
            guard !hasEnded else {
                if let endFailure { throw .tls(endFailure) }
                throw .network("the server closed the connection")
            }
            try receive()
        }
    }

    /// The next bytes; empty at the stream's end, said in order or not.
    package func next() throws(Failure) -> [UInt8] {
        while opened.isEmpty, !hasEnded {
            if let failure { throw failure }
            try receive()
        }
        let bytes = opened
        opened = []
        return bytes
    }

    /// Says bytes, at most as many as a few records hold.
    package func say(_ bytes: [UInt8]) throws(Failure) {
        var output = unsafe OutputRawSpan(buffer: cipher, initializedCount: 0)
        // SAFETY: bytes have no padding.
        let isSealed = session.seal(bytes.rawSpan, ciphertext: &output)
        let count = unsafe output.finalize(for: cipher)
        guard isSealed else { throw .network("the TLS session ended") }
        try send(count)
    }

    private func receive() throws(Failure) {
        let count = unsafe try read(limit: input.count)
        guard count > 0 else {
            endFailure = session.receiveEnd()
            hasEnded = true
            return
        }
        try feed(count)
    }

    private func read(limit: Int) throws(Failure) -> Int {
        while true {
            guard Clock.now().nanoseconds < deadline else { throw .network("no answer in time") }
            let count = unsafe Glibc.read(descriptor, input.baseAddress, limit)
            if count >= 0 { return count }
            if errno == EINTR { continue }
            throw .network(errno == EAGAIN ? "no answer in time" : describe(errno: errno))
        }
    }

    private func feed(_ count: Int) throws(Failure) {
        var offset = 0
        while true {
            var plaintext = unsafe OutputRawSpan(buffer: plain, initializedCount: 0)
            var replies = unsafe OutputRawSpan(buffer: cipher, initializedCount: 0)
            // Safe: `count` bytes were read into the buffer, which nothing else touches.
            let bytes = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: input[..<count]))
            let result = session.receive(
                bytes, at: &offset, plaintext: &plaintext, ciphertext: &replies)
            let plainCount = unsafe plaintext.finalize(for: plain)
            unsafe opened += plain[..<plainCount]
            try send(unsafe replies.finalize(for: cipher))
            switch result {
            case .more: return
            case .plaintextFull, .ciphertextFull: continue
            case .closed:
                hasEnded = true
                return
            case .failed(let error):
                // What was opened before it is taken first.
                failure = .tls(error)
                return
            }
        }
    }

    private func send(_ count: Int) throws(Failure) {
        var sent = 0
        while sent < count {
            let written = unsafe Glibc.send(
                descriptor, cipher.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw .network(describe(errno: errno)) }
            sent += written
        }
    }
}
