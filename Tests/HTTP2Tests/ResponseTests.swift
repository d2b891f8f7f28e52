import Testing

@testable import BroadsideHTTP2

@Suite struct ResponseTests {
    static let ok = hexBytes(
        "88000761706e732d69642465616265616535342d313461382d313165352d623630622d313639376639323565633762"
    )
    /// A literal without indexing, name and value raw.
    static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0x00, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)]
            + Array(value.utf8)
    }

    @Test(arguments: Tearing.allCases)
    func `The client starts with preface and SETTINGS, and is ready after those of APNs`(
        tearing: Tearing
    ) {
        let peer = Peer(tearing)
        peer.machine.start()
        #expect(peer.machine.requestCapacity(payloadCount: 10) == 0)
        let sent = peer.takeBytes()
        #expect(Array(sent.prefix(24)) == Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        let frames: [Frame] = [.settings((1, 0), (2, 0)), .windowUpdate(0, 16_711_681)]
        #expect(Frame.parse(Array(sent.dropFirst(24))) == frames)
        // As observed from APNs, vector V20.
        let settings = hexBytes(
            "00001e04000000000000010000100000030000000100040000ffff000500004000000600001f40")
        #expect(peer.receive(settings) == [.ready])
        #expect(peer.takeFrames() == [.settingsAcknowledgement])
        #expect(peer.machine.streamLimit == 1)
        #expect(peer.machine.requestCapacity(payloadCount: 33) == 1)
        #expect(peer.receive(hexBytes("0000060400000000000003000003e8")) == [.settingsChanged])
        #expect(peer.machine.streamLimit == 1000)
        #expect(peer.receive(.settingsAcknowledgement) == [])
        #expect(peer.isUsable)
    }

    /// Vector V19: the answers 200, 400 and 410.
    @Test(arguments: Tearing.allCases)
    func `The responses 200, 400 and 410 of vector V19 are read`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        #expect(peer.open(10, 11, 12) == [1, 3, 5])
        peer.receive(
            hexBytes(
                "00002f01050000000188000761706e732d69642465616265616535342d313461382d313165352d623630622d313639376639323565633762"
                    + "0000420104000000038c0f10106170706c69636174696f6e2f6a736f6e000761706e732d69642465616265616535342d313461382d313165352d623630622d313639376639323565633762"
                    + "00001b0001000000037b22726561736f6e223a22426164446576696365546f6b656e227d"
                    + "00004601040000000508033431300f10106170706c69636174696f6e2f6a736f6e000761706e732d69642465616265616535342d313461382d313165352d623630622d313639376639323565633762"
                    + "0000330001000000057b22726561736f6e223a22556e72656769737465726564222c2274696d657374616d70223a313435383531383430303030307d"
            ))
        #expect(
            peer.heard.dropFirst() == [
                Heard(event: .response(tag: 10, status: 200)),
                Heard(
                    event: .response(tag: 11, status: 400),
                    body: #"{"reason":"BadDeviceToken"}"#),
                Heard(
                    event: .response(tag: 12, status: 410),
                    body: #"{"reason":"Unregistered","timestamp":1458518400000}"#),
            ])
        #expect(peer.machine.openStreamCount == 0)
    }
}

/// What servers may do although Apple's don't.
@Suite struct ToleranceTests {
    /// Whether 200 for stream 1 and 400 with its body for stream 3 come out of these frames.
    private func expectAnswers(
        _ tearing: Tearing, _ frames: [Frame], body: String = "", retryAfter: UInt32? = nil,
        status: UInt16 = 200, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let peer = Peer.ready(tearing)
        peer.open(10)
        peer.receive(frames.flatMap(\.bytes))
        let answer = Heard(
            event: .response(tag: 10, status: status), body: body, retryAfter: retryAfter)
        #expect(peer.heard.dropFirst() == [answer], sourceLocation: sourceLocation)
        #expect(peer.takeFrames().allSatisfy { $0.type == .windowUpdate })
        // The next stream works as ever.
        peer.open(11)
        peer.receive(.headers(3, [0x8c], end: false), .data(3, "why"))
        let next = Heard(event: .response(tag: 11, status: 400), body: "why")
        #expect(peer.heard.last == next, sourceLocation: sourceLocation)
        #expect(peer.openCount == 0)
    }

