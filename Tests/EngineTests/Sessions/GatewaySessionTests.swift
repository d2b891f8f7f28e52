import BroadsideLegacyGateway
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// One connection to a legacy gateway, as the reactor sees it.
@Suite struct GatewaySessionTests {
    private static let silence = 5 * second

    private static func settings(
        _ command: BinaryCommand = .frame, expiration: UInt32? = nil
    ) -> BinarySettings {
        BinarySettings(
            command: command, expiration: expiration, priority: 10, silence: silence)
    }

    private func bench(capacity: Int = 10) -> SessionBench {
        SessionBench {
            $0.binary = Self.settings()
            $0.streamsPerConnection = capacity
        }
    }

    private func packet(_ status: UInt8, _ identifier: UInt32) -> [UInt8] {
        BinaryErrorPacket(status: status, identifier: identifier).encoded
    }

    @Test func `Identifiers of a gateway session count on after rows were settled`() {
        var connection = GatewaySession(Self.settings(), capacity: 3)
        var next: UInt32 = 0
        var expected: UInt32 = 0
        for round in 0..<20 {
            while connection.room > 0 {
                next += 1
                let identifier = connection.append(100 + next)
                #expect(identifier == next)
            }
            let (count, isSent) = (connection.count, connection.isOldestSent)
            #expect(count == 3 && (!isSent || round > 0))
            connection.markFlushed()
            var all: [RowTag] = []
            connection.forEach { all.append($0) }
            #expect(all == [98 + next, 99 + next, 100 + next])
            for _ in 0...(round % 3) {
                let (oldest, wasSent) = (connection.oldest, connection.isOldestSent)
                expected += 1
                let popped = connection.popOldest()
                #expect(oldest == 100 + expected && popped == oldest && wasSent)
            }
            let (first, following) = (connection.firstIdentifier, connection.nextIdentifier)
            #expect(first == expected + 1 && following == next + 1)
        }
        while connection.popOldest() != nil {}
        let (oldest, room) = (connection.oldest, connection.room)
        #expect(oldest == nil && room == 3)
    }

    @Test func `Only bytes from before an empty buffer count as taken by the kernel`() {
        var connection = GatewaySession(Self.settings(), capacity: 4)
        _ = connection.append(1)
        connection.markFlushed()
        _ = connection.append(2)
        let first = connection.isOldestSent
        _ = connection.popOldest()
        let second = connection.isOldestSent
        connection.markFlushed()
        let flushed = connection.isOldestSent
        #expect(first && !second && flushed)
    }

    @Test func `A gateway session starts at once with its capacity`() {
        var bench = bench(capacity: 3)
        let first = bench.session.start()
        let tags = bench.makeRows(5)
        let record = bench.write(tags)
        let (room, open, limit) = (
            bench.session.room(for: bench.writer), bench.session.openCount,
            bench.session.requestLimit
        )
        #expect(first == .ready(streams: nil))
        #expect(record.written == 3 && room == 0 && open == 3 && limit == 3)
        // Time makes room, whatever is received: it is looked at in every turn.
        let isFull = bench.session.isFull(within: 3)
        #expect(!isFull)
    }

    @Test(arguments: [BinaryCommand.simple, .enhanced, .frame], [nil, 7 as UInt32?])
    func `A notification is written in each command's form`(
        command: BinaryCommand, expiration: UInt32?
    ) {
        var bench = SessionBench { $0.binary = Self.settings(command, expiration: expiration) }
        let tags = bench.makeRows(2)
        let bytes = bench.write([tags[1]]).bytes
        let token = [UInt8](repeating: 0, count: 31) + [1]
        let payload = Array(#"{"aps":{}}"#.utf8)
        func item(_ number: UInt8, _ value: [UInt8]) -> [UInt8] {
            [number, 0, UInt8(value.count)] + value
        }
        let counted = [0, 32] + token + [0, UInt8(payload.count)] + payload
        let expiry: [UInt8]? = expiration.map { [0, 0, 0, UInt8($0)] }
        let expected: [UInt8]
        switch command {
        case .simple: expected = [0] + counted
        case .enhanced:
            expected = [1, 0, 0, 0, 1] + (expiry ?? [0x7f, 0xe8, 0x17, 0x7f]) + counted
        case .frame:
            let items =
                item(1, token) + item(2, payload) + item(3, [0, 0, 0, 1])
                + (expiry.map { item(4, $0) } ?? []) + item(5, [10])
            expected = [2, 0, 0, 0, UInt8(items.count)] + items
        }
        #expect(bytes == expected)
    }

    @Test func `An error packet settles earlier rows and resends later ones`() {
        var bench = bench()
        let tags = bench.makeRows(5)
        _ = bench.write(tags)
        let word = BinaryErrorPacket(status: 8, identifier: 3)
        let outcomes = bench.outcomes(word.encoded + [1, 2, 3])
        #expect(
            outcomes == [
                .errorPacket(word, .inFlight), .confirmed(tags[0]), .confirmed(tags[1]),
                .refused(tags[2], word), .discarded(tags[3]), .discarded(tags[4]), .over,
            ])
        let open = bench.session.openCount
        #expect(open == 0)
    }

