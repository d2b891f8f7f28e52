internal import Glibc
import Ring
import TLS

/// Octets over TLS on a blocking socket: for what has time, such as reading a feedback service.
@safe final class BlockingStream {
    /// Why it goes no further.
    enum Failure: Error {
        case network(String)
        case tls(TLSError)

        var message: String {
            switch self {
            case .network(let message): message
            case .tls(let error): error.message
            }
        }
    }

    private let descriptor: Int32
    private var session: TLSSession
    private let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    private let cipher = UnsafeMutableRawBufferPointer.allocate(byteCount: 98_304, alignment: 16)
    /// What was opened and not taken yet.
    private var opened: [UInt8] = []
    private var hasEnded = false

    /// Connects and shakes hands.
    ///
    /// - Parameter silenceSeconds: The longest wait for the peer at any one moment.
    init(
        to address: SocketAddress, context: TLSContext, serverName: ServerName,
        silenceSeconds: Int
    ) throws(Failure) {
        do {
            session = try TLSSession(context: context, serverName: serverName)
        } catch {
            throw .tls(error)
        }
        do {
            descriptor = try Socket.stream(for: address)
        } catch {
            throw .network("\(error)")
        }
        var limit = timeval(tv_sec: silenceSeconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(
                descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let code = Socket.connect(descriptor, to: address)
        // A connect that ran into SO_SNDTIMEO says EINPROGRESS (socket(7)).
        guard code == 0 else {
            throw .network(describe(errno: code == EINPROGRESS ? ETIMEDOUT : code))
        }
        try feed(0)
        while !session.isEstablished {
            try receive()
            guard !hasEnded else { throw .network("the server closed the connection") }
        }
    }

    deinit {
        Glibc.close(descriptor)
        unsafe input.deallocate()
        unsafe plain.deallocate()
        unsafe cipher.deallocate()
    }

    /// The next octets; empty at the stream's end, said in order or not.
    func next() throws(Failure) -> [UInt8] {
        while opened.isEmpty, !hasEnded { try receive() }
        let octets = opened
        opened = []
        return octets
    }

    private func receive() throws(Failure) {
        let count = unsafe read(descriptor, input.baseAddress, input.count)
        if count < 0 {
            if errno == EINTR { return }
            throw .network(errno == EAGAIN ? "no octet in time" : describe(errno: errno))
        }
        guard count > 0 else {
            if !session.isEstablished, let failure = session.receiveEnd() { throw .tls(failure) }
            hasEnded = true
            return
        }
        try feed(count)
    }

    private func feed(_ count: Int) throws(Failure) {
        var offset = 0
        while true {
            var plaintext = unsafe OutputRawSpan(buffer: plain, initializedCount: 0)
            var replies = unsafe OutputRawSpan(buffer: cipher, initializedCount: 0)
            // Safe: `count` octets were read into the buffer, which nothing else touches.
            let bytes = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: input[..<count]))
            let result = session.receive(
                bytes, at: &offset, plaintext: &plaintext, ciphertext: &replies)
            let plainCount = unsafe plaintext.finalize(for: plain)
            try send(unsafe replies.finalize(for: cipher))
            unsafe opened += plain[..<plainCount]
            switch result {
            case .more: return
            case .plaintextFull, .ciphertextFull: continue
            case .closed:
                hasEnded = true
                return
            case .failed(let error): throw .tls(error)
            }
        }
    }

    private func send(_ count: Int) throws(Failure) {
        var sent = 0
        while sent < count {
            let written = unsafe Glibc.send(
                descriptor, cipher.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
            guard written > 0 else { throw .network(describe(errno: errno)) }
            sent += written
        }
    }
}
