import Testing

@testable import BroadsideHTTP2

/// Stream ids, and how streams and connections end.
@Suite struct StreamEndTests {
    // MARK: Ids

    @Test func `Each request without response is reported by its tag`() {
        let peer = Peer.ready()
        func tags() -> Set<UInt32> {
            var tags: Set<UInt32> = []
            peer.machine.forEachOpenStream { tags.insert($0) }
            return tags
        }
        #expect(tags().isEmpty)
        let streams = peer.open(10, 11, 12, 13)
        #expect(tags() == [10, 11, 12, 13])
        peer.receive(.headers(streams[1], [0x88]))
        peer.machine.cancelStream(streams[3])
        #expect(tags() == [10, 12])
        while peer.machine.takeOpenStream() != nil {}
        #expect(tags().isEmpty)
    }

    @Test func `Stream IDs of a slot whose stream is still open are skipped`() {
        let peer = Peer.ready(maxStreams: 4)
        #expect(peer.open(1) == [1])
        var last: UInt32 = 1
        for tag in 2..<5000 as Range<UInt32> {
            let id = peer.open(tag)[0]
            #expect(id > last && id % 2 == 1)
            last = id
            #expect(peer.receive(.headers(id, [0x88])) == [.response(tag: tag, status: 200)])
        }
        // One id of eight belongs to the slot of the slow stream.
        #expect(last >= 2 * 4998 * 8 / 7 - 16)
        #expect(peer.oldest == 1)
        #expect(peer.receive(.headers(1, [0x88])) == [.response(tag: 1, status: 200)])
        #expect(peer.oldest == nil)
    }

    @Test func `The oldest open stream is found among 20,000, however old it is`() {
        let peer = Peer.ready(maxStreams: 8)
        var open: [(id: UInt32, tag: UInt32)] = []
        var random = SystemRandomNumberGenerator()
        for tag in 0..<20_000 as Range<UInt32> {
            if peer.capacity() > 0 { open.append((peer.open(tag)[0], tag)) }
            #expect(peer.oldest == open.first?.tag)
            if open.count == 8 || !open.isEmpty && Int.random(in: 0..<3, using: &random) > 0 {
                // Mostly the young ones are answered.
                let position = max(0, open.count - 1 - Int.random(in: 0..<3, using: &random))
                peer.receive(.headers(open[position].id, [0x88]))
                open.remove(at: position)
            }
        }
        while !open.isEmpty {
            #expect(peer.machine.takeOpenStream() == open.removeFirst().tag)
        }
        #expect(peer.machine.takeOpenStream() == nil)
    }

    @Test func `A connection whose stream IDs run out drains and opens no more`() {
        let peer = Peer.ready(maxStreams: 4)
        peer.open(1)
        peer.machine.streams.nextID = StreamTable.lastID - 20
        #expect(peer.capacity() == 3)
        peer.open(2, 3, 4)
        #expect(peer.capacity() == 0)
        #expect(peer.isDraining && !peer.isUsable)
        for id in stride(from: StreamTable.lastID - 20, to: StreamTable.lastID, by: 2) {
            peer.receive(.headers(id, [0x88]))
            if peer.openCount == 1 { break }
        }
        #expect(peer.capacity() == 0)
        #expect(peer.receive(.headers(1, [0x88])) == [.response(tag: 1, status: 200)])
    }

    // MARK: Ends

