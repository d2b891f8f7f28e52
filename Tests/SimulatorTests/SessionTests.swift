import BroadsideSupport
import Testing

@testable import BroadsideSimulator

/// Both kinds of session by themselves, fed with frames.
@Suite struct SessionTests {
    static let block =
        "8387" + "04" + "16" + hex("/3/device/ffffffffffff") + "01" + "09" + hex("localhost")
        + "40" + "07" + hex("apns-id") + "24" + hex("eabeae54-14a8-11e5-b60b-1697f925ec7b") + "00"
        + "0a" + hex("apns-topic") + "03" + hex("a.b")

    /// A request about the broadcast channels of an app.
    static let channels =
        "8287" + "04" + "18" + hex("/1/apps/a.b/all-channels") + "01" + "09" + hex("localhost")

    private func context(_ change: (inout SimulatorOptions) -> Void = { _ in }) -> WorkerContext {
        var options = SimulatorOptions(state: "")
        change(&options)
        return WorkerContext(
            options: options, tokenTopics: TopicTable(app: "a.b", otherApp: "a.c"), keys: [],
            journal: nil, start: .now(), seed: 1)
    }

    private func session(_ context: WorkerContext, slot: UInt32) -> ServerSession {
        let session = ServerSession(
            context: context, credential: ConnectionCredential(hasCertificate: true),
            topics: context.tokenTopics, slot: slot, generation: 0, number: UInt64(slot))
        session.start()
        return session
    }

    private func fastSession(_ context: WorkerContext) -> FastSession {
        FastSession(
            context: context, credential: ConnectionCredential(hasCertificate: true),
            topics: context.tokenTopics, slot: 0, generation: 0)
    }

