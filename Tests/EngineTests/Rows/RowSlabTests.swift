import Testing

@testable import BroadsideEngine
@testable import BroadsidePayloads

/// The places of rows that a reactor has in hand, and what they keep.
@Suite struct RowSlabTests {
    private static let piecesLimit = 2_000

    private func pieces(_ seed: Int, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
    }

    /// Takes a place for a row with a token of so many digits and so many bytes of pieces.
    private func take(
        _ slab: inout RowSlab, seed: Int, digits: Int, count: Int
    ) -> RowTag {
        let tag = slab.take()
        slab[tag].row = UInt64(seed)
        slab[tag].tokenCount = UInt8(digits)
        for place in 0..<digits {
            slab.token(tag).storeBytes(of: UInt8(seed & 255), toByteOffset: place, as: UInt8.self)
        }
        var shape = PayloadRenderer.Shape()
        shape.count = UInt16(count)
        slab.keep(pieces(seed, count: count).span.bytes, shape: shape, of: tag)
        return tag
    }

    /// Whether a row still has what was kept of it.
    private func isWhole(
        _ slab: borrowing RowSlab, _ tag: RowTag, seed: Int, digits: Int, count: Int
    ) -> Bool {
        let scratch = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.piecesLimit, alignment: 8)
        defer { scratch.deallocate() }
        let found = Array(slab.fieldValues(tag, scratch: scratch))
        return found == pieces(seed, count: count)
            && Array(slab.tokenBytes(tag)) == Array(repeating: UInt8(seed & 255), count: digits)
            && slab[tag].row == UInt64(seed)
    }

    /// Behind a token is room up to 200 bytes; a block holds 252.
    @Test(arguments: [0, 64, 199, 200])
    func `Payloads of any size are kept whole in a slab, and their memory is reused`(digits: Int) {
        let counts = [
            0, 1, 135, 136, 137, 199, 200, 201, 251, 252, 253, 387, 388, 389, 504, 640, 641, 1_999,
            2_000,
        ]
        let blocks = counts.reduce(0) { sum, count in
            sum + (max(0, count - (200 - digits)) + 251) / 252
        }
        var slab = RowSlab(
            capacity: counts.count, fieldValueByteCountMax: Self.piecesLimit, blockCount: blocks + 8
        )
        #expect(BlockArena.blocks(for: Self.piecesLimit) == 8)
        for round in 0..<4 {
            var tags: [RowTag] = []
            for (place, count) in counts.enumerated() {
                tags.append(take(&slab, seed: round * 40 + place, digits: digits, count: count))
            }
            #expect(Set(tags).count == counts.count)
            let (free, count, isFull) = (slab.blocks.freeCount, slab.count, slab.isFull)
            #expect(free == 8 && count == counts.count && isFull)
            for (place, count) in counts.enumerated() {
                let isWhole = isWhole(
                    slab, tags[place], seed: round * 40 + place, digits: digits, count: count)
                #expect(isWhole, "\(count) bytes behind \(digits) digits")
            }
            for place in round % 2 == 0 ? Array(tags.indices) : tags.indices.reversed() {
                slab.free(tags[place])
            }
            let (freed, left) = (slab.blocks.freeCount, slab.count)
            #expect(freed == blocks + 8 && left == 0)
        }
    }

    @Test func `A slab is full when a row of the largest size might not fit`() {
        var slab = RowSlab(capacity: 10, fieldValueByteCountMax: 500, blockCount: 4)
        #expect(BlockArena.blocks(for: 500) == 2)
        var fullness: [Bool] = []
        var tags: [RowTag] = []
        for seed in 0..<3 {
            fullness.append(slab.isFull)
            tags.append(take(&slab, seed: seed, digits: 200, count: 252))
        }
        fullness.append(slab.isFull)
        slab.free(tags[1])
        fullness.append(slab.isFull)
        #expect(fullness == [false, false, false, true, false])
        // A row's state is new each time, whoever had the place before.
        let tag = slab.take()
        let state = slab[tag]
        #expect(tag == tags[1] && state.row == 0 && state.firstBlock == .max)
    }

    @Test func `Queued rows keep their order, and one that is put back is first`() {
        var slab = RowSlab(capacity: 8)
        let tags = (0..<5).map { _ in slab.take() }
        var line = RowQueue()
        #expect(line.isEmpty)
        let none = line.popFirst(in: slab)
        #expect(none == nil)
        for _ in 0..<2 {
            for tag in tags[..<3] { line.append(tag, in: slab) }
            let first = line.popFirst(in: slab)
            #expect(line.count == 2 && first == tags[0])
            line.prepend(tags[0], in: slab)
            line.append(tags[3], in: slab)
            #expect(line.count == 4)
            var found: [RowTag] = []
            while let tag = line.popFirst(in: slab) { found.append(tag) }
            #expect(found == Array(tags[..<4]) && line.isEmpty && line.count == 0)
            // Into an empty line, from the front.
            line.prepend(tags[4], in: slab)
            line.append(tags[1], in: slab)
            let both = [line.popFirst(in: slab), line.popFirst(in: slab)]
            #expect(both == [tags[4], tags[1]])
            #expect(line.isEmpty)
        }
    }
}