    @Test func `A shutdown packet names the last row that was taken`() {
        var bench = bench()
        let tags = bench.makeRows(3)
        _ = bench.write(tags)
        let outcomes = bench.outcomes(packet(10, 2)).dropFirst()
        #expect(
            outcomes == [.confirmed(tags[0]), .confirmed(tags[1]), .discarded(tags[2]), .over])
    }

    @Test(arguments: [0, 4, 1000] as [UInt32])
    func `An error packet without a known identifier leaves all rows to the reactor`(
        identifier: UInt32
    ) {
        var bench = bench()
        let tags = bench.makeRows(3)
        _ = bench.write(tags)
        let bytes = packet(1, identifier)
        var offset = 0
        let first = bench.session.nextOutcome(
            in: bytes.span.bytes, at: &offset, firstUnsent: .max)
        let word = BinaryErrorPacket(status: 1, identifier: identifier)
        #expect(first == .errorPacket(word, .nothing))
        var lost: [RowTag] = []
        while let request = bench.session.takeInFlight() { lost.append(request.tag) }
        let next = bench.session.nextOutcome(
            in: bytes.span.bytes, at: &offset, firstUnsent: .max)
        #expect(lost == tags && next == .over)
    }

    @Test func `A row that never left our buffer cannot be named`() {
        var bench = bench()
        let tags = bench.makeRows(2)
        _ = bench.write(tags)
        var other = self.bench()
        let others = other.makeRows(2)
        _ = other.write(others)
        let word = BinaryErrorPacket(status: 8, identifier: 2)
        let unsent = bench.outcomes(word.encoded, firstUnsent: 2).first
        let sent = other.outcomes(word.encoded, firstUnsent: 3).first
        #expect(unsent == .errorPacket(word, .nothing) && sent == .errorPacket(word, .inFlight))
    }

    @Test(arguments: [(8, 2, 1), (8, 1, 2), (10, 2, 0), (10, 1, 1)] as [(UInt8, UInt32, Int)])
    func `An error packet about a row settled by silence counts the rows that it refutes`(
        status: UInt8, identifier: UInt32, refuted: Int
    ) {
        var bench = bench()
        let tags = bench.makeRows(4)
        _ = bench.write([tags[0], tags[1]], at: 100)
        _ = bench.write([tags[2], tags[3]], at: 200)
        let settled = bench.expired(at: 101 + Self.silence)
        let word = BinaryErrorPacket(status: status, identifier: identifier)
        let outcomes = bench.outcomes(word.encoded)
        #expect(settled == [.confirmed(tags[0]), .confirmed(tags[1])])
        #expect(
            outcomes == [
                .errorPacket(word, .settled(refuted: refuted)), .discarded(tags[2]),
                .discarded(tags[3]), .over,
            ])
    }

    @Test func `An error packet may arrive in pieces, and its first byte ends the silence`() {
        var bench = bench()
        let tags = bench.makeRows(1)
        _ = bench.write(tags, at: 100)
        let bytes = packet(8, 1)
        let pieces = [bench.outcomes([bytes[0]]), bench.outcomes(Array(bytes[1..<5]))]
        let late = bench.expired(at: 101 + Self.silence, phaseSince: Self.silence)
        let rest = bench.outcomes([bytes[5]])
        #expect(pieces == [[.errorPacketBegan], []] && late == [])
        #expect(rest.dropFirst() == [.refused(tags[0], .init(status: 8, identifier: 1)), .over])
    }

    @Test func `Bytes that are not an error packet are reported as such`() {
        var bench = bench()
        let outcomes = bench.outcomes([9, 1, 2, 3, 4, 5])
        #expect(outcomes == [.unreadable])
    }

    @Test func `Silence counts from the write of what the kernel has`() {
        var bench = bench()
        let tags = bench.makeRows(2)
        _ = bench.write([tags[0]], at: 100)
        let waiting = bench.expired(at: 1_000 + Self.silence, waitingSince: 100)
        let early = bench.expired(at: 100 + Self.silence)
        _ = bench.write([tags[1]], at: 150)
        // The second was not there when the buffer was empty last.
        let first = bench.expired(at: 200 + Self.silence, waitingSince: 150)
        let second = bench.expired(at: 200 + Self.silence)
        #expect(waiting == [] && early == [])
        #expect(first == [.confirmed(tags[0])] && second == [.confirmed(tags[1])])
    }

    @Test func `A gateway that stops reading gets time to send an error packet`() {
        var bench = bench()
        let tags = bench.makeRows(1)
        _ = bench.write(tags, at: 100)
        let may = bench.session.handleUnwritable()
        let limit = 1_000 + GatewaySession.brokenLimit
        let early = bench.expired(at: limit, phaseSince: 1_000)
        let late = bench.expired(at: limit + 1, phaseSince: 1_000)
        #expect(may && early == [] && late == [.unexplained])
        let outcomes = bench.outcomes(packet(10, 1)).dropFirst()
        #expect(outcomes == [.confirmed(tags[0]), .over])
    }
}