    /// Header blocks of two connections that come in turns, byte by byte, do not mix.
    @Test func `Header blocks of two connections that arrive in turns are kept apart`() {
        let context = context()
        let sessions = [session(context, slot: 0), session(context, slot: 1)]
        let bytes = Frames.preface + Frames.request(1, Self.block)
        for byte in bytes {
            for session in sessions { #expect([byte].withBytes { session.receive($0) }) }
        }
        #expect(context.totals.requests == 2)
        #expect(context.totals.accepted == 2)
    }

    @Test func `A fast session takes requests in pieces of any size`() {
        let bytes =
            Frames.preface + Frames.request(1, Self.block)
            + Frames.headers(3, Self.block, pieces: 3) + Frames.frame(0, 1, 3, [0x7b, 0x7d])
            // Padded.
            + Frames.frame(1, 0xc, 5, [2] + hexBytes(Self.block) + [0, 0])
            + Frames.frame(0, 9, 5, [3, 0x7b, 0x7d, 0, 0, 0])
        for size in [1, 2, 3, 5, 8, 13, 100, bytes.count] {
            let context = context { $0.isFast = true }
            let session = fastSession(context)
            for start in stride(from: 0, to: bytes.count, by: size) {
                let piece = Array(bytes[start..<min(start + size, bytes.count)])
                #expect(piece.withBytes { session.receive($0) })
            }
            #expect(context.totals.accepted == 3, "pieces of \(size)")
        }
    }

    /// As bytes: the response of vector V19, with another stream and identifier.
    @Test func `A fast response is vector V19's bytes with its own stream and ID`() {
        let context = context { $0.isFast = true }
        let session = fastSession(context)
        let bytes = Frames.preface + Frames.request(1, Self.block)
        #expect(bytes.withBytes { session.receive($0) })
        var output = ByteBuffer(capacity: 0)
        session.takeOutput(into: &output)
        let expected =
            "00002f01050000000188000761706e732d69642465616265616535342d313461382d313165352d6236"
            + "30622d313639376639323565633762"
        #expect(Array(output.bytes).suffix(56).elementsEqual(hexBytes(expected)))
    }

    /// More streams than were announced: refused by the one, the end for the other.
    @Test func `A stream above the announced limit is a violation in both sessions`() {
        let flood = (0..<3).flatMap { Frames.headers(UInt32(1 + 2 * $0), Self.block, pieces: 1) }
        let fast = context {
            $0.isFast = true
            $0.maxStreams = 2
        }
        let session = fastSession(fast)
        #expect((Frames.preface + flood).withBytes { session.receive($0) })
        #expect(fast.totals.violations == 1)
        #expect(!session.isFinished)

        let strict = context { $0.maxStreams = 2 }
        let other = self.session(strict, slot: 0)
        var output = ByteBuffer(capacity: 0)
        other.takeOutput(into: &output)
        let acknowledgement = Frames.frame(4, 1, 0, [])
        #expect((Frames.preface + acknowledgement + flood).withBytes { other.receive($0) })
        #expect(strict.totals.violations == 1)
        output.removeAll()
        other.takeOutput(into: &output)
        let text = String(decoding: output.bytes)
        #expect(text.contains("Maximum active streams violated for this endpoint."))
        #expect(other.isFinished)
    }

    /// RFC 9113 section 6.8: the client may repeat what is above the last stream, and only that.
    @Test func `GOAWAY for too many streams names the last processed one; the others are ignored`()
        throws
    {
        let folder = Folder()
        let journal = folder.file("journal")
        var options = SimulatorOptions(state: "")
        options.maxStreams = 3
        options.latencyNanoseconds = 1
        let context = WorkerContext(
            options: options, tokenTopics: TopicTable(app: "a.b", otherApp: "a.c"), keys: [],
            journal: try JournalFile(path: journal), start: .now(), seed: 1)
        let session = session(context, slot: 0)
        _ = Frames.all(session)
        // Stream 3 is complete, 7 is one too many.
        let opened =
            Frames.headers(1, Self.block, pieces: 1) + Frames.request(3, Self.block)
            + Frames.headers(5, Self.block, pieces: 1) + Frames.headers(7, Self.block, pieces: 1)
            + Frames.request(9, Self.block)
        let acknowledgement = Frames.frame(4, 1, 0, [])
        #expect((Frames.preface + acknowledgement + opened).withBytes { session.receive($0) })
        let goAways = Frames.all(session).filter { $0.type == 7 }
        #expect(goAways.map { Array($0.payload.prefix(8)) } == [[0, 0, 0, 3, 0, 0, 0, 7]])
        let bodies = [5, 7, 1].flatMap { Frames.frame(0, 1, $0, [0x7b, 0x7d]) }
        #expect(bodies.withBytes { session.receive($0) })
        #expect(!session.isFinished && context.totals.violations == 1)
        while let response = context.queue.pop(now: .max) { session.deliver(response) }
        #expect(Frames.all(session).filter { $0.type == 1 }.map(\.streamID) == [3, 1])
        #expect(session.isFinished && context.totals.accepted == 2)
        context.journal?.flush()
        #expect(try journalRows(journal).map { $0[2] } == ["3", "1"])
    }

    @Test func `A client that opened too many streams is not waited for without end`() {
        let context = context { $0.maxStreams = 1 }
        let session = session(context, slot: 0)
        let opened =
            Frames.headers(1, Self.block, pieces: 1) + Frames.request(3, Self.block)
            + Frames.headers(5, Self.block, pieces: 1) + Frames.headers(7, Self.block, pieces: 1)
        _ = Frames.all(session)
        // Stream 3 is processed before the acknowledgement, so that 1 is awaited.
        let acknowledgement = Frames.frame(4, 1, 0, [])
        #expect(
            (Frames.preface + opened + acknowledgement
                + Frames.headers(9, Self.block, pieces: 1)).withBytes { session.receive($0) })
        _ = Frames.all(session)
        #expect(context.totals.violations == 1 && !session.isFinished)
        #expect(session.alarm <= context.now + SimulatorLimits.violationNanoseconds)
        session.violationEnd = 0
        session.tick()
        #expect(session.isFinished)
    }

