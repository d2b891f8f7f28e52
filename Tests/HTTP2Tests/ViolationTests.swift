import Testing

@testable import BroadsideHTTP2

/// What a server must not send, and the error that RFC 9113 gives for it.
struct Violation: Sendable, CustomTestStringConvertible {
    var name: String
    var code: ErrorCode
    var frames: [Frame]
    var testDescription: String { name }

    init(_ name: String, _ code: ErrorCode, _ frames: Frame...) {
        self.name = name
        self.code = code
        self.frames = frames
    }

    /// Streams 1 (tag 10) and 3 (tag 11) are open; 5 (tag 12) is answered, 7 (tag 13) given up.
    static let ofTheConnection: [Violation] = [
        Violation("DATA on stream 0", .protocolError, .data(0, "x")),
        Violation("DATA on an idle stream", .protocolError, .data(99, "x")),
        Violation("DATA on a stream of the server", .protocolError, .data(2, "x")),
        Violation("DATA on a closed stream", .streamClosed, .data(5, "x")),
        Violation("HEADERS on stream 0", .protocolError, .headers(0, [0x88])),
        Violation("HEADERS on an idle stream", .protocolError, .headers(99, [0x88])),
        Violation("HEADERS on a closed stream", .streamClosed, .headers(5, [0x88])),
        Violation("HEADERS on a stream of the server", .protocolError, .headers(2, [0x88])),
        Violation(
            "DATA padded beyond its end", .protocolError,
            Frame(type: .data, flags: .padded, stream: 1, payload: [4, 0, 0, 0])),
        Violation(
            "DATA without a pad length", .protocolError,
            Frame(type: .data, flags: .padded, stream: 1)),
        Violation(
            "HEADERS padded beyond their end", .protocolError,
            Frame(type: .headers, flags: [.padded, .endHeaders], stream: 1, payload: [2, 0x88])),
        Violation(
            "HEADERS too short for a priority", .protocolError,
            Frame(type: .headers, flags: [.priority, .endHeaders], stream: 1, payload: [0, 0])),
        Violation(
            "PRIORITY on stream 0", .protocolError,
            Frame(type: .priority, payload: [0, 0, 0, 0, 0])),
        Violation("RST_STREAM on stream 0", .protocolError, .reset(0, .cancel)),
        Violation("RST_STREAM on an idle stream", .protocolError, .reset(99, .cancel)),
        Violation(
            "RST_STREAM of 5 bytes", .frameSizeError,
            Frame(type: .resetStream, stream: 1, payload: [0, 0, 0, 0, 0])),
        Violation(
            "SETTINGS on a stream", .protocolError, Frame(type: .settings, stream: 1)),
        Violation(
            "SETTINGS of 7 bytes", .frameSizeError,
            Frame(type: .settings, payload: [UInt8](repeating: 0, count: 7))),
        Violation(
            "an acknowledgement with a payload", .frameSizeError,
            Frame(
                type: .settings, flags: .acknowledgement,
                payload: [UInt8](repeating: 0, count: 6))),
        Violation("a second acknowledgement", .protocolError, .settingsAcknowledgement),
        Violation("push enabled", .protocolError, .settings((2, 1))),
        Violation("push neither on nor off", .protocolError, .settings((2, 2))),
        Violation("initial window of 2^31", .flowControlError, .settings((4, 1 << 31))),
        Violation("frame size below 16,384", .protocolError, .settings((5, 16_383))),
        Violation("frame size of 2^24", .protocolError, .settings((5, 1 << 24))),
        Violation(
            "PUSH_PROMISE", .protocolError,
            Frame(
                type: .pushPromise, flags: .endHeaders, stream: 1, payload: [0, 0, 0, 2, 0x88])),
        Violation(
            "PING on a stream", .protocolError,
            Frame(type: .ping, stream: 1, payload: [UInt8](repeating: 0, count: 8))),
        Violation(
            "PING of 7 bytes", .frameSizeError,
            Frame(type: .ping, payload: [UInt8](repeating: 0, count: 7))),
        Violation(
            "GOAWAY on a stream", .protocolError,
            Frame(type: .goAway, stream: 1, payload: [UInt8](repeating: 0, count: 8))),
        Violation(
            "GOAWAY of 7 bytes", .frameSizeError,
            Frame(type: .goAway, payload: [UInt8](repeating: 0, count: 7))),
        Violation("WINDOW_UPDATE by 0", .protocolError, .windowUpdate(0, 0)),
        Violation(
            "WINDOW_UPDATE beyond 2^31-1", .flowControlError, .windowUpdate(0, 0x7fff_ffff)),
        Violation(
            "WINDOW_UPDATE of 3 bytes", .frameSizeError,
            Frame(type: .windowUpdate, payload: [0, 0, 1])),
        Violation("WINDOW_UPDATE on an idle stream", .protocolError, .windowUpdate(99, 1)),
        Violation("CONTINUATION of nothing", .protocolError, .continuation(1, [0x88])),
        Violation(
            "CONTINUATION on another stream", .protocolError,
            .headers(1, [0x88], endHeaders: false), .continuation(3, [])),
        Violation(
            "HEADERS within a header block", .protocolError,
            .headers(1, [0x88], endHeaders: false), .headers(3, [0x88])),
        Violation(
            "PING within a header block", .protocolError,
            .headers(1, [0x88], endHeaders: false), .ping(1)),
        Violation(
            "an unknown frame within a header block", .protocolError,
            .headers(1, [0x88], endHeaders: false), Frame(type: FrameType(rawValue: 77))),
        Violation("index 0", .compressionError, .headers(1, [0x80])),
        Violation("a torn integer", .compressionError, .headers(1, [0x88, 0xff])),
        Violation("a torn string", .compressionError, .headers(1, [0x88, 0x0f, 0x10, 4, 97])),
        Violation("an absent dynamic index", .compressionError, .headers(1, [0x88, 0xbe])),
        Violation(
            "an absent dynamic name", .compressionError, .headers(1, [0x88, 0x0f, 0x2f, 1, 48])),
        Violation(
            "a size update above 4,096", .compressionError,
            .headers(1, [0x3f, 0xe2, 0x1f, 0x88])),
        Violation("a size update after a field", .compressionError, .headers(1, [0x88, 0x20])),
        Violation(
            "Huffman padding of zeros", .compressionError,
            .headers(1, [0x08, 0x83, 0x64, 0x02, 0x00])),
        Violation(
            "a compression error on a stream given up", .compressionError, .headers(7, [0xbe])),
        Violation(
            "a frame of 16,385 bytes", .frameSizeError,
            Frame(
                type: .data, stream: 1, payload: [UInt8](repeating: 0, count: 16_385))),
        Violation(
            "more frames of a block than anyone needs", .enhanceYourCalm,
            .headers(1, [0x88], endHeaders: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false),
            .continuation(1, [], end: false), .continuation(1, [], end: false)),
        Violation(
            "a block of more bytes than anyone needs", .enhanceYourCalm,
            .headers(1, [UInt8](repeating: 0x88, count: 16_384), endHeaders: false),
            .continuation(1, [UInt8](repeating: 0x88, count: 16_384), end: false),
            .continuation(1, [0x88])),
    ]
}

