import APNs
internal import Glibc
import HPACK
import HTTP2
import Ring
import TLS

/// One connection to APNs for one request, on blocking sockets: for the doctor, which has time.
@safe final class BlockingConnection {
    /// Why it goes no further.
    enum Failure: Error {
        case network(String)
        /// The socket could not be connected.
        case connect(errno: Int32)
        /// The proxy opens no tunnel.
        case proxy(RecordLayerError)
        case tls(TLSError)
        case http2(String)
    }

    /// What APNs said to the request.
    struct Answer {
        /// nil where GOAWAY came in the answer's place.
        var status: UInt16?
        var reason: Reason?
    }

    private let descriptor: Int32
    private(set) var session: TLSSession
    private(set) var http = ClientConnectionStateMachine()
    private let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    private let cipher = UnsafeMutableRawBufferPointer.allocate(byteCount: 98_304, alignment: 16)
    private var mirror = DynamicTableMirror()
    private(set) var serverDate = ServerDate()
    private(set) var isReady = false
    private(set) var answer: Answer?
    private let deadline: UInt64

    /// An address that does not answer is passed over after so long: a firewall that swallows
    /// packets says nothing, and there may be others.
    private static let connectLimitSeconds = 4

    /// Connects the socket; nothing is said yet.
    init(
        to address: SocketAddress, recipe: TLSRecords.Recipe.Value, limitSeconds: Int
    ) throws(Failure) {
        do {
            session = try TLSSession(context: recipe.context, serverName: recipe.serverName)
        } catch {
            throw .tls(error)
        }
        deadline = Clock.now().nanoseconds + UInt64(limitSeconds) * second
        do {
            descriptor = try Socket.stream(for: address)
        } catch {
            throw .network("\(error)")
        }
        limitWaits(seconds: min(limitSeconds, Self.connectLimitSeconds))
        let code = Socket.connect(descriptor, to: address)
        // A connect that ran into SO_SNDTIMEO says EINPROGRESS (socket(7)).
        guard code == 0 else {
            throw .connect(errno: code == EINPROGRESS ? ETIMEDOUT : code)
        }
        limitWaits(seconds: limitSeconds)
    }

    private func limitWaits(seconds: Int) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(
                descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    deinit {
        Glibc.close(descriptor)
        unsafe input.deallocate()
        unsafe plain.deallocate()
        unsafe cipher.deallocate()
    }

    /// Has a proxy open its tunnel to the server.
    func openTunnel(_ recipe: ProxyTunnelStateMachine.Recipe) throws(Failure) {
        var tunnel = ProxyTunnelStateMachine(recipe)
        var count = 0
        while true {
            var offset = 0
            var request = unsafe OutputRawSpan(buffer: cipher, initializedCount: 0)
            // Safe: `count` octets were read into the buffer, which nothing else touches.
            let bytes = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: input[..<count]))
            let action = tunnel.receive(bytes, at: &offset, output: &request)
            try send(unsafe request.finalize(for: cipher))
            switch action {
            case .open: return
            case .refused(let error): throw .proxy(error)
            case .wait: break
            }
            // One octet at a time: what follows the answer is the server's.
            guard Clock.now().nanoseconds < deadline else { throw .network("no answer in time") }
            count = unsafe read(descriptor, input.baseAddress, 1)
            if count == 0 { throw .proxy(tunnel.closedEarly) }
            if count < 0 {
                throw .network(errno == EAGAIN ? "no answer in time" : describe(errno: errno))
            }
        }
    }

    /// The TLS handshake.
    func handshake() throws(Failure) {
        try feed(0)
        while !session.isEstablished { try receive() }
    }

    /// Exchanges SETTINGS.
    func begin() throws(Failure) {
        http.start()
        try flush()
        while !isReady { try receive() }
    }

    /// Sends one request and waits for what is said to it.
    func request(_ fields: [RequestField], payload: [UInt8]) throws(Failure) -> Answer {
        // GOAWAY may have come before anything was asked.
        if let answer, answer.status == nil { return answer }
        answer = nil
        guard http.requestCapacity(payloadCount: payload.count) > 0 else {
            throw .http2("the server takes no request: its SETTINGS allow no stream")
        }
        mirror.limit(capacity: Int(http.headerTableSize))
        let block = RequestBlockEncoder.encode(fields, mirror: &mirror, huffman: false).bytes
        let streamID = http.openStream(tag: 0, payloadCount: payload.count)
        // END_HEADERS, then END_STREAM (RFC 9113 sections 6.2 and 6.1).
        try seal(
            Self.frame(type: 1, flags: 4, streamID, block)
                + Self.frame(type: 0, flags: 1, streamID, payload))
        while true {
            if let answer { return answer }
            try receive()
        }
    }

    private static func frame(
        type: UInt8, flags: UInt8, _ streamID: UInt32, _ payload: [UInt8]
    ) -> [UInt8] {
        let length = UInt32(payload.count)
        return [UInt8(length >> 16), UInt8(length >> 8 & 0xff), UInt8(length & 0xff), type, flags]
            + [24, 16, 8, 0].map { UInt8(streamID >> $0 & 0xff) } + payload
    }

    // MARK: Inside

    private func receive() throws(Failure) {
        guard Clock.now().nanoseconds < deadline else { throw .network("no answer in time") }
        let count = unsafe read(descriptor, input.baseAddress, input.count)
        if count < 0 {
            throw .network(errno == EAGAIN ? "no answer in time" : describe(errno: errno))
        }
        guard count > 0 else {
            if let failure = session.receiveEnd() { throw .tls(failure) }
            throw .network("the server closed the connection")
        }
        try feed(count)
        if session.isEstablished { try flush() }
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
            let replyCount = unsafe replies.finalize(for: cipher)
            try send(replyCount)
            try takeEvents(plainCount)
            switch result {
            case .more: return
            case .plaintextFull, .ciphertextFull: continue
            case .closed: throw .network("the server closed the connection")
            case .failed(let error): throw .tls(error)
            }
        }
    }

    private func takeEvents(_ count: Int) throws(Failure) {
        let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: plain[..<count]))
        serverDate.take(bytes)
        var offset = 0
        while let event = http.nextEvent(in: bytes, at: &offset) {
            switch event {
            case .ready: isReady = true
            case .response(_, let status):
                answer = Answer(
                    status: status, reason: ReasonBody.parse(http.responseBody).reason)
            case .goAway:
                let reason = ReasonBody.parse(http.goAwayDebugData).reason
                if answer == nil { answer = Answer(status: nil, reason: reason) }
            case .notProcessed, .reset:
                if answer == nil { throw .http2("the server refused the stream") }
            case .failed(let error):
                throw .http2("the server broke HTTP/2: \(error.message)")
            case .settingsChanged, .pong: break
            }
        }
    }

    private func flush() throws(Failure) {
        while http.pendingOutputCount > 0 {
            var output = unsafe OutputRawSpan(buffer: plain, initializedCount: 0)
            http.takeOutput(into: &output)
            let count = unsafe output.finalize(for: plain)
            try seal(unsafe Array(plain[..<count]))
        }
    }

    private func seal(_ plaintext: [UInt8]) throws(Failure) {
        var output = unsafe OutputRawSpan(buffer: cipher, initializedCount: 0)
        // SAFETY: octets have no padding.
        let isSealed = session.seal(unsafe plaintext.span.bytes, ciphertext: &output)
        let count = unsafe output.finalize(for: cipher)
        guard isSealed else { throw .network("the TLS session ended") }
        try send(count)
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
