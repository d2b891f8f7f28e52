import Testing

@testable import BroadsideHTTP2

@Suite struct StreamTableTests {
    /// A table starts small and grows with what is open; each stream keeps what it knew.
    @Test func `A stream table grows with the open streams, and each keeps its tag`() {
        var table = StreamTable(limit: 1_000)
        #expect(table.slotCount == 256)
        // Most end at once, and so the ring goes round without growing.
        for tag in 0..<1_000 {
            let slot = table.open(tag: UInt32(tag), payloadCount: 10, sentCount: 10)
            if tag % 100 != 0 { table.close(slot: slot, .closedByServer) }
        }
        #expect(table.slotCount == 256 && table.openCount == 10)
        for tag in 1_000..<1_990 {
            _ = table.open(tag: UInt32(tag), payloadCount: tag, sentCount: 1)
        }
        #expect(table.slotCount == 2_048 && table.openCount == 1_000)
        var tags: [UInt32] = []
        for id in stride(from: UInt32(1), to: table.nextID, by: 2) {
            guard case .open(let slot) = table.lookUp(id) else { continue }
            #expect(table[slot].id == id)
            tags.append(table[slot].tag)
        }
        #expect(tags == stride(from: 0, to: 1_000, by: 100).map { $0 } + Array(1_000..<1_990))
        #expect(table.oldestSlot().map { table[$0].tag } == 0)
    }

    /// The ids that are left are reckoned with the largest ring from the start.
    @Test func `A growing table takes exactly one stream ID for each stream`() {
        var table = StreamTable(limit: 500)
        for tag in 0..<500 {
            let before = table.remainingIDs
            _ = table.open(tag: UInt32(tag), payloadCount: 0, sentCount: 0)
            #expect(table.remainingIDs == before - 1)
        }
    }
}
