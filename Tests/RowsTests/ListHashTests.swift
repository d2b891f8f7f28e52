import BroadsidePrimitives
import BroadsideRows
import Testing

@Suite struct ListHashTests {
    private func hash(_ pieces: [ArraySlice<UInt8>]) -> String {
        var hash = ListHash()
        for piece in pieces { hash.append(Array(piece).span.bytes) }
        return hash.text()
    }

    /// As the page about the ledger's format says it.
    private func documented(_ bytes: [UInt8]) -> String {
        var value: UInt64 = 0
        for start in stride(from: 0, to: bytes.count, by: 65_536) {
            let block = Array(bytes[start..<min(start + 65_536, bytes.count)])
            let words = [value, MixingHash.hash(block.span.bytes)]
            let joined: [UInt8] = words.flatMap { (word: UInt64) in
                (0..<8).map { UInt8(truncatingIfNeeded: word >> (UInt64($0) * 8)) }
            }
            value = MixingHash.hash(joined.span.bytes)
        }
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 200_000])
    func `The list's hash is the documented one however the bytes arrive`(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 7) }
        let whole = hash([bytes[...]])
        #expect(whole == documented(bytes))
        for size in [1, 7, 4_096, 65_535, 65_536, 100_000] {
            let pieces = stride(from: 0, to: count, by: size).map {
                bytes[$0..<min($0 + size, count)]
            }
            #expect(hash(pieces) == whole, "pieces of \(size)")
        }
    }

    @Test func `The list's hash differs for each byte and length`() {
        let bytes = [UInt8](repeating: 0x61, count: 70_000)
        let whole = hash([bytes[...]])
        for place in [0, 65_535, 65_536, 69_999] {
            var other = bytes
            other[place] = 0x62
            #expect(hash([other[...]]) != whole)
        }
        #expect(hash([bytes.dropLast()]) != whole)
        #expect(hash([bytes + [0]][...].map { $0[...] }) != whole)
    }
}
