import Testing

@testable import BroadsideEngine

/// Where the rows that a reactor has in hand lie: they are written for each notification, several
/// times, so no cache line of theirs may hold anything of another reactor's.
@Suite struct RowLayoutTests {
    private static let lineSize = 64
    private static let capacity = 16

    /// The cache lines of all places of a slab.
    private func lines(_ slab: inout RowSlab) -> Set<UInt> {
        var lines: Set<UInt> = []
        for _ in 0..<Self.capacity {
            let tag = slab.take()
            let start = UInt(bitPattern: slab.token(tag)) - UInt(RowSlab.tokenOffset)
            #expect(start % UInt(Self.lineSize) == 0, "a place begins within a line")
            for offset in stride(from: 0, to: RowSlab.slotByteCount, by: Self.lineSize) {
                let line = (start + UInt(offset)) / UInt(Self.lineSize)
                let isNew = lines.insert(line).inserted
                #expect(isNew, "two places share a line")
            }
        }
        return lines
    }

    @Test func `A slab's slots are whole cache lines, and two reactors share none`() {
        var one = RowSlab(capacity: Self.capacity)
        var other = RowSlab(capacity: Self.capacity)
        #expect(RowSlab.slotByteCount % Self.lineSize == 0)
        let (ours, theirs) = (lines(&one), lines(&other))
        #expect(ours.isDisjoint(with: theirs))
    }

    @Test func `All of a pending row but its token is in its first cache line`() {
        #expect(MemoryLayout<PendingRow>.size <= RowSlab.tokenOffset)
        #expect(RowSlab.tokenOffset <= Self.lineSize)
    }
}
