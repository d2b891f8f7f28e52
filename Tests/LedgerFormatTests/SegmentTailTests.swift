import BroadsideRows
import Testing

@testable import BroadsideLedgerFormat

/// What a follower takes from a segment that grows.
struct SegmentTailTests {
    private let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
    private let reader = Reader()

    /// Lends the buffer.
    private final class Reader {
        var reader = BlockReader()

        func scan(
            _ tail: inout SegmentTail, _ segment: LedgerSegment, upTo end: Int? = nil
        ) throws -> [ChunkReservation] {
            var found: [ChunkReservation] = []
            try tail.scan(
                segment, upTo: end.map(UInt64.init) ?? segment.bytes.byteCount,
                campaign: testCampaign, with: &reader
            ) { found.append($0) }
            return found
        }

        /// The rows of the blocks that are released and emitted, and whether there was one.
        func emit(
            _ tail: inout SegmentTail, _ segment: LedgerSegment, atMost limit: Int = .max
        ) throws -> (rows: [UInt64], isRead: Bool) {
            var rows: [UInt64] = []
            tail.release()
            let isRead = try tail.emit(
                segment, campaign: testCampaign, atMost: limit, with: &reader
            ) { _, record in
                if case .settled(let settled) = record { rows.append(settled.row) }
            }
            return (rows, isRead)
        }
    }

    private func settle(_ rows: Range<UInt64>) {
        for row in rows { draft.writer.settled(row: row, .rejected) }
        draft.write()
    }

    @Test func `Rows are emitted once a later record says that they were synced`() throws {
        var tail = SegmentTail(epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(0, 100), nowMilliseconds: testTime)
        draft.sync()
        settle(0..<10)
        #expect(try reader.scan(&tail, draft.segment) == [testChunk(0, 100)])
        #expect(try reader.emit(&tail, draft.segment).rows == [])
        let written = draft.bytes.count
        draft.sync()
        settle(10..<20)
        #expect(try reader.scan(&tail, draft.segment).isEmpty)
        tail.release()
        #expect(tail.durable == UInt64(written) && tail.hasRows)
        #expect(try reader.emit(&tail, draft.segment).rows == Array(0..<10))
        #expect(try !tail.hasRows && reader.emit(&tail, draft.segment).isRead == false)
        tail.noteSynced()
        #expect(try reader.emit(&tail, draft.segment).rows == Array(10..<20))
    }

    @Test func `Rows that a scan finds are not emitted before the next release`() throws {
        var tail = SegmentTail(epoch: 1, reactor: 0)
        settle(0..<10)
        _ = try reader.scan(&tail, draft.segment)
        tail.noteSynced()
        tail.release()
        // Their reservation may be in another segment, which was scanned before it was there.
        settle(10..<20)
        _ = try reader.scan(&tail, draft.segment)
        tail.noteSynced()
        var rows: [UInt64] = []
        func emit() throws -> Bool {
            try tail.emit(
                draft.segment, campaign: testCampaign, atMost: .max, with: &reader.reader
            ) { _, record in
                if case .settled(let settled) = record { rows.append(settled.row) }
            }
        }
        #expect(try emit() && !tail.hasRows && rows == Array(0..<10))
        tail.release()
        #expect(try emit() && rows == Array(0..<20))
    }

    @Test func `A block that is not whole yet is read by a later scan`() throws {
        var tail = SegmentTail(epoch: 1, reactor: 0)
        settle(0..<10)
        let whole = draft.bytes.count
        settle(10..<20)
        for end in [0, 20, 32, 40, whole - 1, whole, whole + 1, draft.bytes.count - 1] {
            let part = LedgerSegment(
                epoch: 1, reactor: 0, bytes: LedgerMemory(Array(draft.bytes[..<end])))
            _ = try reader.scan(&tail, part)
            #expect(tail.scanned == UInt64(end < whole ? 32 : whole), "\(end)")
        }
        _ = try reader.scan(&tail, draft.segment)
        tail.noteSynced()
        #expect(try reader.emit(&tail, draft.segment).rows == Array(0..<20))
    }

