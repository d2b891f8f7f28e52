import Testing

@testable import BroadsideHTTP2

/// What lies exactly at a limit is allowed; `ViolationTests` has what lies beyond it.
@Suite struct EdgeTests {
    /// Streams 1 (tag 10) and 3 (tag 11) are open.
    private func peer(_ tearing: Tearing = .whole) -> Peer {
        let peer = Peer.ready(tearing)
        peer.open(10, 11)
        return peer
    }

    private func failure(_ events: [ClientConnectionStateMachine.Event]) -> ErrorCode? {
        guard case .failed(let error)? = events.last else { return nil }
        return error.code
    }

    // MARK: Settings and windows

    @Test(
        arguments: [(4, 0), (4, 0x7fff_ffff), (5, 16_384), (5, 16_777_215), (2, 0), (1, .max)]
            as [(UInt16, UInt32)])
    func `Settings at the bounds of their ranges are accepted`(identifier: UInt16, value: UInt32) {
        #expect(peer().receive(.settings((identifier, value))) == [.settingsChanged])
    }

    @Test func `The largest initial window is allowed after a stream with more credit has ended`() {
        let peer = peer()
        #expect(peer.receive(.windowUpdate(1, 5), .headers(1, [0x88])).count == 1)
        #expect(peer.receive(.settings((4, 0x7fff_ffff))) == [.settingsChanged])
    }

    @Test func `The connection's window may be 2^31-1 and not more`() {
        let peer = peer()
        #expect(peer.receive(.windowUpdate(0, 0x7fff_ffff - 65_535)) == [])
        #expect(failure(peer.receive(.windowUpdate(0, 1))) == .flowControlError)
    }

    @Test func `A stream's window may be 2^31-1 and not more`() {
        let peer = peer()
        #expect(peer.receive(.windowUpdate(1, 0x7fff_ffff - 65_535)) == [])
        #expect(peer.receive(.windowUpdate(1, 1)) == [.streamError(tag: 10, .windowOverflow)])
    }

    @Test func `A server that announces no stream limit gets a thousand`() {
        #expect(Peer.ready(maxStreams: 2_000).capacity(0) == 1_000)
    }

    /// WINDOW_UPDATE by nothing is a protocol error (RFC 9113, section 6.9).
    @Test func `A connection that keeps the initial window sends no WINDOW_UPDATE`() {
        let peer = Peer(.whole, .init(connectionReceiveWindow: 65_535))
        peer.machine.start()
        #expect(Frame.parse(Array(peer.takeBytes().dropFirst(24))).map(\.type) == [.settings])
    }

    // MARK: Frames

    @Test(arguments: Tearing.allCases)
    func `A frame of 16,384 bytes is accepted`(tearing: Tearing) {
        let peer = peer(tearing)
        peer.receive(.headers(1, [0x88], end: false))
        let body = String(repeating: "x", count: 16_384)
        #expect(peer.receive(.data(1, body)) == [.response(tag: 10, status: 200)])
    }

    @Test(arguments: Tearing.allCases)
    func `Padded frames may be without content or without padding`(tearing: Tearing) {
        let peer = peer(tearing)
        peer.receive(.headers(1, [0x88], end: false))
        let empty = Frame(type: .data, flags: [.padded, .endStream], stream: 1, payload: [0])
        #expect(peer.receive(empty) == [.response(tag: 10, status: 200)])
        // Trailers without a field.
        peer.receive(.headers(3, [0x88], end: false))
        let trailers = Frame(
            type: .headers, flags: [.padded, .endHeaders, .endStream], stream: 3, payload: [0])
        #expect(peer.receive(trailers) == [.response(tag: 11, status: 200)])
    }

    /// Seven bytes of a field, but for the status in front of it.
    private static let filler: [UInt8] = [0x00, 1, 0x61, 3, 0x62, 0x63, 0x64]

    @Test(arguments: [(0, true), (1, false)])
    func `A header block of 32,768 bytes is accepted, and a larger one is an error`(
        excess: Int, isTaken: Bool
    ) {
        // 7 x 4,681 bytes and one of the status make 32,768.
        var block: [UInt8] = [0x88]
        for _ in 0..<4_681 { block += Self.filler }
        block += [UInt8](repeating: 0x20, count: excess)
        let peer = peer()
        let events = peer.receive(
            .headers(1, Array(block[..<16_384]), endHeaders: false),
            .continuation(1, Array(block[16_384..<32_768]), end: excess == 0),
            .continuation(1, Array(block[32_768...])))
        // An empty CONTINUATION behind a whole block continues nothing.
        #expect(events.first == .response(tag: 10, status: 200) || !isTaken)
        #expect(isTaken || failure(events) == .enhanceYourCalm)
    }