    @Test(arguments: Tearing.allCases)
    func `A response has its body however its DATA frames are split`(tearing: Tearing) {
        expectAnswers(tearing, [.headers(1, [0x88], end: false), .data(1, "")])
        expectAnswers(tearing, [.headers(1, [0x88], end: false), .data(1, "hm")], body: "hm")
        expectAnswers(
            tearing, [.headers(1, [0x88], end: false), .data(1, "hm", end: false), .data(1, "")],
            body: "hm")
        expectAnswers(
            tearing,
            [
                .headers(1, [0x88], end: false), .data(1, "one ", end: false),
                .data(1, "", end: false), .data(1, "two ", end: false), .data(1, "three"),
            ], body: "one two three")
        expectAnswers(
            tearing,
            [.headers(1, [0x88], end: false), .data(1, String(repeating: "x", count: 600))],
            body: String(repeating: "x", count: 512))
        let half = String(repeating: "y", count: 300)
        expectAnswers(
            tearing,
            [
                .headers(1, [0x88], end: false), .data(1, half, end: false),
                .data(1, half, end: false), .data(1, half),
            ], body: String(repeating: "y", count: 512))
    }

    @Test(arguments: Tearing.allCases)
    func `Padding, priority, CONTINUATION, trailers and unknown frames leave a response's meaning`(
        tearing: Tearing
    ) {
        let padded = Frame(
            type: .headers, flags: [.padded, .endHeaders], stream: 1,
            payload: [3, 0x88, 0, 0, 0])
        let priority = Frame(
            type: .headers, flags: [.padded, .priority, .endHeaders], stream: 1,
            payload: [1, 0x80, 0, 0, 5, 16, 0x88, 0])
        let end = Frame(
            type: .data, flags: [.padded, .endStream], stream: 1, payload: [2, 104, 109, 0, 0])
        let empty = Frame(
            type: .data, flags: [.padded, .endStream], stream: 1, payload: [2, 0, 0])
        expectAnswers(tearing, [padded, end], body: "hm")
        expectAnswers(tearing, [priority, empty])
        // Trailers, a torn block, an interim response, unknown frames and settings.
        expectAnswers(
            tearing,
            [
                .headers(1, [0x88], end: false), .data(1, "hm", end: false),
                .headers(1, ResponseTests.literal("grpc-status", "0")),
            ], body: "hm")
        let block = [0x88] + ResponseTests.literal("retry-after", "7")
        expectAnswers(
            tearing,
            [
                .headers(1, Array(block[..<1]), endHeaders: false),
                .continuation(1, Array(block[1..<9]), end: false),
                .continuation(1, Array(block[9...])),
            ], retryAfter: 7)
        expectAnswers(
            tearing,
            [
                .headers(1, [0x08, 3, 49, 48, 48], end: false),
                .headers(1, [0x08, 3, 49, 48, 51], end: false), .headers(1, [0x88]),
            ])
        expectAnswers(
            tearing,
            [
                Frame(type: FrameType(rawValue: 0xfa), flags: .padded, stream: 1, payload: [9]),
                Frame(type: .priority, stream: 77, payload: [0, 0, 0, 0, 9]),
                .headers(1, [0x88]),
            ])
    }

    @Test(arguments: Tearing.allCases)
    func `Each representation of :status, retry-after and other fields is read`(tearing: Tearing) {
        func only(_ block: [UInt8], retryAfter: UInt32? = nil, status: UInt16 = 200) {
            expectAnswers(tearing, [.headers(1, block)], retryAfter: retryAfter, status: status)
        }
        only([0x08, 0x03, 0x34, 0x31, 0x30], status: 410)
        only([0x18, 0x03, 0x34, 0x31, 0x30], status: 410)
        only([0x0e, 0x03, 0x34, 0x31, 0x30], status: 410)
        // "302" as RFC 7541 C.6.1 has it, and a literal name.
        only([0x08, 0x82, 0x64, 0x02], status: 302)
        only(ResponseTests.literal(":status", "429"), status: 429)
        only([0x88, 0x0f, 0x26, 2, 49, 50], retryAfter: 12)
        only([0x88] + ResponseTests.literal("retry-after", "Fri, 31 Dec"))
        only(
            [0x88] + ResponseTests.literal("retry-after", "Fri, 15 Jan 2027 08:00:00 GMT"),
            retryAfter: 1_800_000_000)
        only(
            [0x88] + ResponseTests.literal("retry-after", "99999999999"), retryAfter: 999_999_999)
        only([0x88] + ResponseTests.literal("content-length", "0"))
        only([0x88, 0x0f, 0x0d, 1, 48])
        only([0x89] + ResponseTests.literal("content-length", "0"), status: 204)
        only(
            [0x88] + ResponseTests.literal("apns-id", "E77A3D12-BC9F-F410-A127-43F212597A9C")
                + ResponseTests.literal("apns-unique-id", "x"))
        // Only a 200 has one.
        only(
            [0x8c] + ResponseTests.literal("apns-unique-id", Self.uniqueID), status: 400)
        // Names of a length that is no longer kept for decoding.
        only([0x88, 0x00, 0xc0] + [UInt8](repeating: 0, count: 64) + [0])
    }