    @Test func `A durable length within a block emits only the blocks before it`() throws {
        var tail = SegmentTail(epoch: 1, reactor: 0)
        settle(0..<10)
        let whole = draft.bytes.count
        settle(10..<20)
        _ = try reader.scan(&tail, draft.segment)
        tail.noteDurable(UInt64(whole) + 24)
        #expect(try reader.emit(&tail, draft.segment).rows == Array(0..<10))
        #expect(try tail.hasRows && reader.emit(&tail, draft.segment).isRead == false)
        #expect(tail.emitted == UInt64(whole) && tail.damage(byteCount: 0) == nil)
        tail.noteDurable(UInt64(draft.bytes.count) + 1)
        #expect(tail.damage(byteCount: UInt64(draft.bytes.count))?.code == .missingTail)
    }

    @Test func `A follower that continues at a block gets the rows and times behind it`() throws {
        settle(0..<10)
        let place = draft.bytes.count
        for row in 10..<20 as Range<UInt64> {
            draft.writer.settled(row: row, .rejected, at: testTime + 5_000)
        }
        draft.write()
        var tail = SegmentTail(epoch: 1, reactor: 0, emitted: UInt64(place))
        _ = try reader.scan(&tail, draft.segment)
        tail.noteSynced()
        tail.release()
        var times: [UInt64] = []
        _ = try tail.emit(
            draft.segment, campaign: testCampaign, atMost: .max, with: &reader.reader
        ) { _, record in
            if case .settled(let settled) = record { times.append(settled.milliseconds) }
        }
        #expect(times == Array(repeating: testTime + 5_000, count: 10))
        for wrong in [place - 8, place + 8, draft.bytes.count + 8] {
            var other = SegmentTail(epoch: 1, reactor: 0, emitted: UInt64(wrong))
            _ = try reader.scan(&other, draft.segment)
            #expect(!other.isAtBlock, "\(wrong)")
        }
    }

    @Test func `A limit ends behind the block that reaches it`() throws {
        var tail = SegmentTail(epoch: 1, reactor: 0)
        for first in stride(from: 0, to: 100, by: 10) as StrideTo<UInt64> {
            settle(first..<first + 10)
        }
        _ = try reader.scan(&tail, draft.segment)
        tail.noteSynced()
        var rows: [UInt64] = []
        for count in [10, 20, 30, 40] {
            let found = try reader.emit(&tail, draft.segment, atMost: count - 5).rows
            #expect(found.count == count)
            rows += found
        }
        #expect(rows == Array(0..<100))
    }

    @Test func `A segment of another run is refused`() throws {
        settle(0..<10)
        var tail = SegmentTail(epoch: 2, reactor: 0)
        #expect(throws: LedgerError.self) { try reader.scan(&tail, draft.segment) }
    }
}

/// The file of a follower's cursor.
struct FollowCursorTests {
    private var cursor: FollowCursor {
        var cursor = FollowCursor(
            campaign: "0123456789abcdef", part: 3, format: .jsonl, states: ["failed", "accepted"],
            reasons: [])
        cursor.segments = ["segment-0001-00": 32, "segment-0002-11": 8_000_000]
        cursor.output = .init(byteCount: 77, tail: Array("the last rows\n".utf8))
        return cursor
    }

    @Test func `A cursor is read back as it was written`() {
        #expect(FollowCursor(decoding: cursor.encoded()) == cursor)
        #expect(cursor.states == ["accepted", "failed"])
        let other = FollowCursor.Output(byteCount: 77, tail: Array("the last row\n".utf8))
        #expect(cursor.output != other)
    }

    @Test(arguments: [
        ("\"version\" : 1", "\"version\" : 2"), ("segment-0001-00", "segment-1-0"),
        ("segment-0001-00\" : 32", "segment-0001-00\" : 31"), (" : 8000000", " : -1"),
        (" : 8000000", " : 18446744073709551615"), ("\"campaign\"", "\"campaigns\""), ("{", ""),
    ])
    func `A cursor with an impossible value, or of another version, is refused`(
        old: String, new: String
    ) {
        let text = String(decoding: cursor.encoded(), as: UTF8.self)
        let changed = text.replacing(old, with: new)
        #expect(changed != text)
        #expect(FollowCursor(decoding: Array(changed.utf8)) == nil)
    }
}