    /// Stream 1 is complete when the client makes an error, stream 5 is not.
    @Test(
        arguments: [
            Frames.frame(6, 0, 0, [1]), Frames.frame(1, 4, 7, hexBytes("ff00")),
            Frames.headers(3, block, pieces: 1),
        ], [block, channels])
    func `GOAWAY for a client's error names the last processed stream`(
        _ fault: [UInt8], first: String
    ) {
        let bytes =
            Frames.preface + Frames.request(1, first) + Frames.headers(5, Self.block, pieces: 1)
            + fault + Frames.frame(0, 1, 5, [0x7b, 0x7d]) + Frames.request(9, Self.block)
        let strict = context()
        let session = session(strict, slot: 0)
        #expect(bytes.withBytes { session.receive($0) })
        let fast = context { $0.isFast = true }
        let fastSession = fastSession(fast)
        #expect(bytes.withBytes { fastSession.receive($0) })
        var output = ByteBuffer(capacity: 0)
        fastSession.takeOutput(into: &output)
        for frames in [Frames.all(session), Frames.split(Array(output.bytes))] {
            #expect(frames.last { $0.type == 7 }?.payload.prefix(4) == [0, 0, 0, 1])
        }
        #expect(session.isFinished && fastSession.isFinished)
        let accepted: UInt64 = first == Self.block ? 1 : 0
        #expect(strict.totals.accepted == accepted && fast.totals.accepted == accepted)
    }

    /// Until the client acknowledged the limit it may not know it.
    @Test func `Streams above the limit are taken until the client acknowledged it`() {
        let context = context { $0.maxStreams = 2 }
        let session = session(context, slot: 0)
        var output = ByteBuffer(capacity: 0)
        session.takeOutput(into: &output)
        let flood = (0..<50).flatMap { Frames.headers(UInt32(1 + 2 * $0), Self.block, pieces: 1) }
        #expect((Frames.preface + flood).withBytes { session.receive($0) })
        #expect(context.totals.violations == 0)
    }

    /// An answer whose body the client's window cannot take waits for the window.
    @Test func `A fast session sends no more body bytes than the client's window allows`() {
        let context = context {
            $0.isFast = true
            $0.badToken = 1
        }
        let session = fastSession(context)
        var bytes = Frames.preface
        // 27 bytes a body: the 2424th does not fit 65,535.
        let count = 2600
        for number in 0..<count { bytes += Frames.request(UInt32(1 + 2 * number), Self.block) }
        #expect(bytes.withBytes { session.receive($0) })
        var output = ByteBuffer(capacity: 0)
        session.takeOutput(into: &output)
        #expect(Frames.dataBytes(output) <= 65_535)
        let before = Frames.dataBytes(output)
        output.removeAll()
        #expect(Frames.frame(8, 0, 0, [0, 1, 0, 0]).withBytes { session.receive($0) })
        session.takeOutput(into: &output)
        #expect(before + Frames.dataBytes(output) == count * 27)
    }

    /// A peer that breaks the rules is told so, and nothing traps.
    @Test(arguments: [
        Frames.frame(1, 4, 0, hexBytes("83")), Frames.frame(1, 4, 2, hexBytes("83")),
        Frames.frame(1, 4, 1, hexBytes("be")),
        Frames.frame(1, 0, 1, hexBytes("83")) + Frames.frame(0, 1, 1, []),
        Frames.frame(9, 4, 1, []), Frames.frame(6, 0, 0, [1]), Frames.frame(4, 0, 0, [1]),
        Frames.frame(8, 0, 0, []), Frames.frame(1, 0xc, 1, [9, 0x83]),
        [0, 0x40, 1, 0, 0, 0, 0, 0, 1],
    ])
    func `A client that violates HTTP/2 gets its session ended`(_ bytes: [UInt8]) {
        let context = context { $0.isFast = true }
        let session = fastSession(context)
        #expect((Frames.preface + bytes).withBytes { session.receive($0) })
        #expect(session.isFinished)
        #expect(context.totals.violations == 1)
    }