    @Test(arguments: Tearing.allCases)
    func `RST_STREAM with REFUSED_STREAM is unprocessed only before any part of a response`(
        tearing: Tearing
    ) {
        let peer = Peer.ready(tearing)
        peer.open(1, 2, 3, 4, 5)
        // ":status: 103" on the last: an interim response says that the request is being processed.
        peer.receive(
            .headers(5, [0x88], end: false), .headers(7, [0x88], end: false),
            .headers(9, [0x08, 3] + Array("103".utf8), end: false))
        #expect(
            peer.receive(
                .reset(1, .refusedStream), .reset(3, .internalError), .reset(5, .refusedStream),
                .reset(7, ErrorCode(rawValue: 4711)), .reset(1, .cancel), .reset(9, .refusedStream))
                == [
                    .notProcessed(tag: 1), .reset(tag: 2, .internalError),
                    .reset(tag: 3, .refusedStream), .reset(tag: 4, ErrorCode(rawValue: 4711)),
                    .reset(tag: 5, .refusedStream),
                ])
        #expect(peer.openCount == 0)
        #expect(peer.takeFrames().isEmpty)
    }

    @Test(arguments: Tearing.allCases)
    func `A request that is reset before its last part is unprocessed, unless a response has begun`(
        tearing: Tearing
    ) {
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let peer = Peer.ready(tearing, settings: (4, 10))
        for tag in 1...3 as ClosedRange<UInt32> {
            let start = peer.machine.openPartialStream(tag: tag, payloadCount: 35)
            #expect(start?.allowed == 10)
        }
        peer.receive(
            .windowUpdate(3, 25), .headers(5, [0x08, 3] + Array("103".utf8), end: false))
        #expect(peer.machine.nextContinuation()?.isLast == true)
        #expect(
            peer.receive(.reset(1, .cancel), .reset(3, .cancel), .reset(5, .cancel)) == [
                .notProcessed(tag: 1), .reset(tag: 2, .cancel), .reset(tag: 3, .cancel),
            ])
        peer.receive(.windowUpdate(0, 100))
        #expect(peer.machine.nextContinuation() == nil)
        #expect(peer.openCount == 0)
    }

    @Test(arguments: Tearing.allCases)
    func `Frames for a cancelled stream are ignored, and it is reset once`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        peer.open(1, 2)
        let cancelled = [1, 1, 99, 2, 0].map { peer.machine.cancelStream($0) }
        #expect(cancelled == [true, false, false, false, false])
        #expect(peer.takeFrames() == [.reset(1, .cancel)])
        #expect(
            peer.receive(
                .headers(1, [0x8c], end: false), .data(1, "late"), .reset(1, .streamClosed),
                .windowUpdate(1, 9)) == [])
        #expect(peer.oldest == 2)
        #expect(peer.capacity() == 999)
    }

    @Test(arguments: Tearing.allCases)
    func `Streams above GOAWAY's last stream ID are not processed, and the others may finish`(
        tearing: Tearing
    ) {
        let peer = Peer.ready(tearing)
        peer.open(1, 2, 3, 4, 5)
        // Vector V22: Shutdown, last stream 5.
        let shutdown = hexBytes(
            "00001d07000000000000000005000000007b22726561736f6e223a2253687574646f776e227d")
        #expect(
            peer.receive(shutdown + Frame.headers(1, [0x88]).bytes) == [
                .goAway(.noError, lastStreamID: 5), .notProcessed(tag: 4), .notProcessed(tag: 5),
                .response(tag: 1, status: 200),
            ])
        #expect(peer.machine.goAwayDebugData.text == #"{"reason":"Shutdown"}"#)
        #expect(peer.capacity() == 0)
        #expect(peer.isDraining && !peer.isUsable)
        #expect(peer.machine.openPartialStream(tag: 9, payloadCount: 1) == nil)
        // A second one may only lower it.
        #expect(
            peer.receive(.goAway(9, .noError), .goAway(3, .internalError)) == [
                .goAway(.noError, lastStreamID: 5), .goAway(.internalError, lastStreamID: 3),
                .notProcessed(tag: 3),
            ])
        #expect(peer.machine.goAwayDebugData.text.isEmpty)
        #expect(peer.receive(.headers(3, [0x88])) == [.response(tag: 2, status: 200)])
        #expect(peer.openCount == 0)
    }

    @Test(arguments: Tearing.allCases)
    func `A stream above GOAWAY's last ID with response headers stays open`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        peer.open(1, 2, 3)
        #expect(
            peer.receive(.headers(3, [0x88], end: false), .goAway(1, .noError)) == [
                .goAway(.noError, lastStreamID: 1), .notProcessed(tag: 3),
            ])
        #expect(peer.openCount == 2)
        // The rest of the answer may come.
        #expect(
            peer.receive(.data(3, "", end: true)) == [.response(tag: 2, status: 200)])
    }

    @Test(arguments: Tearing.allCases)
    func `A stream above GOAWAY's last ID with an interim response stays open`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        peer.open(1, 2, 3)
        #expect(
            peer.receive(
                .headers(3, [0x08, 3] + Array("103".utf8), end: false), .goAway(1, .noError)) == [
                    .goAway(.noError, lastStreamID: 1), .notProcessed(tag: 3),
                ])
        #expect(peer.receive(.headers(3, [0x88])) == [.response(tag: 2, status: 200)])
    }

    @Test(arguments: Tearing.allCases)
    func `Frames on streams that are not processed are ignored, and their responses are reported`(
        tearing: Tearing
    ) {
        let peer = Peer(tearing, .init(connectionReceiveWindow: 65_535))
        peer.machine.start()
        peer.receive(.settings(), .settingsAcknowledgement)
        peer.open(1, 2, 3, 4)
        #expect(
            peer.receive(.reset(5, .refusedStream), .goAway(3, .noError)) == [
                .notProcessed(tag: 3), .goAway(.noError, lastStreamID: 3), .notProcessed(tag: 4),
            ])
        _ = peer.takeBytes()
        let part = String(repeating: "x", count: 16_000)
        #expect(
            peer.receive(
                .headers(7, [0x88], end: false), .data(7, part, end: false),
                .data(7, part, end: false), .data(7, part), .windowUpdate(7, 9),
                .reset(7, .cancel), .headers(5, [0x8c]), .headers(1, [0x88]), .headers(3, [0x88]))
                == [
                    .disownedResponse, .disownedResponse, .response(tag: 1, status: 200),
                    .response(tag: 2, status: 200),
                ])
        // The bytes count for the connection's window, and the blocks for its header table.
        let frames = peer.takeFrames()
        #expect(!frames.isEmpty && frames.allSatisfy { $0.type == .windowUpdate && $0.stream == 0 })
        let events = peer.receive(.headers(7, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))
        guard case .failed(let error)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(error.code == .compressionError && events.count == 1)
    }

    /// Vectors V21 and V23.
    @Test(arguments: Tearing.allCases)
    func `The reasons in Apple's GOAWAYs of vectors V21 and V23 are kept as debug data`(
        tearing: Tearing
    ) {
        let peer = Peer.ready(tearing)
        peer.open(1)
        #expect(
            peer.receive(
                hexBytes(
                    "00002e07000000000000000000000000007b22726561736f6e223a224261644365727469666963617465456e7669726f6e6d656e74227d"
                )) == [.goAway(.noError, lastStreamID: 0), .notProcessed(tag: 1)])
        #expect(
            peer.machine.goAwayDebugData.text == #"{"reason":"BadCertificateEnvironment"}"#)
        let other = Peer.ready(tearing)
        #expect(
            other.receive(
                hexBytes(
                    "00003a0700000000000000054b000000074d6178696d756d206163746976652073747265616d732076696f6c6174656420666f72207468697320656e64706f696e742e"
                )) == [.goAway(.refusedStream, lastStreamID: 1355)])
        #expect(
            other.machine.goAwayDebugData.text
                == "Maximum active streams violated for this endpoint.")
        let long = Peer.ready(tearing)
        long.receive(.goAway(0, .noError, String(repeating: "x", count: 2000)))
        #expect(long.machine.goAwayDebugData.byteCount == 512)
    }

    @Test(arguments: Tearing.allCases)
    func `GOAWAY finds each stream above its last ID although the IDs are far apart`(
        tearing: Tearing
    ) {
        let peer = Peer.ready(tearing, maxStreams: 4)
        peer.open(1)
        for tag in 100..<200 as Range<UInt32> {
            peer.receive(.headers(peer.open(tag)[0], [0x88]))
        }
        let ids = peer.open(2, 3, 4)
        let events = peer.receive(.goAway(ids[0], .noError))
        #expect(
            events == [
                .goAway(.noError, lastStreamID: ids[0]), .notProcessed(tag: 3),
                .notProcessed(tag: 4),
            ])
        #expect(peer.oldest == 1)
    }

    @Test(arguments: Tearing.allCases)
    func `Each PING is acknowledged, and the pong of our own is reported once`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        // Vector V24.
        peer.receive(hexBytes("00000806000000000041504e5350494e47"))
        #expect(peer.takeBytes() == hexBytes("00000806010000000041504e5350494e47"))
        peer.machine.ping(0x0123_4567_89ab_cdef)
        #expect(peer.takeFrames() == [.ping(0x0123_4567_89ab_cdef)])
        #expect(
            peer.receive(.ping(0x0123_4567_89ab_cdef, acknowledges: true))
                == [.pong(0x0123_4567_89ab_cdef)])
        #expect(peer.receive(.ping(5, acknowledges: true)) == [])
    }

    @Test func `A shutdown sends one GOAWAY, opens no streams and still reports responses`() {
        let peer = Peer.ready()
        peer.open(1)
        peer.machine.shutdown()
        peer.machine.shutdown()
        #expect(peer.takeFrames() == [.goAway(0, .noError)])
        #expect(peer.capacity() == 0)
        #expect(peer.receive(.headers(1, [0x88])) == [.response(tag: 1, status: 200)])
    }

    @Test func `Output taken in pieces of any size is complete and in order`() {
        let peer = Peer.ready()
        for opaque in 1...1000 as ClosedRange<UInt64> { peer.receive(.ping(opaque)) }
        var taken: [UInt8] = []
        while peer.machine.pendingOutputCount > 0 {
            taken += peer.takeBytes(atMost: 100)
            if taken.count == 1000 { peer.receive(.ping(1001)) }
        }
        #expect(
            Frame.parse(taken)
                == (1...1001 as ClosedRange<UInt64>).map {
                    .ping($0, acknowledges: true)
                })
        // Taking a little now and then keeps the whole buffer usable.
        for opaque in 1...8000 as ClosedRange<UInt64> {
            #expect(peer.receive(.ping(opaque)) == [])
            if opaque > 1000 { _ = peer.takeBytes(atMost: 17) }
        }
    }
}
