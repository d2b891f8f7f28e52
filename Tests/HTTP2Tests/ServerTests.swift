import BroadsideHPACK
import CBroadsideNghttp2
import Testing

@testable import BroadsideHTTP2

/// Whole conversations with the server of nghttp2: random limits and windows that change, answers in
/// any order, bodies of any length, padding, refusals, everything torn at random.
@Suite struct ServerTests {
    @Test(arguments: 0..<24 as Range<UInt64>)
    func `A random conversation with nghttp2's server gives each request its response`(seed: UInt64)
    {
        var conversation = Conversation(seed: seed)
        conversation.run()
    }
}

/// SplitMix64: the same numbers for the same seed everywhere.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

private struct Conversation {
    private enum Expected: Equatable {
        case status(UInt16, String)
        case refused
        case reset
        case cancelled
    }

    private var random: SeededRandom
    private let server: NGHTTP2Server
    private let peer: Peer
    private var mirror = DynamicTableMirror()
    private var toServer: [UInt8] = []
    private var toClient: [UInt8] = []
    private var payloads: [UInt32: [UInt8]] = [:]
    private var streams: [UInt32: UInt32] = [:]
    private var expected: [UInt32: Expected] = [:]
    private var settled: [UInt32: Expected] = [:]
    private var nextTag: UInt32 = 0
    private var tinyWindows: Bool
    private let requestCount: UInt32 = 300

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        tinyWindows = Bool.random(using: &random)
        let streamLimit = UInt32.random(in: 1...60, using: &random)
        let window: UInt32 =
            tinyWindows ? UInt32.random(in: 0...300, using: &random) : 65_535
        server = NGHTTP2Server(settings: [(3, streamLimit), (4, window)])
        peer = Peer(.whole, .init(maxStreams: 40, connectionReceiveWindow: 65_535))
        peer.machine.start()
    }

    mutating func run() {
        var turn = 0
        while settled.count < requestCount {
            turn += 1
            guard turn < 50_000 else {
                Issue.record("stuck with \(settled.count) of \(requestCount) settled")
                return
            }
            // An acknowledgement of SETTINGS goes before what is sent by them.
            toServer += peer.takeBytes()
            sendRequests()
            flowToServer()
            answerSome()
            changeSettings(turn)
            toClient += server.takeOutput()
            flowToClient()
            guard peer.isUsable || turn < 20 else {
                Issue.record("the connection ended: \(peer.heard.suffix(2))")
                return
            }
        }
        for (tag, outcome) in settled where expected[tag] != outcome {
            // The server answers the requests that it got; a cancelled one may cross its answer.
            Issue.record("request \(tag): \(outcome), not \(String(describing: expected[tag]))")
        }
        for (stream, request) in server.requests {
            guard let tag = streams[UInt32(stream)] else { continue }
            #expect(request.body == payloads[tag])
            #expect(request.fields.first { $0.name == "apns-id" }?.value == "id-\(tag)")
        }
        // Streams that crossed a lower limit on their way are refused, rightly.
        let refused = ": \(NGHTTP2_ERR_REFUSED_STREAM.rawValue)"
        #expect(server.complaints.filter { !$0.hasSuffix(refused) } == [])
    }

    // MARK: The client

    private mutating func sendRequests() {
        while let piece = peer.machine.nextContinuation() {
            let payload = payloads[piece.tag]!
            write(
                piece.streamID, payload[piece.offset..<piece.offset + piece.count],
                end: piece.isLast)
            #expect(piece.isLast == (piece.offset + piece.count == payload.count))
        }
        while nextTag < requestCount {
            let count = Int.random(in: 0...600, using: &random)
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ Int(nextTag)) }
            if peer.capacity(count) > 0 {
                let id = peer.machine.openStream(tag: nextTag, payloadCount: count)
                begin(id, payload, allowed: count)
            } else if peer.machine.mustSendInParts(payloadCount: count),
                let start = peer.machine.openPartialStream(tag: nextTag, payloadCount: count)
            {
                begin(start.streamID, payload, allowed: start.allowed)
            } else {
                break
            }
        }
        if Int.random(in: 0..<40, using: &random) == 0, let oldest = peer.machine.oldestOpenStream()
        {
            peer.machine.cancelStream(oldest.streamID)
            expected[oldest.tag] = .cancelled
            settled[oldest.tag] = .cancelled
        }
    }

    private mutating func begin(_ id: UInt32, _ payload: [UInt8], allowed: Int) {
        let tag = nextTag
        nextTag += 1
        payloads[tag] = payload
        streams[id] = tag
        mirror.limit(capacity: Int(peer.machine.headerTableSize))
        let block = RequestBlockEncoder.encode(
            [
                RequestField(.method, "POST"), RequestField(.scheme, "https"),
                RequestField(.path, "/3/device/00"), RequestField(.authority, "localhost"),
                RequestField(.identifier, .constant(Array("id-\(tag)".utf8))),
                RequestField(.expiration, "0"), RequestField(.topic, "com.example.MyApp"),
            ], mirror: &mirror, huffman: tag % 2 == 0)
        toServer += Frame.headers(id, block.bytes, end: payload.isEmpty).bytes
        if allowed > 0 { write(id, payload[..<allowed], end: allowed == payload.count) }
    }

    private mutating func write(_ id: UInt32, _ bytes: ArraySlice<UInt8>, end: Bool) {
        toServer +=
            Frame(
                type: .data, flags: end ? .endStream : [], stream: id, payload: Array(bytes)
            ).bytes
    }

    // MARK: Between them

    private mutating func flowToServer() {
        let count = min(toServer.count, Int.random(in: 0...20_000, using: &random))
        #expect(server.receive(Array(toServer[..<count])))
        toServer.removeFirst(count)
    }

    private mutating func flowToClient() {
        var count = min(toClient.count, Int.random(in: 0...20_000, using: &random))
        while count > 0 {
            let piece = min(count, Int.random(in: 1...3000, using: &random))
            let before = peer.heard.count
            peer.receive(Array(toClient[..<piece]))
            toClient.removeFirst(piece)
            count -= piece
            for heard in peer.heard[before...] { settle(heard) }
        }
    }

    private mutating func settle(_ heard: Heard) {
        switch heard.event {
        case .response(let tag, let status): settle(tag, .status(status, heard.body))
        case .notProcessed(let tag): settle(tag, .refused)
        case .reset(let tag, .internalError): settle(tag, .reset)
        case .ready, .settingsChanged: break
        default: Issue.record("\(heard.event)")
        }
    }

    private mutating func settle(_ tag: UInt32, _ outcome: Expected) {
        #expect(settled[tag] == nil, "request \(tag) is settled twice")
        // nghttp2 itself refuses what was under way when a limit was lowered.
        if outcome == .refused, expected[tag] == nil { expected[tag] = .refused }
        settled[tag] = outcome
    }

    // MARK: The server

    private mutating func answerSome() {
        for stream in server.waiting.shuffled(using: &random) {
            guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
            let tag = streams[UInt32(stream)]!
            let isCancelled = expected[tag] == .cancelled
            let answer: NGHTTP2Server.Answer
            let outcome: Expected
            switch Int.random(in: 0..<20, using: &random) {
            case 0: (answer, outcome) = (.refuse, .refused)
            case 1: (answer, outcome) = (.reset, .reset)
            case 2...9:
                let length = [0, 1, 40, 511, 513, 20_000].randomElement(using: &random)!
                let first = Int(tag)
                let body = (first..<first + length).map { UInt8(97 + $0 % 26) }
                let status = [200, 400, 410, 429, 503].randomElement(using: &random)!
                answer = .status(
                    status, body: body, padding: Int.random(in: 0...30, using: &random),
                    chunk: Bool.random(using: &random) ? 7000 : 13)
                outcome = .status(
                    UInt16(status), String(decoding: body.prefix(512), as: UTF8.self))
            default:
                answer = .status(200, body: [], padding: 0, chunk: 1)
                outcome = .status(200, "")
            }
            server.answer(stream, answer)
            if !isCancelled { expected[tag] = outcome }
        }
    }

    private mutating func changeSettings(_ turn: Int) {
        guard Int.random(in: 0..<10, using: &random) == 0 else { return }
        var settings: [(UInt16, UInt32)] = []
        if Bool.random(using: &random) {
            settings.append((3, UInt32.random(in: 0...60, using: &random)))
        }
        if tinyWindows {
            settings.append((4, UInt32.random(in: 0...400, using: &random)))
        }
        if Bool.random(using: &random) {
            settings.append((1, [0, 100, 4096].randomElement(using: &random)!))
        }
        server.submit(settings: settings)
    }
}