    /// A connection whose second complete request meets the GOAWAY: HEADERS of four streams, then
    /// the bodies of 5, 3, 7 and 1.
    @Test(
        arguments: [
            // 5 is taken before 3, so GOAWAY has to cover it; 7 is above it.
            ("", 5, [5, 3, 1]),
            // 3 is not taken, but GOAWAY covers 5: 3 is reset.
            (", before_request: true", 5, [5, 1]),
            // Nothing follows an abrupt end.
            (", abrupt: true", 5, [5, 3]),
            // The notice is for the highest number, so all of them are taken.
            (", notice: '1h'", 0x7fff_ffff, [5, 3, 7, 1]),
        ] as [(String, Int, [Int])])
    func `Bodies of streams above the last one of a GOAWAY are ignored`(
        _ more: String, last: Int, taken: [Int]
    ) throws {
        let folder = Folder()
        let (context, journal) = try scripted(
            "{ faults: [{ do: 'goaway', at: 2\(more) }] }", folder)
        let session = session(context, slot: 0)
        let heads = [1, 3, 5, 7].flatMap { Frames.headers($0, Self.block, pieces: 1) }
        let bodies = [5, 3, 7, 1].flatMap { Frames.frame(0, 1, $0, [0x7b, 0x7d]) }
        #expect((Frames.preface + heads + bodies).withBytes { session.receive($0) })
        let frames = Frames.all(session)
        #expect(frames.first?.type == 4, "a server begins with SETTINGS")
        let goAway = try #require(frames.first { $0.type == 7 })
        #expect(goAway.payload.prefix(4).reduce(0) { $0 << 8 | Int($1) } == last)
        #expect(context.totals.accepted == UInt64(taken.count))
        context.journal?.flush()
        let rows = try journalRows(journal)
        #expect(rows.filter { $0[5] == "200" }.map { Int($0[2]) } == taken)
        // What was not processed is said to be so, and is in the journal as such or not at all.
        let resets = frames.filter { $0.type == 3 }.map(\.streamID)
        #expect(resets == (more.contains("before") ? [3] : []))
        #expect(rows.filter { $0[5] == "0" }.map { $0[2] } == resets.map { "\($0)" })
    }

    @Test(arguments: ["", ", before_request: true"])
    func `The first request of a connection may meet a GOAWAY, and the streams behind it end`(
        _ more: String
    ) throws {
        let folder = Folder()
        let (context, journal) = try scripted(
            "{ faults: [{ do: 'goaway', at: 1\(more) }] }", folder)
        let session = session(context, slot: 0)
        let heads = [1, 3, 5].flatMap { Frames.headers($0, Self.block, pieces: 1) }
        let bodies = [1, 3, 5].flatMap { Frames.frame(0, 1, $0, [0x7b, 0x7d]) }
        #expect((Frames.preface + heads + bodies).withBytes { session.receive($0) })
        let goAway = try #require(Frames.all(session).first { $0.type == 7 })
        #expect(goAway.payload.prefix(4) == (more.isEmpty ? [0, 0, 0, 1] : [0, 0, 0, 0]))
        #expect(context.totals.accepted == (more.isEmpty ? 1 : 0))
        context.journal?.flush()
        #expect(try journalRows(journal).count == 1)
        #expect(session.isFinished)
    }

    /// A context with a scenario and a journal.
    private func scripted(
        _ scenario: String, _ folder: Folder
    ) throws -> (context: WorkerContext, journal: String) {
        let journal = folder.file("journal")
        let context = WorkerContext(
            options: SimulatorOptions(state: ""),
            tokenTopics: TopicTable(app: "a.b", otherApp: "a.c"), keys: [],
            journal: try JournalFile(path: journal), start: .now(), seed: 1)
        context.run = ScenarioRun(
            try ScenarioReader.read(Array(scenario.utf8), name: "test"), now: context.now)
        return (context, journal)
    }

