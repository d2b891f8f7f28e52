import BroadsideAPNs
import BroadsideEngine
import BroadsideHPACK
import BroadsideHTTP2
import BroadsideRing
import BroadsideSupport
import BroadsideTLS

/// One connection to APNs over a blocking stream, for commands that send one request at a time and
/// may wait, such as `doctor`.
@safe final class BlockingConnection {
    /// The cause that ends the connection.
    enum Failure: Error {
        case network(String)
        /// The socket could not be connected.
        case connect(errno: Int32)
        /// The proxy did not open a tunnel.
        case proxy(RecordLayerError)
        case tls(TLSError)
        case http2(String)
        /// The server did not act on the request (RFC 9113 section 8.7), or it was not sent. Has
        /// the cause.
        case notProcessed(String)
    }

    /// APNs' response to the request, or its GOAWAY.
    struct Response {
        /// HTTP status; nil for a GOAWAY.
        var status: UInt16?
        var reason: Reason?
        /// Text of the reason; nil if the body has none. The text may be a reason that `Reason`
        /// lacks.
        var reasonText: String?
        /// The delay that the response asks for, seconds; nil if none.
        var retryAfterSeconds: UInt64?
        /// Header fields and body; empty unless the connection reads whole responses.
        var fields: [HeaderBlockReader.Field] = []
        var body: [UInt8] = []
    }

    private let stream: BlockingStream
    /// Records whole responses; nil if status and reason are enough.
    private var recorder: ResponseRecorder?
    /// The server's latest GOAWAY with a reason, else its latest one; nil if none came. A response
    /// may still come: a GOAWAY names the last stream that the server processes (RFC 9113 section
    /// 6.8).
    private(set) var goAway: Response?
    private(set) var http = ClientConnectionStateMachine()
    private var mirror = DynamicTableMirror()
    private(set) var serverDate = ServerDate()
    private(set) var isReady = false
    /// Whether a request was sent, at least in part.
    private(set) var hasSentRequest = false
    /// Bytes of the payload for which the server's windows have left no room yet.
    private(set) var unsentCount = 0
    private(set) var response: Response?

    /// Parameters that TLS negotiated.
    var session: TLSSession { _read { yield stream.session } }

    private static let connectLimitSeconds = 4

    /// Connects the socket without sending anything.
    ///
    /// - Parameter bodyLimit: Maximum size of a body, in bytes; nil if only status and reason are
    ///   needed. With a limit, whole responses are recorded.
    init(
        to address: SocketAddress, configuration: TLSConfigurationBox.Value, limitSeconds: Int,
        bodyLimit: Int? = nil
    ) throws(Failure) {
        recorder = bodyLimit.map { ResponseRecorder(bodyLimit: $0) }
        do throws(BlockingStream.Failure) {
            stream = try BlockingStream(
                to: address, context: configuration.context, serverName: configuration.serverName,
                timeouts: .init(
                    connecting: Self.connectLimitSeconds, silence: limitSeconds,
                    whole: limitSeconds))
        } catch {
            throw Failure(error)
        }
    }

    /// Asks a proxy to open a tunnel to the server.
    func openTunnel(_ configuration: ProxyTunnelStateMachine.Configuration) throws(Failure) {
        var tunnel = ProxyTunnelStateMachine(configuration)
        var bytes: [UInt8] = []
        while true {
            var offset = 0
            var action = ProxyTunnelStateMachine.Action.wait
            let words = [UInt8](capacity: 16_384) { request in
                action = tunnel.receive(bytes.rawSpan, at: &offset, output: &request)
            }
            try attempt { () throws(BlockingStream.Failure) in try stream.writePlaintext(words) }
            switch action {
            case .open: return
            case .refused(let error): throw .proxy(error)
            case .wait: break
            }
            // Reads one byte at a time, because the bytes after the proxy's response belong to the
            // TLS handshake.
            let next = try attempt { () throws(BlockingStream.Failure) in
                try stream.nextPlainByte()
            }
            guard let next else { throw .proxy(tunnel.closedEarly) }
            bytes = [next]
        }
    }

    /// Performs the TLS handshake.
    func handshake() throws(Failure) {
        try attempt { () throws(BlockingStream.Failure) in try stream.handshake() }
    }

    /// Sends SETTINGS and waits for the server's SETTINGS.
    func begin() throws(Failure) {
        http.start()
        try flush()
        while !isReady { try receive() }
    }

    /// Sends one request and waits for its response.
    func request(_ fields: [RequestField], payload: [UInt8]) throws(Failure) -> Response {
        try request(payload: payload) { tableSize in
            mirror.limit(capacity: Int(tableSize))
            return RequestBlockEncoder.encode(fields, mirror: &mirror, huffman: false).bytes
        }
    }

