import Testing

@testable import BroadsideHTTP2

@Suite struct SendingTests {
    private let initialWindow: UInt16 = 4
    private let maxStreams: UInt16 = 3

    @Test(arguments: Tearing.allCases)
    func `Streams are limited to one until a status other than 403 and 1xx has come`(
        tearing: Tearing
    ) {
        let peer = Peer.ready(tearing, gate: true)
        #expect(peer.capacity() == 1)
        peer.open(1)
        #expect(peer.capacity() == 0)
        peer.receive(.headers(1, [0x08, 3, 0x34, 0x30, 0x33]))
        #expect(peer.capacity() == 1)
        peer.open(2)
        peer.receive(.reset(3, .refusedStream))
        #expect(peer.capacity() == 1)
        peer.open(3)
        peer.receive(.headers(5, [0x08, 3, 0x31, 0x30, 0x30], end: false))
        #expect(peer.capacity() == 0)
        peer.receive(.headers(5, [0x8c]))
        #expect(peer.capacity() == 1000)
    }

    @Test(arguments: Tearing.allCases)
    func `The number of streams follows each SETTINGS_MAX_CONCURRENT_STREAMS`(tearing: Tearing) {
        let peer = Peer.ready(tearing, maxStreams: 500)
        #expect(peer.capacity() == 500)
        peer.receive(.settings((maxStreams, 3)))
        #expect(peer.capacity() == 3)
        peer.open(1, 2, 3)
        #expect(peer.capacity() == 0)
        // Below the streams that are open, and to zero.
        peer.receive(.settings((maxStreams, 1)))
        #expect(peer.capacity() == 0)
        peer.receive(.headers(1, [0x88]), .headers(3, [0x88]))
        #expect(peer.capacity() == 0)
        peer.receive(.settings((maxStreams, 0)))
        peer.receive(.headers(5, [0x88]))
        #expect(peer.openCount == 0)
        #expect(peer.capacity() == 0)
        #expect(peer.isUsable)
        peer.receive(.settings((maxStreams, .max)))
        #expect(peer.capacity() == 500)
        #expect(peer.takeFrames().filter { $0 == .settingsAcknowledgement }.count == 4)
    }