    /// RFC 9113 section 5.1.1: a stream's number is above all earlier ones.
    @Test func `A stream number below an earlier one ends the connection with PROTOCOL_ERROR`() {
        let skipping = Frames.request(1, Self.block) + Frames.request(9, Self.block)
        for lower in [3, 5, 7] as [UInt32] {
            let bytes =
                Frames.preface + skipping + Frames.headers(lower, Self.block, pieces: 1)
                + Frames.request(11, Self.block)
            let fast = context { $0.isFast = true }
            let fastSession = fastSession(fast)
            #expect(bytes.withBytes { fastSession.receive($0) })
            #expect(fastSession.isFinished && fast.totals.violations == 1)
            #expect(fast.totals.accepted == 2)
            var output = ByteBuffer(capacity: 0)
            fastSession.takeOutput(into: &output)
            let ends = [Frames.split(Array(output.bytes)), strictFrames(bytes)].map { frames in
                frames.last { $0.type == 7 }?.payload
            }
            for end in ends {
                #expect(end?[4..<8] == [0, 0, 0, 1])
                #expect(
                    end.map { String(decoding: $0[8...], as: UTF8.self) }
                        == "stream \(lower) after stream 9")
            }
        }
    }

    private func strictFrames(_ bytes: [UInt8]) -> [Frames.Frame] {
        let context = context()
        let session = session(context, slot: 0)
        #expect(bytes.withBytes { session.receive($0) })
        #expect(context.totals.violations == 1 && context.totals.accepted == 2)
        let frames = Frames.all(session)
        #expect(session.isFinished)
        return frames
    }

    @Test func `Trailers of an open stream and numbers that are passed over are no error`() {
        let open = Frames.headers(1, Self.block, pieces: 1) + Frames.frame(0, 0, 1, [0x7b, 0x7d])
        // Field a: b.
        let trailers = Frames.frame(1, 5, 1, hexBytes("000161" + "0162"))
        let bytes = Frames.preface + open + Frames.request(9, Self.block) + trailers
        let fast = context { $0.isFast = true }
        let fastSession = fastSession(fast)
        #expect(bytes.withBytes { fastSession.receive($0) })
        let strict = context()
        let session = session(strict, slot: 0)
        #expect(bytes.withBytes { session.receive($0) })
        for context in [fast, strict] {
            #expect(context.totals.violations == 0 && context.totals.accepted == 2)
        }
    }

    /// RFC 9113 section 5.1, "closed": the stream had END_STREAM in both directions.
    @Test(arguments: ["HEADERS", "DATA"])
    func `A frame on a stream that has ended is a connection error STREAM_CLOSED`(_ kind: String) {
        let context = context()
        let session = session(context, slot: 0)
        #expect(
            (Frames.preface + Frames.request(1, Self.block)).withBytes { session.receive($0) })
        // The response ends the stream.
        #expect(Frames.all(session).contains { $0.type == 1 && $0.streamID == 1 })
        // Many more, so that the first one is no recent stream.
        for number in UInt32(1)...1000 {
            #expect(
                Frames.request(1 + 2 * number, Self.block).withBytes { session.receive($0) })
            _ = Frames.all(session)
        }
        #expect(context.totals.accepted == 1001 && context.totals.violations == 0)
        let late =
            kind == "DATA"
            ? Frames.frame(0, 1, 1, [0x7b, 0x7d]) : Frames.headers(1, Self.block, pieces: 1)
        let next = late + Frames.request(2003, Self.block)
        #expect(next.withBytes { session.receive($0) })
        let goAway = Frames.all(session).first { $0.type == 7 }
        #expect(goAway?.payload[4..<8] == [0, 0, 0, 5])
        #expect(
            goAway.map { String(decoding: $0.payload[8...], as: UTF8.self) }
                == "\(kind) on stream 1, which has ended")
        #expect(session.isFinished && context.totals.accepted == 1001)
    }

    /// RFC 7540 section 5.1: "An endpoint that receives any frames other than PRIORITY after
    /// receiving a RST_STREAM MUST treat that as a stream error of type STREAM_CLOSED"; RFC 9113
    /// permits a connection error.
    @Test(arguments: ["HEADERS", "DATA"], [false, true])
    func `A frame on a stream that the client has reset is a connection error STREAM_CLOSED`(
        _ kind: String, isAtOnce: Bool
    ) {
        let context = context()
        let session = session(context, slot: 0)
        let reset = Frames.frame(3, 0, 1, [0, 0, 0, 8])
        let opened = Frames.preface + Frames.headers(1, Self.block, pieces: 1) + reset
        let late =
            kind == "DATA"
            ? Frames.frame(0, 1, 1, [0x7b, 0x7d]) : Frames.headers(1, Self.block, pieces: 1)
        let next = late + Frames.request(3, Self.block)
        for bytes in isAtOnce ? [opened + next] : [opened, next] {
            #expect(bytes.withBytes { session.receive($0) })
        }
        let goAway = Frames.all(session).first { $0.type == 7 }
        #expect(goAway?.payload.prefix(8) == [0, 0, 0, 0, 0, 0, 0, 5])
        #expect(session.isFinished && context.totals.accepted == 0)
    }

    @Test func `Frames on a stream that the simulator has reset are ignored`() {
        let context = context()
        let session = session(context, slot: 0)
        // A field host that differs from :authority.
        let block = Self.block + "00" + "04" + Self.hex("host") + "01" + Self.hex("x")
        let opened = Frames.headers(1, block, pieces: 1)
        #expect((Frames.preface + opened).withBytes { session.receive($0) })
        #expect(Frames.all(session).contains { $0.type == 3 && $0.streamID == 1 })
        let late = Frames.frame(0, 1, 1, [0x7b, 0x7d]) + Frames.request(3, Self.block)
        #expect(late.withBytes { session.receive($0) })
        #expect(context.totals.violations == 0 && context.totals.accepted == 1)
    }

    @Test func `Of more unfinished streams than the limit the oldest are ignored with all below`() {
        var unfinished = UnfinishedStreams()
        for number in 0...UInt32(UnfinishedStreams.limit) { unfinished.record(11 + 4 * number) }
        #expect(unfinished.contains(1) && unfinished.contains(11) && unfinished.contains(15))
        #expect(!unfinished.contains(13) && !unfinished.contains(17))
    }

    @Test func `Of more ranges of skipped numbers than the limit the oldest are forgotten`() {
        var skipped = SkippedStreams()
        var last: UInt32 = 0
        for _ in 0...SkippedStreams.limit {
            skipped.record(from: last, to: last + 4)
            last += 4
        }
        #expect(!skipped.contains(1) && skipped.contains(5) && skipped.contains(last - 1))
        #expect(!skipped.contains(last) && !skipped.contains(last + 1))
    }

    @Test func `Bytes that are not HTTP/2's preface end the session`() {
        let context = context { $0.isFast = true }
        let session = fastSession(context)
        #expect(Array("GET / HTTP/1.1\r\n".utf8).withBytes { !session.receive($0) })
    }

    static func hex(_ text: String) -> String {
        text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// Frames as a client sends them.
enum Frames {
    static let preface =
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [])

    static func frame(
        _ type: UInt8, _ flags: UInt8, _ streamID: UInt32, _ payload: [UInt8]
    ) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xff), UInt8(count & 0xff), type, flags]
            + withUnsafeBytes(of: streamID.bigEndian) { Array($0) } + payload
    }

    /// HEADERS, and CONTINUATION where the block goes in more pieces than one.
    static func headers(_ streamID: UInt32, _ block: String, pieces: Int) -> [UInt8] {
        let bytes = hexBytes(block)
        var frames: [UInt8] = []
        for piece in 0..<pieces {
            let range = bytes.count * piece / pieces..<bytes.count * (piece + 1) / pieces
            frames += frame(
                piece == 0 ? 1 : 9, piece == pieces - 1 ? 4 : 0, streamID, Array(bytes[range]))
        }
        return frames
    }

    static func request(_ streamID: UInt32, _ block: String) -> [UInt8] {
        headers(streamID, block, pieces: 1) + frame(0, 1, streamID, [0x7b, 0x7d])
    }

    /// A frame that a server wrote.
    struct Frame {
        let type: UInt8
        let streamID: UInt32
        let payload: [UInt8]
    }

    /// The frames in what a server wrote.
    static func split(_ bytes: [UInt8]) -> [Frame] {
        var frames: [Frame] = []
        var position = 0
        while position < bytes.count {
            let count = bytes[position..<position + 3].reduce(0) { $0 << 8 | Int($1) }
            let stream = bytes[position + 5..<position + 9].reduce(0) { $0 << 8 | UInt32($1) }
            frames.append(
                Frame(
                    type: bytes[position + 3], streamID: stream,
                    payload: Array(bytes[position + 9..<position + 9 + count])))
            position += 9 + count
        }
        return frames
    }

    /// The frames that a session has to write.
    static func all(_ session: ServerSession) -> [Frame] {
        var output = ByteBuffer(capacity: 0)
        session.takeOutput(into: &output)
        return split(Array(output.bytes))
    }

    /// The bytes of DATA payload in what a server wrote.
    static func dataBytes(_ output: borrowing ByteBuffer) -> Int {
        let bytes = Array(output.bytes)
        var position = 0
        var total = 0
        while position < bytes.count {
            let count =
                Int(bytes[position]) << 16 | Int(bytes[position + 1]) << 8
                | Int(bytes[position + 2])
            if bytes[position + 3] == 0 { total += count }
            position += 9 + count
        }
        return total
    }
}
