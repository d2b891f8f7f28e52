import BroadsideAPNs
import BroadsideEngine
import BroadsideHPACK
import BroadsideHTTP2
import BroadsideRing
import BroadsideSupport
import BroadsideTLS
internal import FoundationEssentials
internal import Glibc

/// One connection of a client, used on the client's thread: a socket that never blocks, TLS and
/// HTTP/2.
///
///     connecting --> (tunnel) --> handshake --> settings --> open --> closed
///          |            |             |             |          |
///          '------------'-------------'-------------'----------'----> closed, with its failure
///
/// A connection that drains begins no new requests, and is closed once it is open and none is in
/// flight.
@safe final class ClientConnection {
    /// Outcome of a push.
    enum Outcome {
        case response(PushRequest, Response)
        /// The server did not act on the push.
        case notProcessed(PushRequest)
        /// The push was sent, but no response will come.
        case lost(PushRequest)
    }

    /// The server's response to a push.
    struct Response {
        let status: UInt16
        let body: ReasonBody
        let reason: String?
        let uniqueID: UUID?
        let retryAfter: RetryAfter
    }

    private enum Phase {
        case connecting, tunnel, handshake, settings, open, closed
    }

    /// Time limit for opening the connection, including handshake and SETTINGS; nanoseconds.
    private static var openingLimit: UInt64 { 10 * second }
    /// Limit on bytes that wait for the socket. Above it, no further requests are written.
    private static let outputLimit = 1 << 18
    /// Time for which the client still reads after it could not send, nanoseconds.
    private static var lastReadInterval: UInt64 { 2 * second }
    private static let plaintextByteCount = 32_768
    /// Maximum plaintext that one call encrypts, bytes.
    private static let sealedAtOnce = 4 * TLSSession.recordLimit

    let descriptor: Int32
    private var phase = Phase.connecting
    /// The state machine that opens the tunnel through a proxy; nil without a proxy.
    private var tunnel: ProxyTunnelStateMachine?
    private var session: TLSSession
    private var http: ClientConnectionStateMachine
    private var mirror = DynamicTableMirror()
    private let authority: [UInt8]
    private var requests: [UInt32: PushRequest] = [:]
    private var nextTag: UInt32 = 0
    /// The frames that are not encrypted yet.
    private var plaintext: [UInt8] = []
    /// Encrypted records. The socket has taken the first `sentCount` bytes.
    private var ciphertext: [UInt8] = []
    private var sentCount = 0
    /// Number of bytes of frames that were encrypted.
    private var sealedCount = 0
    /// For each part of `ciphertext` that has frames: the offset of its first byte in all frames,
    /// and in `ciphertext`.
    private var sealedParts: [(frames: Int, ciphertext: Int)] = []
    /// Time at which the socket refused to send; nil if it has not, monotonic nanoseconds.
    private var sendFailedAt: UInt64?
    private var room = [UInt8](repeating: 0, count: 65_536)
    private let openedAt: UInt64
    private var liveness: ClientLiveness
    private var outcomes: [Outcome] = []
    /// Whether the connection begins no new requests.
    private(set) var isDraining = false
    /// Whether the connection was ever open for requests.
    private(set) var wasOpen = false
    private(set) var hasResponded = false
    private var hasGoAway = false
    /// Reason why the connection ended; nil if it ended in an orderly way.
    private(set) var failure: String?