    /// Several values in one frame are taken in their order, the last counts.
    @Test(arguments: Tearing.allCases)
    func `Of several values of one setting in a frame the last counts`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        peer.receive(.settings((3, 1), (99, 7), (3, 20), (1, 0), (5, 20_000), (2, 0)))
        #expect(peer.capacity() == 20)
        let table = peer.machine.headerTableSize
        let size = peer.machine.maxFrameSize
        #expect(table == 0)
        #expect(size == 20_000)
        // The table was lowered, so it stays: a block in between has to be told of it.
        peer.receive(.settings((1, 4096)))
        let later = peer.machine.headerTableSize
        #expect(later == 0)
    }

    @Test(arguments: Tearing.allCases)
    func `The connection window limits how many requests can be opened`(tearing: Tearing) {
        let peer = Peer.ready(tearing)
        #expect(peer.capacity(0) == 1000)
        #expect(peer.capacity(4096) == 15)
        #expect(peer.capacity(65_535) == 0)  // a frame takes 16,384
        peer.open(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, payloadCount: 4096)
        #expect(peer.capacity(4095) == 1)
        #expect(peer.capacity(4096) == 0)
        #expect(peer.capacity(0) == 985)
        // An answer gives no credit back, WINDOW_UPDATE does.
        peer.receive(.headers(1, [0x88]))
        #expect(peer.capacity(4096) == 0)
        peer.receive(.windowUpdate(0, 1))
        #expect(peer.capacity(4096) == 1)
        peer.receive(.windowUpdate(0, 32_822))
        #expect(peer.capacity(4096) == 9)
        peer.open(16, payloadCount: 36_918)
        #expect(peer.capacity(1) == 0)
    }

    @Test(arguments: Tearing.allCases)
    func `A payload larger than the initial window has to be sent in parts`(tearing: Tearing) {
        let peer = Peer.ready(tearing, settings: (initialWindow, 100))
        #expect(peer.capacity(100) == 655)
        #expect(peer.capacity(101) == 0)
        let parts = [
            peer.machine.mustSendInParts(payloadCount: 100),
            peer.machine.mustSendInParts(payloadCount: 101),
        ]
        #expect(parts == [false, true])
        peer.receive(.settings((initialWindow, 101)))
        #expect(peer.capacity(101) == 648)
    }

    @Test(arguments: Tearing.allCases)
    func `A payload is sent in parts as the stream window opens`(tearing: Tearing) {
        let peer = Peer.ready(tearing, settings: (initialWindow, 10))
        let start = peer.machine.openPartialStream(tag: 7, payloadCount: 35)
        #expect(start?.streamID == 1)
        #expect(start?.allowed == 10)
        #expect(peer.machine.nextContinuation() == nil)
        peer.receive(.windowUpdate(1, 4))
        #expect(
            peer.machine.nextContinuation()
                == .init(tag: 7, streamID: 1, offset: 10, count: 4, isLast: false))
        #expect(peer.machine.nextContinuation() == nil)
        // A lower initial size takes the window below zero, a higher one raises it again.
        peer.receive(.settings((initialWindow, 0)))
        #expect(peer.machine.nextContinuation() == nil)
        peer.receive(.windowUpdate(1, 9))
        #expect(peer.machine.nextContinuation() == nil)
        peer.receive(.windowUpdate(1, 3))
        #expect(
            peer.machine.nextContinuation()
                == .init(tag: 7, streamID: 1, offset: 14, count: 2, isLast: false))
        peer.receive(.settings((initialWindow, 5)))
        #expect(
            peer.machine.nextContinuation()
                == .init(tag: 7, streamID: 1, offset: 16, count: 5, isLast: false))
        peer.receive(.windowUpdate(1, 1000))
        #expect(
            peer.machine.nextContinuation()
                == .init(tag: 7, streamID: 1, offset: 21, count: 14, isLast: true))
        #expect(peer.machine.nextContinuation() == nil)
        #expect(peer.capacity(1) == 999)
        #expect(peer.receive(.headers(1, [0x88])) == [.response(tag: 7, status: 200)])
        #expect(peer.takeFrames().allSatisfy { $0 == .settingsAcknowledgement })
    }

    @Test(arguments: Tearing.allCases)
    func `Parts of several payloads share the connection window`(tearing: Tearing) {
        let peer = Peer.ready(tearing, settings: (initialWindow, 0))
        for tag in 0..<3 as Range<UInt32> {
            let start = peer.machine.openPartialStream(tag: tag, payloadCount: 30_000)
            #expect(start?.allowed == 0)
        }
        peer.receive(.settings((initialWindow, 20_000)))
        var counts: [UInt32: Int] = [:]
        var total = 0
        while let piece = peer.machine.nextContinuation() {
            #expect(piece.offset == counts[piece.tag, default: 0])
            #expect(piece.count <= 16_384)
            counts[piece.tag, default: 0] += piece.count
            total += piece.count
        }
        #expect(counts.values.allSatisfy { $0 <= 20_000 })
        #expect(total == 60_000)
        peer.receive(.windowUpdate(1, 10_000), .windowUpdate(3, 10_000))
        while let piece = peer.machine.nextContinuation() { total += piece.count }
        #expect(total == 65_535)
        #expect(peer.machine.openPartialStream(tag: 9, payloadCount: 5) == nil)
        peer.receive(.windowUpdate(0, 1))
        #expect(peer.machine.nextContinuation()?.count == 1)
    }

    @Test(arguments: Tearing.allCases)
    func `A response before the payload is complete ends the rest with RST_STREAM`(tearing: Tearing)
    {
        let peer = Peer.ready(tearing, settings: (initialWindow, 10))
        _ = peer.machine.openPartialStream(tag: 7, payloadCount: 35)
        _ = peer.machine.openPartialStream(tag: 8, payloadCount: 35)
        #expect(
            peer.receive(.headers(1, [0x8c]), .reset(1, .noError), .settings((initialWindow, 99)))
                == [.response(tag: 7, status: 400), .settingsChanged])
        #expect(peer.takeFrames() == [.reset(1, .cancel), .settingsAcknowledgement])
        #expect(peer.machine.nextContinuation()?.tag == 8)
        #expect(peer.machine.nextContinuation() == nil)
    }

    @Test func `At most 64 payloads are sent in parts at once`() {
        let peer = Peer.ready(settings: (initialWindow, 1))
        for tag in 0..<64 as Range<UInt32> {
            #expect(peer.machine.openPartialStream(tag: tag, payloadCount: 5) != nil)
        }
        #expect(peer.machine.openPartialStream(tag: 64, payloadCount: 5) == nil)
        let parts = peer.machine.mustSendInParts(payloadCount: 5)
        #expect(!parts)
        peer.receive(.headers(1, [0x88]))
        #expect(peer.machine.nextContinuation() == nil)
        #expect(peer.machine.openPartialStream(tag: 64, payloadCount: 5) != nil)
        // One that is sent whole makes room before it is answered.
        #expect(peer.machine.openPartialStream(tag: 65, payloadCount: 5) == nil)
        peer.receive(.windowUpdate(3, 4))
        #expect(peer.machine.nextContinuation()?.isLast == true)
        #expect(peer.machine.openPartialStream(tag: 65, payloadCount: 5) != nil)
    }

    /// A stream window near its limit makes a higher initial size an error, but only while the
    /// stream is open.
    @Test(arguments: [true, false], Tearing.allCases)
    func `An initial window that overflows an open stream's window is a flow-control error`(
        isOpen: Bool, tearing: Tearing
    ) {
        let peer = Peer.ready(tearing, settings: (initialWindow, 10))
        peer.open(1, payloadCount: 10)
        #expect(peer.receive(.windowUpdate(1, 0x7fff_ffff)) == [])
        if !isOpen { peer.receive(.headers(1, [0x88])) }
        let events = peer.receive(.settings((initialWindow, 11)))
        if isOpen {
            guard case .failed(let error)? = events.first else {
                Issue.record("accepted")
                return
            }
            #expect(error.code == .flowControlError)
        } else {
            #expect(events == [.settingsChanged])
        }
    }
}