    private static let uniqueID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"

    /// IDs that differ in blocks of the same length, in upper case, before an empty DATA, before a
    /// body, and inserted into a table.
    @Test(arguments: Tearing.allCases)
    func `The apns-unique-id of a 200 is read in each form`(tearing: Tearing) {
        let other = "9f1c2d3e-0b7a-4c55-8e21-6d4f0ba9b87c"
        func block(_ id: String) -> [UInt8] {
            ResponseTests.ok + ResponseTests.literal("apns-unique-id", id)
        }
        let name: [UInt8] = Array("apns-unique-id".utf8)
        let inserted = [0x88, 0x40, 14] + name + [36] + Array(other.utf8)
        let peer = Peer.ready(tearing)
        peer.open(1, 2, 3, 4, 5, 6, 7)
        peer.receive(
            .headers(1, block(Self.uniqueID)), .headers(3, block(other)),
            .headers(5, block(Self.uniqueID.uppercased())),
            .headers(7, block(other), end: false), .headers(9, block(Self.uniqueID), end: false),
            .data(9, "{}", end: false), .data(7, ""), .data(9, "{}"),
            .headers(11, ResponseTests.ok), .headers(13, inserted))
        func identified(_ tag: UInt32, _ id: String) -> Heard {
            Heard(
                event: .response(tag: tag, status: ClientConnectionStateMachine.identifiedStatus),
                body: id)
        }
        #expect(
            peer.heard.dropFirst() == [
                identified(1, Self.uniqueID), identified(2, other), identified(3, Self.uniqueID),
                identified(4, other), identified(5, Self.uniqueID),
                Heard(event: .response(tag: 6, status: 200)), identified(7, other),
            ])
        #expect(peer.machine.occupancy.bodies <= 16)
    }

    /// Blocks for nghttp2's inflater: insertion before our SETTINGS are acknowledged, a size update
    /// after it.
    @Test(arguments: Tearing.allCases)
    func `A dynamic table used before our SETTINGS is acknowledged is emptied by the size update`(
        tearing: Tearing
    ) {
        let inserting = [0x88, 0x40, 3] + Array("x-a".utf8) + [1, 98]
        let peer = Peer(tearing)
        peer.machine.start()
        peer.receive(.settings())
        peer.open(1, 2, 3, 4, 5)
        #expect(
            peer.receive(
                .headers(1, inserting), .headers(3, [0x88, 0xbe]), .settingsAcknowledgement,
                .headers(5, [0x20, 0x88]), .headers(7, inserting)) == [
                    .response(tag: 1, status: 200), .response(tag: 2, status: 200),
                    .response(tag: 3, status: 200), .response(tag: 4, status: 200),
                ])
        guard case .failed(let error)? = peer.receive(.headers(9, [0x88, 0xbe])).first else {
            Issue.record("an entry survived the size update")
            return
        }
        #expect(error.code == .compressionError)
    }

    /// A server that ignores our table size of 0 keeps its table, from whichever response on, and
    /// whether it acknowledged our SETTINGS or not.
    @Test(arguments: Tearing.allCases)
    func `A server that ignores our table size of 0 has its indexed fields decoded`(
        tearing: Tearing
    ) {
        let literal = [0x40, 7] + Array(":status".utf8) + [3, 0x35, 0x30, 0x33]
        for (before, acknowledges) in [(0, false), (0, true), (1, true), (40, true)] {
            let peer = Peer(tearing)
            peer.machine.start()
            peer.receive(.settings())
            for tag in 0..<UInt32(before + 5) { peer.open(tag) }
            if acknowledges { peer.receive(.settingsAcknowledgement) }
            for tag in 0..<before {
                let events = peer.receive(.headers(UInt32(2 * tag + 1), ResponseTests.ok))
                #expect(events == [.response(tag: UInt32(tag), status: 200)])
            }
            let first = UInt32(before)
            func stream(_ offset: UInt32) -> UInt32 { 2 * (first + offset) + 1 }
            #expect(
                peer.receive(
                    .headers(stream(0), [0x88, 0x40, 3] + Array("x-a".utf8) + [1, 98]),
                    .headers(stream(1), literal), .headers(stream(2), [0xbe]),
                    .headers(stream(3), [0xbe, 0xbf])) == [
                        .response(tag: first, status: 200),
                        .response(tag: first + 1, status: 503),
                        .response(tag: first + 2, status: 503),
                        .response(tag: first + 3, status: 503),
                    ])
            guard case .failed? = peer.receive(.headers(stream(4), [0xbe, 0xc0])).first else {
                Issue.record("an entry that never was is referred to")
                return
            }
        }
    }

    /// The table has 4,096 bytes, and no server may have more.
    @Test func `A table size update above 4,096 bytes is a compression error`() {
        for (update, isAllowed) in [([0x3f, 0xe1, 0x1f], true), ([0x3f, 0xe2, 0x1f], false)] {
            let peer = Peer.ready()
            peer.open(1)
            let event = peer.receive(.headers(1, update.map(UInt8.init) + [0x88])).first
            #expect((event == .response(tag: 1, status: 200)) == isAllowed)
            if !isAllowed, case .failed(let error)? = event {
                #expect(error.code == .compressionError)
            }
        }
    }

    /// The blocks of streams that are given up still change the table.
    @Test(arguments: Tearing.allCases)
    func `The header block of a cancelled stream still updates the dynamic table`(tearing: Tearing)
    {
        let peer = Peer(tearing)
        peer.machine.start()
        peer.receive(.settings())
        peer.open(1, 2)
        peer.machine.cancelStream(1)
        #expect(peer.receive(.headers(1, [0x88, 0x48, 3, 0x35, 0x30, 0x33])) == [])
        #expect(peer.receive(.headers(3, [0xbe])) == [.response(tag: 2, status: 503)])
    }

    /// Bodies of many streams, interleaved byte by byte.
    @Test(arguments: Tearing.allCases)
    func `Bodies of 100 streams whose frames are interleaved go to their own requests`(
        tearing: Tearing
    ) {
        let peer = Peer.ready(tearing)
        let tags = Array(0..<100 as Range<UInt32>)
        let bodies = tags.map { "the body of request \($0)" }
        for tag in tags { peer.open(tag) }
        let longest = bodies.map(\.utf8.count).max()!
        for round in 1...3 {
            for tag in tags where round == 1 {
                peer.receive(.headers(2 * tag + 1, [0x8c], end: false))
            }
            let part = (longest + 2) / 3
            for tag in tags {
                let bytes = Array(bodies[Int(tag)].utf8).dropFirst((round - 1) * part).prefix(part)
                peer.receive(
                    .data(
                        2 * tag + 1, String(decoding: bytes, as: UTF8.self), end: round == 3))
            }
        }
        #expect(
            peer.heard.dropFirst()
                == tags.map {
                    Heard(event: .response(tag: $0, status: 400), body: bodies[Int($0)])
                }[...])
    }

    /// Bodies of any length: what is received is given back to both windows.
    @Test func `Received bytes are returned to the windows of stream and connection`() {
        let peer = Peer.ready()
        peer.open(1)
        peer.receive(.headers(1, [0x8c], end: false))
        var streamCredit = 65_535
        var connectionCredit = 16 << 20
        for _ in 0..<3000 {
            let chunk = Frame(
                type: .data, flags: .padded, stream: 1,
                payload: [200] + [UInt8](repeating: 0, count: 16_000))
            streamCredit -= chunk.payload.count
            connectionCredit -= chunk.payload.count
            #expect(streamCredit >= 0 && connectionCredit >= 0)
            #expect(peer.receive(chunk) == [])
            for frame in peer.takeFrames() {
                #expect(frame.type == .windowUpdate)
                let increment = frame.payload.reduce(0) { $0 << 8 | Int($1) }
                if frame.stream == 0 {
                    connectionCredit += increment
                } else {
                    streamCredit += increment
                }
            }
            // No more than was taken: windows never grow.
            #expect(streamCredit <= 65_535 && connectionCredit <= 16 << 20)
        }
        #expect(peer.receive(.data(1, "")) == [.response(tag: 1, status: 400)])
    }

    @Test func `A server that overruns a receive window ends the connection`() {
        // A stream that is not yet over half of its window gets no credit.
        let one = Peer.ready()
        one.open(1)
        one.receive(.headers(1, [0x8c], end: false))
        let large = String(repeating: "x", count: 16_384)
        one.receive(.data(1, large, end: false))
        #expect(one.takeFrames().isEmpty)
        // Many streams together overrun the window of the connection when it is small. The credit
        // that waits in the output has been given, so it takes bytes on closed streams too.
        let two = Peer(.whole, .init(connectionReceiveWindow: 65_535))
        two.machine.start()
        two.receive(.settings(), .settingsAcknowledgement)
        two.open(1)
        two.machine.cancelStream(1)
        _ = two.takeBytes()
        for _ in 0..<100 { two.receive(.data(1, large)) }
        let credit = two.takeFrames().map { $0.payload.reduce(0) { $0 << 8 | Int($1) } }
        #expect(credit == [Int](repeating: 32_768, count: 50))
    }
}