    /// Starts to connect.
    ///
    /// - Throws: If a socket cannot be made.
    init(
        to address: SocketAddress, _ configuration: TLSConfigurationBox.Value, authority: [UInt8],
        hasProviderToken: Bool, now: UInt64
    ) throws(BroadsideError) {
        self.authority = authority
        if let proxy = configuration.tunnel {
            tunnel = ProxyTunnelStateMachine(proxy)
        } else {
            tunnel = nil
        }
        openedAt = now
        liveness = ClientLiveness(now: now)
        // Before the first response, APNs accepts one request with a provider token.
        http = ClientConnectionStateMachine(
            configuration: .init(gateUntilFirstResponse: hasProviderToken))
        do {
            session = try TLSSession(
                context: configuration.context, serverName: configuration.serverName)
        } catch {
            throw BroadsideError(error.sentence, exitCode: ExitCode.failure)
        }
        do {
            descriptor = try Socket.stream(for: address)
        } catch {
            throw BroadsideError("\(error)", exitCode: ExitCode.failure)
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        let code = Socket.connect(descriptor, to: address)
        if code != 0, code != EINPROGRESS { fail(describe(errno: code)) }
    }

    deinit { Socket.close(descriptor) }

    // MARK: State

    var isOpen: Bool { phase == .open }
    var isClosed: Bool { phase == .closed }
    var isConnecting: Bool { phase != .open && phase != .closed }
    var inFlight: Int { requests.count }
    /// Whether requests may begin now or later.
    var isUsable: Bool {
        phase == .open && !isDraining && sendFailedAt == nil && http.isUsable
    }
    /// Whether the connection has failed, and was not about to end anyway.
    var isTrouble: Bool { failure != nil && !(isDraining && hasResponded) }

    /// Whether all streams that the server permits are in use. False before the first response,
    /// because the limit is lower until then.
    var isFull: Bool { hasResponded && http.openStreamCount >= http.streamLimit }

    /// Whether the connection was silent, and the response to a PING is awaited.
    var isSilent: Bool { phase == .open && liveness.isAsked }

    /// Events of the socket to wait for.
    var wantedEvents: Int16 {
        if phase == .connecting { return Int16(POLLOUT) }
        let isBlocked = sendFailedAt == nil && sentCount < ciphertext.count
        return Int16(POLLIN) | (isBlocked ? Int16(POLLOUT) : 0)
    }

    /// Returns the outcomes since the last call.
    func takeOutcomes() -> [Outcome] {
        defer { outcomes = [] }
        return outcomes
    }

    /// Prevents new requests on this connection. It ends when the requests in flight have ended.
    func drain() {
        guard phase != .closed, !isDraining else { return }
        isDraining = true
        if phase == .open { http.shutdown() }
    }

    // MARK: Requests

    /// Writes a request; returns false if there is no room for it now, or if the response to a PING
    /// is awaited.
    func send(_ request: PushRequest, authorization: [UInt8]?, now: UInt64) -> Bool {
        let count = request.payload.count
        guard isUsable else { return false }
        pingIfDue(isAwaited: true, now)
        guard !liveness.isAsked,
            plaintext.count + ciphertext.count - sentCount < Self.outputLimit
        else { return false }
        collectControlFrames()
        let tag = nextTag
        if http.requestCapacity(payloadCount: count) > 0 {
            let streamID = http.openStream(tag: tag, payloadCount: count)
            write(request, streamID, authorization, first: count)
        } else if http.mustSendInParts(payloadCount: count),
            let (streamID, allowed) = http.openPartialStream(tag: tag, payloadCount: count)
        {
            write(request, streamID, authorization, first: allowed)
        } else {
            return false
        }
        assert(requests[tag] == nil, "a tag belongs to one request")
        requests[tag] = request
        request.respondBy = now.addingClamped(request.timeout)
        nextTag &+= 1
        return true
    }

    private func write(
        _ request: PushRequest, _ streamID: UInt32, _ authorization: [UInt8]?, first count: Int
    ) {
        assert(count <= request.payload.count, "no more is sent than there is")
        assert(request.attempts < PushRequest.attemptsLimit, "a push is sent so often at most")
        request.streamID = streamID
        request.authorization = authorization
        request.offset = sealedCount + plaintext.count
        request.attempts += 1
        mirror.limit(capacity: Int(http.headerTableSize))
        let block = RequestBlockEncoder.encode(
            request.fields(authority: authority, authorization: authorization), mirror: &mirror,
            huffman: false)
        appendFrame(.headers, .endHeaders, streamID, block.bytes[...])
        guard count > 0 else { return }
        appendFrame(
            .data, count == request.payload.count ? .endStream : [], streamID,
            request.payload[..<count])
    }

    private func writeContinuations() {
        while plaintext.count < Self.outputLimit, let piece = http.nextContinuation(),
            let request = requests[piece.tag]
        {
            appendFrame(
                .data, piece.isLast ? .endStream : [], piece.streamID,
                request.payload[piece.offset..<(piece.offset + piece.count)])
        }
    }

    private func appendFrame(
        _ type: FrameType, _ flags: FrameFlags, _ streamID: UInt32, _ payload: ArraySlice<UInt8>
    ) {
        assert(payload.count <= 16_384, "a frame has a size that each server takes")
        plaintext +=
            FrameHeader(length: payload.count, type: type, flags: flags, streamID: streamID).bytes
        plaintext += payload
    }

    private func collectControlFrames() {
        while http.pendingOutputCount > 0 {
            plaintext += [UInt8](capacity: 16_384) { http.takeOutput(into: &$0) }
        }
    }

    // MARK: Time

    /// Ends requests whose time limit has passed, and the connection if it is silent.
    func check(_ now: UInt64) {
        if isConnecting, now - openedAt >= Self.openingLimit {
            return fail("no connection within \(Self.openingLimit / second) s")
        }
        if let sendFailedAt, now >= sendFailedAt + Self.lastReadInterval { return close() }
        guard phase == .open else { return }
        http.advance(to: now)
        for (tag, request) in requests where now >= request.respondBy {
            http.cancelStream(request.streamID)
            requests[tag] = nil
            outcomes.append(.lost(request))
        }
        if liveness.isDead(now: now) { fail("the server does not respond any more") }
        pingIfDue(isAwaited: !requests.isEmpty, now)
        if isDraining || http.isDraining, requests.isEmpty { end() }
    }

    private func pingIfDue(isAwaited: Bool, _ now: UInt64) {
        guard phase == .open, liveness.needsPing(isAwaited: isAwaited, now: now) else { return }
        liveness.recordPing(now: now)
        http.ping(now)
    }

    // MARK: Bytes

    /// Exchanges bytes with the socket in both directions.
    func move(_ events: Int16, now: UInt64) {
        if phase == .connecting {
            guard events != 0 else { return }
            guard finishConnecting() else { return }
        }
        if events & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(now) }
        flush()
    }

