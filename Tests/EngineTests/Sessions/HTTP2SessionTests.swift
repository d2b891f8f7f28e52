import BroadsideHPACK
import BroadsideHTTP2
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// One connection's HTTP/2, as the reactor sees it.
@Suite struct HTTP2SessionTests {
    private func frame(
        _ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ body: [UInt8] = []
    ) -> [UInt8] {
        [0, 0, UInt8(body.count), type, flags, 0, 0, 0, stream] + body
    }

    /// HEADERS of one byte, `:status 200` of the static table, and the stream's end.
    private func accepts(_ stream: UInt8) -> [UInt8] { frame(1, flags: 5, stream: stream, [0x88]) }

    private func setting(_ identifier: UInt8, _ value: UInt8) -> [UInt8] {
        frame(4, [0, identifier, 0, 0, 0, value])
    }

    private func tokens(_ events: [ScriptedServer.Event]) -> [String] {
        events.compactMap { if case .request(_, let token, _) = $0 { token } else { nil } }
    }

    /// A connection whose server has announced its settings: nothing but the defaults, if nil.
    private func standing(_ settings: [UInt8]? = nil) -> SessionBench {
        var bench = SessionBench()
        _ = bench.session.start()
        _ = bench.outcomes(settings ?? frame(4))
        return bench
    }

    @Test func `The first request is alone in its record, and so is the first of a form`() {
        var bench = standing()
        let tags = bench.makeRows(20)
        var server = ScriptedServer()
        var next = 0
        var written: [Int] = []
        var seen: [String] = []
        for _ in 0..<3 {
            let record = bench.write(Array(tags[next..<(next + 5)]))
            next += record.written
            written.append(record.written)
            seen += tokens(server.take(record.bytes))
        }
        #expect(written == [1, 1, 5])
        // On a connection with the same table the form is there already.
        bench.reconnect()
        _ = bench.session.start()
        _ = bench.outcomes(frame(4))
        server = ScriptedServer()
        written = []
        for _ in 0..<2 {
            let record = bench.write(Array(tags[next..<(next + 5)]))
            next += record.written
            written.append(record.written)
            seen += tokens(server.take(record.bytes))
        }
        #expect(written == [1, 5])
        #expect(seen == (0..<13).map(ScriptedRun.token))
    }

    @Test func `A request that was prepared and not written leaves the header table`() {
        var bench = standing()
        let tags = bench.makeRows(1)
        let most = bench.session.prepare(&bench.writer)
        bench.writer.finish()
        let record = bench.write(tags)
        let seen = tokens(ScriptedServer().take(record.bytes))
        #expect(most == 1 && seen == [ScriptedRun.token(0)])
    }

    @Test func `A full TLS record gets no further request`() {
        var bench = standing()
        let tags = bench.makeRows(30)
        _ = bench.write([tags[0]])
        let second = bench.write([tags[1]])
        let limit = 3 * second.bytes.count + bench.writer.rowLimit - 1
        let third = bench.write(Array(tags[2...]), limit: limit)
        #expect(third.written == 3 && third.bytes.count <= limit)
    }