    @Test func `A header block of sixteen frames is accepted`() {
        let peer = peer()
        peer.receive(.headers(1, [0x88], endHeaders: false))
        for _ in 0..<14 { #expect(peer.receive(.continuation(1, [], end: false)) == []) }
        #expect(peer.receive(.continuation(1, [])) == [.response(tag: 10, status: 200)])
    }

    @Test
    func `12,000 frames in a row without a request are accepted, and one more is an error`() {
        // 10,000, and two for each of the 1,000 streams.
        let peer = peer()
        for _ in 0..<12_000 { #expect(peer.receive(.windowUpdate(0, 1)) == []) }
        #expect(failure(peer.receive(.windowUpdate(0, 1))) == .enhanceYourCalm)
    }

    @Test func `Frames without a request count for a second`() {
        let peer = peer()
        for second in 1...3 as ClosedRange<UInt64> {
            peer.machine.advance(to: second * 1_000_000_000)
            for _ in 0..<12_000 { #expect(peer.receive(.windowUpdate(0, 1)) == []) }
        }
        peer.machine.advance(to: 3_999_999_999)
        #expect(failure(peer.receive(.windowUpdate(0, 1))) == .enhanceYourCalm)
    }

    @Test func `Content after content-length 0 resets its stream at once`() {
        let peer = peer()
        peer.receive(
            .headers(1, [0x88] + ResponseTests.literal("content-length", "0"), end: false))
        #expect(
            peer.receive(.data(1, "x", end: false)) == [.streamError(tag: 10, .wrongLength)])
    }

    // MARK: Streams

    @Test func `A frame on the next stream ID is an error, as the stream is idle`() {
        for frame in [Frame.headers(5, [0x88]), .data(5, "x"), .reset(5, .cancel)] {
            #expect(failure(peer().receive(frame)) == .protocolError)
        }
    }

    @Test(arguments: [1, 2, 3, 4, 127, 128, 129, 1_000, 1_024])
    func `A stream table holds exactly its limit of streams`(limit: Int) {
        var table = StreamTable(limit: limit)
        for tag in 0..<limit { _ = table.open(tag: UInt32(tag), payloadCount: 0, sentCount: 0) }
        #expect(table.openCount == limit)
        for tag in 0..<limit {
            guard let slot = table.oldestSlot() else { return }
            #expect(table[slot].tag == tag)
            table.close(slot: slot, .closedByServer)
        }
        #expect(table.openCount == 0)
    }

    @Test func `A payload that the windows allow whole is not sent in parts`() {
        let peer = Peer.ready()
        for tag in 0..<100 as Range<UInt32> {
            #expect(peer.machine.openPartialStream(tag: tag, payloadCount: 9)?.allowed == 9)
        }
        #expect(peer.machine.occupancy.parts == 0)
    }

    @Test(arguments: 0..<5 as Range<UInt32>)
    func `A payload whose window opens continues at once`(tag: UInt32) {
        let peer = Peer.ready(settings: (4, 0))
        for tag in 0..<5 as Range<UInt32> {
            _ = peer.machine.openPartialStream(tag: tag, payloadCount: 9)
        }
        for count in 1...3 {
            peer.receive(.windowUpdate(2 * tag + 1, 3))
            #expect(peer.machine.nextContinuation()?.tag == tag)
            #expect(peer.machine.nextContinuation() == nil)
            #expect(peer.machine.occupancy.parts == (count == 3 ? 4 : 5))
        }
    }

    // MARK: Retry-After

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Sun, 09 Sep 2001 01:46:40 GMT", 0),
            ("Sun, 09 Sep 2001 01:46:41 GMT", 1), ("999999999", 999_999_999), ("0", 0),
            ("1000000000", 999_999_999), ("9999999999", 999_999_999), ("0000000000007", 7),
            ("Sun, 07 Feb 2106 06:28:13 GMT", 3_294_967_293),
            ("Fri, 31 Dec 2200 23:59:59 GMT", 3_294_967_294), ("10000000000 s", nil), ("", nil),
            ("000000000000000000000000000000007", 7), ("0000000000000000000000000000000007", nil),
            ("Sunday, 09-Sep-01 01:46:41 GMT", 1), ("Wednesday, 12-Sep-01 01:46:40 GMT", 259_200),
            ("Sun Sep  9 01:46:41 2001", 1),
        ] as [(String, UInt64?)])
    func `Retry-After dates before, at and after the first instant are read`(
        text: String, seconds: UInt64?
    ) {
        let delay = RetryAfter(Array(text.utf8).span.bytes)
        #expect(delay.seconds(from: 1_000_000_000) == seconds)
    }

    @Test func `A second of 60 and years of four digits are read`() {
        func parse(_ text: String) -> UInt64? { HTTPDate.parse(Array(text.utf8).span.bytes) }
        #expect(parse("Sat, 31 Dec 2016 23:59:60 GMT") == 1_483_228_800)
        #expect(parse("Fri, 31 Dec 9999 23:59:59 GMT") == 253_402_300_799)
        #expect(parse("Sat, 01 Jan 10000 00:00:00 GMT") == nil)
        #expect(parse("Wed, 31 Dec 1969 23:59:59 GMT") == nil)
        #expect(parse("Thu, 00 Jan 1970 00:00:00 GMT") == nil)
    }
}
