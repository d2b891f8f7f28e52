import BroadsidePrimitives
import BroadsideTestSupport
import Testing

@Suite struct ByteScanTests {
    /// Few different bytes, among them both ends of each range that means something.
    private static let alphabet: [UInt8] = [
        0x00, 0x0a, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x2c, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xc3, 0xff,
    ]

    private static func isPlain(_ byte: UInt8) -> Bool {
        let special: [UInt8] = [0x22, 0x5c]
        return (0x20..<0x80).contains(byte) && !special.contains(byte)
    }

    private static func text(_ random: inout SeededRandom) -> [UInt8] {
        let count = Int.random(in: 0...80, using: &random)
        // Mostly a letter, so that what is found lies in any vector and behind the last one.
        return (0..<count).map { _ in
            Int.random(in: 0..<12, using: &random) == 0
                ? alphabet.randomElement(using: &random)! : 0x61
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `The first of two bytes is found at any offset`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let text = Self.text(&random)
        let (one, other) = (
            Self.alphabet.randomElement(using: &random)!,
            Self.alphabet.randomElement(using: &random)!
        )
        for start in 0...text.count {
            for end in start...text.count {
                let expected = text[start..<end].firstIndex { $0 == one || $0 == other } ?? end
                let found = ByteScan.first(
                    one, or: other, in: text.span.bytes, from: start, to: end)
                #expect(found == expected)
            }
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `A scan of plain ASCII ends at quotes, backslashes, control and other characters`(
        seed: UInt64
    ) {
        var random = SeededRandom(seed: seed)
        let text = Self.text(&random)
        for start in 0...text.count {
            let expected = text[start...].firstIndex { !Self.isPlain($0) } ?? text.count
            #expect(ByteScan.endOfPlainASCII(in: text.span.bytes, from: start) == expected)
        }
    }

    @Test func `Each byte is classified in a vector and behind the last one`() {
        for count in [16, 1] {
            for byte in UInt8.min...UInt8.max {
                let text = [UInt8](repeating: byte, count: count)
                #expect(
                    ByteScan.endOfPlainASCII(in: text.span.bytes, from: 0)
                        == (Self.isPlain(byte) ? count : 0))
                #expect(
                    ByteScan.first(byte, or: byte, in: text.span.bytes, from: 0, to: count) == 0)
                #expect(
                    ByteScan.first(~byte, or: ~byte, in: text.span.bytes, from: 0, to: count)
                        == count)
            }
        }
    }
}
