import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Rows that are read ahead of their sync, connections that are held to ten a second, and rows that go
/// from one reactor to another.
@Suite struct RowsAwaitingSyncTests {
    @Test func `Rows waiting for a sync leave in order with the position of their chunk`() {
        var slab = RowSlab(capacity: 64)
        var held = RowsAwaitingSync()
        var expected: [(tag: RowTag, position: UInt64)] = []
        func add(_ count: Int, at position: UInt64) {
            for _ in 0..<count {
                let tag = slab.take()
                held.append(tag, reservedAt: position, in: slab)
                expected.append((tag, position))
            }
        }
        func take(_ count: Int) {
            for _ in 0..<count {
                let (position, waiting) = (held.reservedAt, held.count)
                #expect(position == expected[0].position && waiting == expected.count)
                let tag = held.popFirst(in: slab)
                #expect(tag == expected[0].tag)
                slab.free(expected.removeFirst().tag)
            }
        }
        for round in 0..<30 as Range<UInt64> {
            add(3, at: round * 3)
            add(1, at: round * 3 + 1)
            take(2)
            add(2, at: round * 3 + 1)
            take(round % 2 == 0 ? expected.count : 1)
            if expected.count > 40 { take(expected.count) }
        }
        take(expected.count)
        let (position, tag, count) = (held.reservedAt, held.popFirst(in: slab), held.count)
        #expect(position == nil && tag == nil && count == 0)
    }

    @Test func `Ten connections begin in any second, and one that did not begin does not count`() {
        let connectRate = ConnectRateLimiter()
        let start = 1000 * second
        for number in 0..<10 as Range<UInt64> {
            #expect(connectRate.reserve(now: start + number) == nil)
        }
        #expect(connectRate.reserve(now: start + 10) == start + second)
        #expect(connectRate.reserve(now: start + second - 1) == start + second)
        #expect(connectRate.reserve(now: start + second) == nil)
        #expect(connectRate.reserve(now: start + second) == start + second + 1)
        connectRate.cancelReservation(now: start + second)
        #expect(connectRate.reserve(now: start + second) == nil)
        // A clock that was read a moment earlier does not bring the next one forward.
        #expect(connectRate.reserve(now: start + second + 1) == nil)
        #expect(connectRate.reserve(now: start + second) == start + second + 2)
    }

    private func row(_ number: UInt64, pieces: Int = 0) -> RowHandoff.Row {
        var state = PendingRow()
        state.row = number
        return RowHandoff.Row(
            state: state, token: [], fieldValues: [UInt8](repeating: 1, count: pieces))
    }

    @Test func `Rows are handed only to a reactor that can send`() {
        let exchange = RowHandoff(limit: 3)
        #expect(!exchange.put(row(1), from: 0) && exchange.room(for: 0) == 0)
        exchange.setReadiness(0, isReady: true)
        #expect(!exchange.put(row(1), from: 0) && exchange.room(for: 1) == 3)
        exchange.setReadiness(1, isReady: true)
        #expect(!exchange.hasRows && exchange.room(for: 0) == 3)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(exchange.put(row(number, pieces: 10), from: 0))
        }
        #expect(!exchange.put(row(4), from: 0) && exchange.room(for: 0) == 0)
        #expect(
            exchange.hasRows && exchange.counts.rows == 3 && exchange.counts.fieldValues == 30
                && !exchange.leave(1))
        var found: Set<UInt64> = []
        while let row = exchange.take() { found.insert(row.state.row) }
        #expect(found == [1, 2, 3] && !exchange.hasRows && exchange.counts.fieldValues == 0)
        exchange.setReadiness(1, isReady: false)
        #expect(!exchange.put(row(5), from: 0))
        exchange.setReadiness(1, isReady: true)
        #expect(exchange.leave(1) && !exchange.put(row(5), from: 0))
        #expect(exchange.room(for: 0) == 0)
    }

    @Test func `Payloads handed between reactors have a limit of their own`() {
        let exchange = RowHandoff(limit: 100)
        exchange.setReadiness(1, isReady: true)
        let half = RowHandoff.fieldValueByteCountMax / 2
        #expect(exchange.put(row(1, pieces: half), from: 0))
        #expect(!exchange.put(row(2, pieces: half + 1), from: 0))
        #expect(exchange.put(row(2, pieces: half), from: 0))
        #expect(!exchange.put(row(3, pieces: 1), from: 0) && exchange.put(row(3), from: 0))
        #expect(exchange.counts.rows == 3 && exchange.counts.fieldValues == 2 * half)
    }
}