    /// Encrypts the waiting frames and passes them to the socket.
    func flush() {
        guard sendFailedAt == nil else { return }
        if phase == .open {
            collectControlFrames()
            writeContinuations()
        }
        if phase != .connecting, session.isEstablished { seal() }
        while sentCount < ciphertext.count, phase != .closed {
            let count = SystemCall.send(descriptor, ciphertext.rawSpan.extracting(sentCount...))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { break }
            guard count > 0 else {
                // The socket may still have responses and a GOAWAY.
                sendFailedAt = Clock.now().nanoseconds
                if failure == nil { failure = describe(errno: errno) }
                return
            }
            sentCount += count
        }
        if sentCount == ciphertext.count {
            ciphertext.removeAll(keepingCapacity: true)
            sealedParts.removeAll(keepingCapacity: true)
            sentCount = 0
        }
    }

    private func seal() {
        var offset = 0
        while offset < plaintext.count {
            let count = min(Self.sealedAtOnce, plaintext.count - offset)
            var isSealed = false
            let piece = Array(plaintext[offset..<(offset + count)])
            let start = ciphertext.count
            ciphertext += [UInt8](capacity: TLSSession.sealedCount(count)) {
                isSealed = session.seal(piece.rawSpan, ciphertext: &$0)
            }
            // While a message of the peer is incomplete, nothing can be encrypted.
            guard isSealed else { break }
            sealedParts.append((sealedCount, start))
            sealedCount += count
            offset += count
        }
        plaintext.removeFirst(offset)
    }