/// An error of stream 1 alone, in the state of the connection above.
struct StreamViolation: Sendable, CustomTestStringConvertible {
    var name: String
    var error: StreamError
    var frames: [Frame]
    var testDescription: String { name }

    init(_ name: String, _ error: StreamError, _ frames: Frame...) {
        self.name = name
        self.error = error
        self.frames = frames
    }

    private static func header(_ name: String, _ value: String = "x") -> [UInt8] {
        [0x88] + ResponseTests.literal(name, value)
    }

    static let all: [StreamViolation] = [
        StreamViolation("no status", .missingStatus, .headers(1, ResponseTests.literal("a", "b"))),
        StreamViolation("an empty block", .missingStatus, .headers(1, [])),
        StreamViolation("two statuses", .repeatedStatus, .headers(1, [0x88, 0x88])),
        StreamViolation(
            "a status behind a field", .lateStatus,
            .headers(1, ResponseTests.literal("a", "b") + [0x88])),
        StreamViolation("a status without digits", .invalidStatus, .headers(1, [0x08, 0])),
        StreamViolation(
            "a status with a sign", .invalidStatus, .headers(1, [0x08, 3, 43, 50, 48])),
        StreamViolation(
            "a status with a blank", .invalidStatus, .headers(1, [0x08, 3, 50, 48, 32])),
        StreamViolation("a status of 2 digits", .invalidStatus, .headers(1, [0x08, 2, 50, 48])),
        StreamViolation(
            "a status of 4 digits", .invalidStatus, .headers(1, [0x08, 4, 48, 50, 48, 48])),
        StreamViolation("a status of letters", .invalidStatus, .headers(1, [0x08, 3, 50, 48, 97])),
        StreamViolation("a status of 099", .invalidStatus, .headers(1, [0x08, 3, 48, 57, 57])),
        StreamViolation("a path in a response", .foreignPseudoHeader, .headers(1, [0x88, 0x84])),
        StreamViolation(
            "a method by name index", .foreignPseudoHeader, .headers(1, [0x88, 0x02, 1, 65])),
        StreamViolation(
            "an unknown pseudo-header field", .foreignPseudoHeader, .headers(1, header(":status2"))),
        StreamViolation("an upper-case name", .invalidName, .headers(1, header("Apns-id"))),
        StreamViolation("a name with a blank", .invalidName, .headers(1, header("apns id"))),
        StreamViolation("a name without bytes", .invalidName, .headers(1, header(""))),
        StreamViolation("a line feed in a value", .invalidValue, .headers(1, header("a", "x\ny"))),
        StreamViolation(
            "a return in a long value", .invalidValue,
            .headers(1, header("apns-id", "0123456789abcde\r0123456789"))),
        StreamViolation("a zero in a value", .invalidValue, .headers(1, header("a", "x\0y"))),
        StreamViolation("connection", .connectionField, .headers(1, header("connection", "close"))),
        StreamViolation("keep-alive", .connectionField, .headers(1, header("keep-alive"))),
        StreamViolation("upgrade", .connectionField, .headers(1, header("upgrade"))),
        StreamViolation(
            "transfer-encoding", .connectionField, .headers(1, header("transfer-encoding"))),
        StreamViolation(
            "transfer-encoding by index", .connectionField, .headers(1, [0x88, 0x0f, 0x2a, 1, 65])),
        StreamViolation(
            "101", .switchingProtocols, .headers(1, [0x08, 3, 49, 48, 49], end: false)),
        StreamViolation("100 that ends", .onlyInterim, .headers(1, [0x08, 3, 49, 48, 48])),
        StreamViolation("DATA before HEADERS", .bodyBeforeHeaders, .data(1, "x")),
        StreamViolation(
            "trailers that do not end", .invalidTrailers,
            .headers(1, [0x88], end: false), .headers(1, [], end: false)),
        StreamViolation(
            "trailers with a status", .invalidTrailers,
            .headers(1, [0x88], end: false), .headers(1, [0x88])),
        StreamViolation(
            "less content than announced", .wrongLength,
            .headers(1, header("content-length", "3"), end: false), .data(1, "ab")),
        StreamViolation(
            "more content than announced", .wrongLength,
            .headers(1, header("content-length", "3"), end: false), .data(1, "abcd", end: false)),
        StreamViolation(
            "content announced, none sent", .wrongLength,
            .headers(1, header("content-length", "3"))),
        StreamViolation(
            "content-length of letters", .invalidContentLength,
            .headers(1, header("content-length"))),
        StreamViolation(
            "two different content-lengths", .invalidContentLength,
            .headers(
                1, header("content-length", "4") + ResponseTests.literal("content-length", "3"),
                end: false), .data(1, "abc")),
        StreamViolation("WINDOW_UPDATE by 0", .emptyIncrement, .windowUpdate(1, 0)),
        StreamViolation(
            "WINDOW_UPDATE beyond 2^31-1", .windowOverflow, .windowUpdate(1, 0x7fff_ffff)),
        StreamViolation(
            "PRIORITY of 4 bytes", .prioritySize,
            Frame(type: .priority, stream: 1, payload: [0, 0, 0, 0])),
    ]
}