    @Test func `Responses and stream ends are reported by row`() {
        var bench = SessionBench()
        _ = bench.session.start()
        let first = bench.outcomes(setting(3, 9))
        let tags = bench.makeRows(6)
        for tag in tags { _ = bench.write([tag]) }
        let open = bench.session.openCount
        _ = bench.session.ping(0)
        let outcomes = bench.outcomes(
            accepts(1) + frame(1, flags: 5, stream: 3, [0x8d])
                + frame(3, stream: 5, [0, 0, 0, 7]) + frame(3, stream: 7, [0, 0, 0, 8])
                + frame(6, flags: 1, [0, 0, 0, 0, 0, 0, 0, 0])
                + frame(7, [0, 0, 0, 9, 0, 0, 0, 0]))
        #expect(first == [.ready(streams: 9)] && open == 6)
        #expect(
            outcomes == [
                .accepted(tags[0]), .response(tags[1], status: 404), .notProcessed(tags[2]),
                .lost(tags[3], .reset(.cancel)), .pong, .goAway(.noError), .notProcessed(tags[5]),
            ])
        let (isDraining, left) = (bench.session.isDraining, bench.session.takeInFlight()?.tag)
        let none = bench.session.takeInFlight()?.tag
        #expect(isDraining && left == tags[4] && none == nil)
    }

    @Test func `The encoder follows the table size that the server allows`() {
        var session = HTTP2Session(.init())
        session.start()
        var capacities = [session.mirror.capacity]
        var outcomes: [SessionOutcome] = []
        for size: UInt8 in [100, 0] {
            let bytes = setting(1, size)
            var offset = 0
            while let outcome = session.nextOutcome(in: bytes.span.bytes, at: &offset) {
                outcomes.append(outcome)
            }
            capacities.append(session.mirror.capacity)
        }
        #expect(capacities == [4096, 100, 0] && outcomes == [.ready(streams: 1000)])
    }

    @Test func `A payload larger than the window is sent in parts`() {
        var bench = standing(setting(4, 4))
        let tags = bench.makeRows(1)
        let room = bench.session.room(for: bench.writer)
        let (must, may) = (
            bench.session.mustSplit(bench.writer), bench.session.mayStart(bench.writer)
        )
        #expect(room == 0 && must && may)
        let server = ScriptedServer()
        bench.writer.beginRecord(limit: recordPlaintextLimit)
        bench.session.writeControl(with: &bench.writer)
        bench.session.prepareParts(&bench.writer)
        let isWritten = bench.session.writeFirstPart(
            tags[0], of: bench.slab, with: &bench.writer)
        bench.writer.finish()
        let first = tokens(server.take(Array(bench.writer.record)))
        #expect(isWritten && first.isEmpty)
        _ = bench.outcomes(frame(8, stream: 1, [0, 0, 0, 100]))
        let second = tokens(server.take(bench.write([]).bytes))
        #expect(second == [ScriptedRun.token(0)])
    }

    @Test func `A request without response in time is given up, but not while it waits to be sent`()
    {
        var bench = standing()
        let tags = bench.makeRows(2)
        _ = bench.write([tags[0]], at: 1_000)
        _ = bench.write([tags[1]], at: 2_000)
        let timeout = bench.settings.requestTimeout
        let early = bench.expired(at: 1_000 + timeout)
        let waiting = bench.expired(at: 3_000 + timeout, waitingSince: 1_000)
        let partly = bench.expired(at: 3_000 + timeout, waitingSince: 2_000)
        let late = bench.expired(at: 3_000 + timeout)
        #expect(early == [] && waiting == [])
        #expect(partly == [.overdue(tags[0])] && late == [.overdue(tags[1])])
        let open = bench.session.openCount
        #expect(open == 0)
    }

    @Test func `Requests that expire together leave space for control frames`() {
        var bench = SessionBench { $0.streamsPerConnection = 3000 }
        _ = bench.session.start()
        // 3,000 streams, and a window for all their payloads.
        _ = bench.outcomes(
            frame(4, [0, 3, 0, 0, 0x0b, 0xb8]) + frame(8, [0, 0xff, 0xff, 0xff]))
        bench.slab = RowSlab(capacity: 3000)
        var tags = bench.makeRows(3000)
        for _ in 0..<3000 where !tags.isEmpty {
            tags.removeFirst(bench.write(Array(tags.prefix(500))).written)
        }
        #expect(tags.isEmpty)
        let late = 2 + bench.settings.requestTimeout
        var counts: [Int] = []
        for _ in 0..<3 {
            counts.append(bench.expired(at: late).count)
            _ = bench.write([])
        }
        // A frame has 13 bytes, and half of the space has 16,384.
        #expect(counts.allSatisfy { $0 <= 1261 } && counts.reduce(0, +) == 3000, "\(counts)")
        let outcomes = bench.outcomes(frame(6, [0, 0, 0, 0, 0, 0, 0, 0]))
        #expect(outcomes == [])
    }

    @Test func `A session is full at its own limit and at the reactor's`() {
        var bench = standing(setting(3, 2))
        let tags = bench.makeRows(2)
        _ = bench.write([tags[0]])
        let (one, two) = (bench.session.isFull(within: 1), bench.session.isFull(within: 2))
        _ = bench.write([tags[1]])
        let full = bench.session.isFull(within: 100)
        let pinged = bench.session.ping(7)
        let pending = bench.session.isFull(within: 100)
        #expect(one && !two && full && pinged && !pending)
    }

    @Test func `A violation is the last event of a session`() {
        var bench = standing()
        let outcomes = bench.outcomes(frame(0, stream: 1, [0]) + accepts(1))
        guard case .violation = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(outcomes.count == 1)
    }
}
