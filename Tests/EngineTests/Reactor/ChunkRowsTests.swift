import BroadsideSupport
import Testing

@testable import BroadsideEngine

@Suite struct ChunkRowsTests {
    /// Lets so many rows a second be taken for a while, a millisecond at a time.
    private func after(_ rate: Int, milliseconds: Int) -> (rows: ChunkRows, now: UInt64) {
        var rows = ChunkRows(reactors: 1, perSecond: nil)
        var now = second
        var total = 0
        rows.adapt(now: now)
        for step in 1...milliseconds {
            now += millisecond
            rows.taken += rate * step / 1_000 - total
            rows.sent = rows.taken
            total = rate * step / 1_000
            rows.adapt(now: now)
        }
        return (rows, now)
    }

    @Test func `A chunk is a thirtieth of a second's work and grows as soon as more is taken`() {
        #expect(after(1_000, milliseconds: 200).rows.limit == 250)
        #expect(after(20_000, milliseconds: 1_000).rows.limit == 625)
        #expect(after(10, milliseconds: 1_000).rows.limit == ChunkRows.fewest)
        #expect(after(200_000, milliseconds: 40).rows.limit == 1_000)
        #expect(after(4_000_000, milliseconds: 1_000).rows.limit == ChunkRows.maximum)
    }

    @Test(
        arguments: [
            (1, nil, 250), (2, nil, 125), (4, nil, 62), (16, nil, 15), (100, nil, 2),
            (1_000, nil, 1),
            (1, 100, 16), (1, 3_200, 100), (4, 100, 16), (4, 40_000, 62), (64, 100, 3),
            (1, 1_000_000, 250),
        ] as [(Int, Int?, Int)])
    func
        `A slow run has no more than 1,000 rows reserved and not sent, however many reactors it has`(
            reactors: Int, rate: Int?, limit: Int
        )
    {
        var rows = ChunkRows(reactors: reactors, perSecond: rate)
        #expect(rows.limit == limit)
        // Rows that are held, the chunk in use and those ahead.
        #expect(
            reactors > 250 || reactors * (rows.aheadLimit + 3 * rows.limit) <= ChunkRows.slowRows)
        for quarter in 1...8 as ClosedRange<UInt64> { rows.adapt(now: quarter * second / 4) }
        #expect(rows.limit <= ChunkRows.fewest && rows.limit <= limit && rows.limit >= 1)
        #expect(rows.aheadLimit == rows.limit)
    }

    @Test func `A pause of seconds does not shrink chunks, and one of minutes does`() {
        var (rows, now) = after(256_000, milliseconds: 1_000)
        #expect(rows.limit == 8_000)
        func wait(seconds: UInt64) {
            for _ in 0..<(4 * seconds) {
                now += second / 4
                rows.adapt(now: now)
            }
        }
        wait(seconds: 4)
        #expect((2_000...4_000).contains(rows.limit))
        wait(seconds: 60)
        #expect(rows.limit == ChunkRows.fewest)
    }

    @Test(arguments: [(1_000, 2), (64_000, 2), (128_000, 4), (250_000, 7), (1_000_000, 8)])
    func `The chunks of a reactor are a thirtieth of a second's work together`(
        rate: Int, chunks: Int
    ) {
        // Known from what was taken lately, before a quarter of a second is over as well as after.
        for milliseconds in [50, 1_000] {
            let (rows, now) = after(rate, milliseconds: milliseconds)
            #expect(rows.chunksPerSync(requests: 1_000, now: now) == chunks)
        }
        // Rows that need no request make chunks larger, and not more: they wait for no sync.
        var passing = ChunkRows(reactors: 1, perSecond: nil)
        passing.taken = 1_000_000
        passing.adapt(now: second)
        #expect(passing.limit == ChunkRows.maximum)
        #expect(passing.chunksPerSync(requests: 1_000, now: second) == 2)
        // Few rows of each chunk are sent: more chunks share a sync.
        #expect(after(rate, milliseconds: 1_000).rows.chunksPerSync(requests: 3, now: second) == 8)
        // Nothing is known of a chunk before the first: others want rows, too.
        #expect(after(rate, milliseconds: 1_000).rows.chunksPerSync(requests: 0, now: second) == 2)
    }
}