@Suite struct ViolationTests {
    private func peer(_ tearing: Tearing) -> Peer {
        let peer = Peer.ready(tearing)
        peer.open(10, 11, 12, 13)
        peer.receive(.headers(5, [0x88]))
        peer.machine.cancelStream(7)
        _ = peer.takeFrames()
        return peer
    }

    @Test(arguments: Violation.ofTheConnection, Tearing.allCases)
    func `Each connection error ends the connection with GOAWAY and its code`(
        violation: Violation, tearing: Tearing
    ) throws {
        let peer = peer(tearing)
        let events = peer.receive(violation.frames.flatMap(\.bytes))
        let event = try #require(events.first)
        #expect(events.count == 1)
        guard case .failed(let error) = event else {
            Issue.record("\(event) is not a failure")
            return
        }
        #expect(error.code == violation.code, "\(error)")
        let goAway = try #require(peer.takeFrames().last)
        #expect(goAway.type == .goAway)
        #expect(
            goAway.payload
                == Frame.be32(0) + Frame.be32(error.code.rawValue)
                + Array(error.message.description.utf8))
        // Nothing comes after it, and both open requests can be taken back.
        #expect(peer.receive(.headers(1, [0x88]), .ping(1)) == [])
        #expect(peer.takeBytes().isEmpty)
        #expect(peer.capacity() == 0)
        #expect(!peer.isUsable)
        let open = [peer.machine.takeOpenStream(), peer.machine.takeOpenStream()]
        #expect(open == [10, 11])
        #expect(peer.oldest == nil)
    }

    @Test(
        arguments: [
            ([UInt8](repeating: 0x88, count: 20), 1, "a header block has more than 16 frames"),
            (
                [UInt8](repeating: 0x88, count: 40_000), 16_000,
                "a header block is larger than 32 KiB"
            ),
        ] as [([UInt8], Int, String)])
    func `A header block beyond a limit ends the connection with the name of the limit`(
        block: [UInt8], size: Int, message: String
    ) throws {
        let peer = peer(.whole)
        var events = peer.receive(.headers(1, Array(block[..<size]), endHeaders: false))
        for start in stride(from: size, to: block.count, by: size) where events.isEmpty {
            let part = Array(block[start..<min(start + size, block.count)])
            events = peer.receive(.continuation(1, part, end: false))
        }
        guard case .failed(let error)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(error.sentence == "the server exceeded a limit of Broadside: \(message)")
        let other = ConnectionError(.compressionError, "x")
        #expect(other.sentence == "the server broke HTTP/2: x")
    }

    @Test(arguments: StreamViolation.all, Tearing.allCases)
    func `Each stream error resets its stream alone`(violation: StreamViolation, tearing: Tearing) {
        let peer = peer(tearing)
        let events = peer.receive(violation.frames.flatMap(\.bytes))
        #expect(events == [.streamError(tag: 10, violation.error)])
        #expect(peer.takeFrames() == [.reset(1, violation.error.code)])
        // The connection goes on, and what the server had under way for the stream is ignored.
        #expect(peer.receive(.data(1, "x"), .headers(1, [0x88]), .windowUpdate(1, 5)) == [])
        #expect(peer.receive(.headers(3, [0x88])) == [.response(tag: 11, status: 200)])
        #expect(peer.openCount == 0)
    }

    @Test(arguments: Tearing.allCases)
    func `A connection that does not begin with SETTINGS is a protocol error`(tearing: Tearing) {
        let firsts: [Frame] = [
            .settingsAcknowledgement, .ping(1), .headers(1, [0x88]), .windowUpdate(0, 5),
            .goAway(0, .noError), .data(1, ""), Frame(type: FrameType(rawValue: 77)),
        ]
        for first in firsts {
            let peer = Peer(tearing)
            peer.machine.start()
            guard case .failed(let error)? = peer.receive(first).first else {
                Issue.record("\(first) was accepted")
                continue
            }
            #expect(error.code == .protocolError)
        }
    }

    @Test(arguments: Tearing.allCases)
    func `A response of HTTP/1.1 in place of SETTINGS is named as such`(tearing: Tearing) {
        let peer = Peer(tearing)
        peer.machine.start()
        guard
            case .failed(let error)? = peer.receive(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
                .first
        else {
            Issue.record("accepted")
            return
        }
        #expect(error.message.description == "it speaks HTTP/1.1")
    }

    // MARK: Floods

    @Test func `Control frames that are sent while our output is not read end the connection`() {
        let flood: [Frame] = [.ping(1), .settings()]
        for frame in flood {
            let peer = peer(.whole)
            var events: [ClientConnectionStateMachine.Event] = []
            var count = 0
            while events.filter({ $0 != .settingsChanged }).isEmpty, count < 20_000 {
                events = peer.receive(frame)
                count += 1
            }
            guard case .failed(let error)? = events.last else {
                Issue.record("\(frame) for ever")
                continue
            }
            #expect(error.code == .enhanceYourCalm)
            #expect(count * 9 <= 33 << 10)
            // The acknowledgements that fit, then the GOAWAY.
            #expect(peer.takeFrames().last?.type == .goAway)
        }
    }

    @Test func `Thousands of frames that serve no request end the connection`() {
        let idle: [Frame] = [
            .ping(1), .settings(), .windowUpdate(1, 1), .windowUpdate(0, 1),
            .data(1, "", end: false), .headers(1, [0x08, 3, 49, 48, 48], end: false),
            Frame(type: .priority, stream: 1, payload: [0, 0, 0, 0, 0]),
            Frame(type: FrameType(rawValue: 77), stream: 1), .reset(5, .cancel), .data(7, "x"),
            .headers(7, [0x88]), .ping(4, acknowledges: true), .goAway(99, .noError),
        ]
        for frame in idle {
            let peer = peer(.whole)
            if frame.type == .data, frame.stream == 1 {
                peer.receive(.headers(1, [0x88], end: false))
            }
            var failure: ConnectionError?
            for count in 1...13_000 where failure == nil {
                let events = peer.receive(frame)
                if count % 100 == 0 { _ = peer.takeFrames() }
                if case .failed(let error)? = events.first { failure = error }
            }
            #expect(failure?.code == .enhanceYourCalm, "\(frame)")
        }
    }

    @Test func `Windows that let a payload pass byte by byte do not count as a flood`() {
        let peer = Peer.ready(settings: (4, 0))
        #expect(peer.machine.openPartialStream(tag: 7, payloadCount: 12_001)?.allowed == 0)
        for count in 1...12_000 {
            #expect(peer.receive(.windowUpdate(1, 1)).isEmpty)
            let piece = peer.machine.nextContinuation()
            guard piece?.count == 1 else {
                Issue.record("byte \(count): \(String(describing: piece))")
                return
            }
        }
        #expect(peer.receive(.headers(1, [0x88])) == [.response(tag: 7, status: 200)])
    }

    @Test func `30,000 requests with window updates of their own do not count as a flood`() {
        let peer = Peer.ready()
        for tag in 0..<30_000 as Range<UInt32> {
            let id = peer.open(tag)[0]
            let events = peer.receive(
                .windowUpdate(id, 1), .windowUpdate(0, 33), .headers(id, [0x88]))
            #expect(events == [.response(tag: tag, status: 200)])
        }
    }

    @Test func `Two window updates for each of 10,000 open requests do not count as a flood`() {
        let peer = Peer.ready(maxStreams: 10_000, settings: (3, 10_000))
        let ids = (0..<10_000 as Range<UInt32>).map { peer.open($0)[0] }
        for id in ids {
            #expect(peer.receive(.windowUpdate(0, 33), .windowUpdate(id, 33)).isEmpty)
        }
    }
}
