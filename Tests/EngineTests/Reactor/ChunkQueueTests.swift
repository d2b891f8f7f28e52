import BroadsideLists
import BroadsideRows
import Testing

@testable import BroadsideEngine

@Suite struct ChunkQueueTests {
    /// A queue in which chunks of 100 rows wait, none of them reserved.
    private func waiting(_ chunks: Int, selection: RowSelection = .all) throws -> ChunkQueue {
        let text = (0..<100 * chunks).map { ScriptedRun.token($0) + "\n" }.joined()
        let pool = ChunkPool(reactors: 1)
        let source = try ListSource(
            list: TokenList(lines: Array(text.utf8)), pool: pool, plan: nil,
            selection: ListSelection(rows: CampaignRows(selection: selection, limit: nil)))
        var queue = ChunkQueue(pool: pool, layout: .lines)
        for _ in 0..<chunks {
            queue.willRequest()
            queue.put(try #require(try source.next(rowLimit: 100 / Int(selection.divisor))))
        }
        return queue
    }

    /// The numbers of the next rows, at most so many.
    private func take(_ limit: Int = .max, of queue: inout ChunkQueue) -> [UInt64] {
        var numbers: [UInt64] = []
        while numbers.count < limit, let row = queue.nextRow() { numbers.append(row.number) }
        return numbers
    }

    @Test
    func `A reserved chunk comes into use, and its rows wait until the reservation is synced`()
        throws
    {
        var queue = try waiting(3)
        let beforeAll = (queue.hasRow(syncedPosition: .max), take(of: &queue))
        #expect(!beforeAll.0 && beforeAll.1.isEmpty)
        let first = queue.firstUnreserved?.reservation.firstRow
        queue.markReserved(at: 70)
        let second = queue.firstUnreserved?.reservation.firstRow
        #expect(first == 0 && second == 100)
        let isReady = (queue.hasRow(syncedPosition: 69), queue.hasRow(syncedPosition: 70))
        #expect(isReady == (false, true))
        let rows = take(of: &queue)
        #expect(rows == Array(0..<100))
        queue.markReserved(at: 140)
        queue.markReserved(at: 210)
        let next = take(1, of: &queue)
        let (position, reserved) = (queue.reservedAt, queue.reservedCount)
        let (isAllReserved, broken) = (queue.firstUnreserved == nil, queue.brokenInvariant)
        #expect(next == [100] && position == 140 && reserved == 1 && isAllReserved)
        #expect(broken == nil)
    }

    @Test func `A stop names the unsent rows of reserved chunks, and none of the others`() throws {
        var queue = try waiting(4)
        queue.markReserved(at: 70)
        queue.markReserved(at: 140)
        _ = take(30, of: &queue)
        var ranges: [Range<UInt64>] = []
        while let range = queue.takeUnsentRange() {
            ranges.append(range.firstRow..<range.firstRow + UInt64(range.count))
        }
        #expect(ranges == [30..<100, 100..<200])
        let (ahead, reserved) = (queue.aheadCount, queue.reservedCount)
        #expect(ahead == 0 && reserved == 0)
    }

    @Test func `Unsent rows of a stop keep their attempts of earlier runs`() throws {
        var queue = try waiting(1)
        var dispositions = [RowDisposition](repeating: .send, count: 100)
        dispositions[50] = .settled
        queue.firstUnreserved?.dispositions = dispositions
        queue.firstUnreserved?.attempts = (0..<100).map { $0 < 20 ? 3 : $0 == 60 ? 1 : 0 }
        queue.markReserved(at: 70)
        _ = take(10, of: &queue)
        var ranges: [Range<UInt64>] = []
        var attempts: [UInt16] = []
        while let range = queue.takeUnsentRange() {
            ranges.append(range.firstRow..<range.firstRow + UInt64(range.count))
            attempts.append(range.attempts)
        }
        #expect(ranges == [10..<20, 20..<50, 51..<60, 60..<61, 61..<100])
        #expect(attempts == [3, 0, 0, 1, 0])
    }

    @Test func `Rows of other parts are skipped and counted`() throws {
        var queue = try waiting(2, selection: RowSelection(divisor: 20, remainder: 7))
        queue.markReserved(at: 70)
        queue.markReserved(at: 140)
        let rows = take(of: &queue)
        #expect(rows == Array(stride(from: 7, to: 200, by: 20)))
        let passedOver = (queue.takeSettledBefore(), queue.takeSettledBefore())
        #expect(passedOver == (190, 0))
    }

    @Test func `A chunk with nothing left to do is skipped as a whole`() throws {
        var queue = try waiting(1, selection: RowSelection(divisor: 100, remainder: 7))
        queue.firstUnreserved?.dispositions = Array(repeating: .settled, count: 100)
        queue.markReserved(at: 70)
        let (rows, passedOver) = (take(of: &queue), queue.takeSettledBefore())
        #expect(rows.isEmpty && passedOver == 100)
        queue.markEnded()
        let isExhausted = queue.isExhausted
        #expect(isExhausted)
    }

    @Test func `Requests are expected until a chunk needs none, and again from the first one on`()
        throws
    {
        var queue = try waiting(4)
        for position in 1...4 as ClosedRange<UInt64> { queue.markReserved(at: position) }
        // Nothing is known before the first chunk was read.
        let atFirst = (queue.expectsRequests, queue.requestsPerChunk)
        #expect(atFirst == (true, 100))
        for row in take(100, of: &queue) where row % 10 == 0 { queue.countRequest() }
        // The first row of the second chunk, which has none.
        _ = take(1, of: &queue)
        let afterFirst = (queue.expectsRequests, queue.requestsPerChunk)
        #expect(afterFirst == (true, 10))
        _ = take(100, of: &queue)
        let afterSecond = (queue.expectsRequests, queue.requestsPerChunk)
        #expect(afterSecond == (false, 1))
        for _ in 1...3 { queue.countRequest() }
        let inThird = (queue.expectsRequests, queue.requestsPerChunk)
        #expect(inThird == (true, 3))
    }

    @Test func `A row keeps what an earlier run left to do with it, and its attempts`() throws {
        for hasAttempts in [true, false] {
            var queue = try waiting(1)
            var dispositions = [RowDisposition](repeating: .settled, count: 100)
            dispositions[30] = .sendAgain
            dispositions[99] = .send
            queue.firstUnreserved?.dispositions = dispositions
            if hasAttempts { queue.firstUnreserved?.attempts = (0..<100).map { 10 * $0 } }
            queue.markReserved(at: 70)
            let (first, second, third) = (queue.nextRow(), queue.nextRow(), queue.nextRow())
            #expect(first?.number == 30 && first?.disposition == .sendAgain)
            #expect(second?.number == 99 && second?.disposition == .send)
            #expect(first?.attempts == (hasAttempts ? 300 : 0))
            #expect(second?.attempts == (hasAttempts ? 990 : 0))
            #expect(third == nil)
        }
    }
}