    private func finishConnecting() -> Bool {
        var code: Int32 = 0
        var count = socklen_t(MemoryLayout<Int32>.size)
        // SAFETY: both are locals; the kernel writes at most the four bytes of `code` during the
        // call.
        let result = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &count)
        guard result == 0, code == 0 else {
            fail(describe(errno: result == 0 ? code : errno))
            return false
        }
        guard tunnel == nil else {
            phase = .tunnel
            _ = openTunnel([])
            return phase != .closed
        }
        phase = .handshake
        feed([])
        return phase != .closed
    }

    /// Exchanges bytes with the proxy.
    ///
    /// - Returns: Received bytes that come from the server behind the proxy.
    private func openTunnel(_ bytes: [UInt8]) -> [UInt8] {
        assert(phase == .tunnel, "the proxy is asked once")
        var offset = 0
        var action = ProxyTunnelStateMachine.Action.wait
        ciphertext += [UInt8](capacity: 16_384) { request in
            action = tunnel?.receive(bytes.rawSpan, at: &offset, output: &request) ?? .open
        }
        switch action {
        case .wait: break
        case .open: phase = .handshake
        case .refused(let error): fail(error.message)
        }
        return Array(bytes[offset...])
    }

    private func receive(_ now: UInt64) {
        while phase != .closed {
            let count = SystemCall.receive(descriptor, &room, Int(MSG_DONTWAIT))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count >= 0 else { return fail(describe(errno: errno)) }
            guard count > 0 else {
                if phase == .tunnel {
                    return fail(tunnel?.closedEarly.message ?? "the proxy closed the connection")
                }
                let error = session.receiveEnd()
                return fail(error?.sentence ?? "the server closed the connection")
            }
            liveness.recordReceived(now: now)
            var bytes = Array(room[..<count])
            if phase == .tunnel { bytes = openTunnel(bytes) }
            if phase != .tunnel { feed(bytes) }
        }
    }

    private func feed(_ bytes: [UInt8]) {
        var offset = 0
        while phase != .closed {
            var result = TLSSession.ReceiveResult.more
            var opened: [UInt8] = []
            ciphertext += [UInt8](capacity: 98_304) { replies in
                opened = [UInt8](capacity: Self.plaintextByteCount) { plaintext in
                    result = session.receive(
                        bytes.rawSpan, at: &offset, plaintext: &plaintext, ciphertext: &replies)
                }
            }
            if phase == .handshake, session.isEstablished {
                phase = .settings
                http.start()
                collectControlFrames()
            }
            if !opened.isEmpty { takeEvents(opened) }
            switch result {
            case .more: return
            case .plaintextFull, .ciphertextFull: continue
            case .closed: return fail("the server closed the connection")
            case .failed(let error): return fail(error.sentence)
            }
        }
    }

    private func takeEvents(_ bytes: [UInt8]) {
        let span = bytes.rawSpan
        var offset = 0
        while let event = http.nextEvent(in: span, at: &offset) {
            switch event {
            case .ready:
                phase = .open
                wasOpen = true
            case .response(let tag, ClientConnectionStateMachine.identifiedStatus):
                hasResponded = true
                guard let request = requests.removeValue(forKey: tag) else { continue }
                let text = String(decoding: [UInt8](http.responseBody), as: UTF8.self)
                outcomes.append(
                    .response(
                        request,
                        Response(
                            status: 200, body: ReasonBody.parse(RawSpan()), reason: nil,
                            uniqueID: UUID(uuidString: text), retryAfter: http.retryAfter)))
            case .response(let tag, let status):
                hasResponded = true
                guard let request = requests.removeValue(forKey: tag) else { continue }
                let body = ReasonBody.parse(http.responseBody)
                let bytes = [UInt8](http.responseBody)
                let text = body.textRange.map { String(decoding: bytes[$0], as: UTF8.self) }
                outcomes.append(
                    .response(
                        request,
                        Response(
                            status: status, body: body, reason: body.reason?.text ?? text,
                            uniqueID: nil, retryAfter: http.retryAfter)))
            case .notProcessed(let tag):
                guard let request = requests.removeValue(forKey: tag) else { continue }
                // A GOAWAY refuses no push in particular.
                if hasGoAway { request.attempts -= 1 }
                outcomes.append(.notProcessed(request))
            case .reset(let tag, _), .streamError(let tag, _):
                guard let request = requests.removeValue(forKey: tag) else { continue }
                outcomes.append(.lost(request))
            case .goAway:
                isDraining = true
                hasGoAway = true
                failure = ReasonBody.parse(http.goAwayDebugData).reason?.text
            case .failed(let error):
                flush()
                return fail(error.sentence)
            case .settingsChanged, .pong, .disownedResponse: break
            }
        }
        assert(
            phase == .closed || requests.count == http.openStreamCount,
            "each open stream has its push")
    }

    // MARK: End

    /// Ends the connection in an orderly way.
    func end() {
        guard phase == .open else { return close() }
        http.shutdown()
        flush()
        if phase == .open {
            ciphertext += [UInt8](capacity: 256) { session.close(ciphertext: &$0) }
            flush()
        }
        close()
    }

    private func fail(_ message: String) {
        if failure == nil { failure = message }
        close()
    }

    private func close() {
        phase = .closed
        plaintext = []
        assert(sentCount <= ciphertext.count, "no more is sent than there is")
        let unsent = sealedParts.first { $0.ciphertext >= sentCount }?.frames ?? sealedCount
        for request in requests.values {
            guard request.offset >= unsent else {
                outcomes.append(.lost(request))
                continue
            }
            request.attempts -= 1
            outcomes.append(.notProcessed(request))
        }
        requests = [:]
    }
}