    /// Sends one request, as soon as the server's limits permit it, and waits for its response.
    ///
    /// - Parameter headerBlock: Encodes the header block for the server's limit of the dynamic
    ///   table, in bytes.
    /// - Throws: `notProcessed` if a repeat is certainly safe. After any other error, the request
    ///   may have been processed.
    func request(
        payload: [UInt8], headerBlock: (_ tableSize: UInt32) -> [UInt8]
    ) throws(Failure) -> Response {
        assert(isReady, "a request follows the server's SETTINGS")
        response = nil
        recorder?.begin()
        let (streamID, allowed) = try awaitStream(payloadCount: payload.count)
        hasSentRequest = true
        unsentCount = payload.count - allowed
        // END_HEADERS, and END_STREAM on the last frame (RFC 9113 sections 6.2 and 6.1).
        let block = headerBlock(http.headerTableSize)
        var frames = Self.frame(
            .headers, payload.isEmpty ? [.endHeaders, .endStream] : .endHeaders, streamID, block)
        if allowed > 0 {
            let isWhole = allowed == payload.count
            frames += Self.frame(
                .data, isWhole ? .endStream : [], streamID, Array(payload[..<allowed]))
        }
        try write(frames)
        while true {
            if let response { return response }
            while let next = http.nextContinuation() {
                let piece = Array(payload[next.offset..<next.offset + next.count])
                try write(Self.frame(.data, next.isLast ? .endStream : [], next.streamID, piece))
                unsentCount -= next.count
            }
            try receive()
        }
    }

    /// Waits until the server's limits permit a stream, and opens it.
    ///
    /// - Returns: ID of the stream, and byte count of the payload that may be sent at once.
    private func awaitStream(
        payloadCount: Int
    ) throws(Failure) -> (streamID: UInt32, allowed: Int) {
        while goAway == nil {
            if payloadCount > 0 {
                let opened = http.openPartialStream(tag: 0, payloadCount: payloadCount)
                if let opened { return opened }
            } else if http.requestCapacity(payloadCount: 0) > 0 {
                return (http.openStream(tag: 0, payloadCount: 0), 0)
            }
            do throws(Failure) {
                try receive()
            } catch {
                throw .notProcessed("the server's SETTINGS permit no request")
            }
        }
        throw .notProcessed(refusal)
    }

    /// Cause of a request that the server did not process.
    private var refusal: String {
        guard let goAway else { return "the server refused the stream" }
        return "the server ended the connection"
            + (goAway.reasonText.map { " (\(printable($0, limit: 64)))" } ?? "")
    }

    private static func frame(
        _ type: FrameType, _ flags: FrameFlags, _ streamID: UInt32, _ payload: [UInt8]
    ) -> [UInt8] {
        assert(payload.count <= 16_384, "a frame has a size that each server takes")
        return FrameHeader(length: payload.count, type: type, flags: flags, streamID: streamID)
            .bytes + payload
    }

    // MARK: Frames

    private func receive() throws(Failure) {
        let bytes = try attempt { () throws(BlockingStream.Failure) in try stream.next() }
        guard !bytes.isEmpty else {
            if let failure = stream.endFailure { throw .tls(failure) }
            throw .network("the server closed the connection")
        }
        try takeEvents(bytes)
        try flush()
    }

    private func takeEvents(_ bytes: [UInt8]) throws(Failure) {
        // SAFETY: bytes have no padding.
        let span = bytes.rawSpan
        serverDate.take(span)
        recorder?.take(bytes)
        var offset = 0
        while let event = http.nextEvent(in: span, at: &offset) {
            switch event {
            case .ready: isReady = true
            case .response(_, ClientConnectionStateMachine.identifiedStatus):
                response = whole(200, body: [])
            case .response(_, let status):
                response = whole(status, body: [UInt8](http.responseBody))
            case .goAway:
                let data = [UInt8](http.goAwayDebugData)
                let ending = Self.response(status: nil, ReasonBody.parse(data.rawSpan), of: data)
                if goAway?.reasonText == nil || ending.reasonText != nil { goAway = ending }
            case .notProcessed:
                if response == nil { throw .notProcessed(refusal) }
            case .reset:
                if response == nil { throw .http2("the server reset the stream") }
            case .streamError(_, let error):
                if response == nil { throw .http2(error.description) }
            case .failed(let error):
                throw .http2(error.sentence)
            case .settingsChanged, .pong, .disownedResponse: break
            }
        }
    }

    /// Returns a complete response, with its recorded header fields and body.
    private func whole(_ status: UInt16, body: [UInt8]) -> Response {
        var response = Self.response(status: status, ReasonBody.parse(body.rawSpan), of: body)
        response.retryAfterSeconds = http.retryAfter.seconds(
            from: Clock.now().wallMilliseconds / 1000)
        if let recorder { (response.fields, response.body) = (recorder.fields, recorder.body) }
        return response
    }

    private static func response(
        status: UInt16?, _ parsed: ReasonBody, of body: [UInt8]
    ) -> Response {
        var response = Response(status: status, reason: parsed.reason)
        response.reasonText = parsed.textRange.flatMap { range in
            range.isEmpty ? nil : String(decoding: body[range], as: UTF8.self)
        }
        return response
    }

    /// Whether the body of the last response was longer than the limit.
    var bodyIsTooLong: Bool { recorder?.isTooLong ?? false }

    private func flush() throws(Failure) {
        while http.pendingOutputCount > 0 {
            try write([UInt8](capacity: 16_384) { http.takeOutput(into: &$0) })
        }
    }

    private func write(_ bytes: [UInt8]) throws(Failure) {
        try attempt { () throws(BlockingStream.Failure) in try stream.write(bytes) }
    }

    private func attempt<Value>(
        _ body: () throws(BlockingStream.Failure) -> Value
    ) throws(Failure) -> Value {
        do throws(BlockingStream.Failure) {
            return try body()
        } catch {
            throw Failure(error)
        }
    }
}

extension BlockingConnection.Failure {
    fileprivate init(_ failure: BlockingStream.Failure) {
        switch failure {
        case .connect(let code): self = .connect(errno: code)
        case .network(let message): self = .network(message)
        case .tls(let error): self = .tls(error)
        }
    }
}
