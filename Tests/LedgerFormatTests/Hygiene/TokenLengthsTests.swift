import Testing

@testable import BroadsideHygiene

/// Lengths that give away that two rows are one.
@Suite struct TokenLengthsTests {
    private func glued(_ lengths: [Int]) -> TokenLengths.Glued? {
        var all = TokenLengths()
        for (index, length) in lengths.enumerated() { all.note(length, line: UInt64(index + 1)) }
        return all.glued
    }

    @Test func `A length counts as two tokens if both halves are usual lengths`() {
        let usual = Array(repeating: 64, count: 8)
        #expect(glued(usual) == nil && glued([]) == nil && glued([128]) == nil)
        #expect(
            glued(usual + [128, 128])
                == TokenLengths.Glued(line: 9, digits: 128, parts: [64, 64], rows: 2))
        // Three in eight are many.
        #expect(glued(usual + [128, 128, 128]) == nil)
        let nearly = Array(repeating: 64, count: 11) + [128, 128, 128]
        #expect(glued(nearly) == nil && glued([64] + nearly)?.rows == 3)
        #expect(glued(usual + [160]) == nil)
        let live = Array(repeating: 96, count: 4)
        #expect(
            glued(usual + live + [160, 128])
                == TokenLengths.Glued(line: 13, digits: 160, parts: [64, 96], rows: 1))
        #expect(glued([192] + live)?.line == 1)
        // A sum that is usual itself is a length of its own.
        #expect(glued(usual + Array(repeating: 128, count: 8)) == nil)
    }

    @Test func `Lengths that another list does not have are counted, with their first line`() {
        func lengths(_ lengths: [Int]) -> TokenLengths {
            var all = TokenLengths()
            for (index, length) in lengths.enumerated() {
                all.note(length, line: UInt64(index + 1))
            }
            return all
        }
        let list = lengths([64, 64, 160])
        #expect(lengths([64, 160, 64]).absent(from: list) == nil)
        #expect(lengths([]).absent(from: list) == nil)
        let damaged = lengths([64, 128, 62, 62])
        #expect(
            damaged.absent(from: list)
                == TokenLengths.Absent(digits: [62, 128], rows: 3, line: 2))
        #expect(
            damaged.absent(from: list, except: 128)
                == TokenLengths.Absent(digits: [62], rows: 2, line: 3))
        #expect(
            damaged.absent(from: list, includesRare: false)
                == TokenLengths.Absent(digits: [62], rows: 2, line: 3))
    }

    @Test func `A length of 64 digits or more counts as absent only if it is rare`() {
        func lengths(long: Int) -> TokenLengths {
            var all = TokenLengths()
            for line in 1...4_000 { all.note(line <= long ? 160 : 64, line: UInt64(line)) }
            return all
        }
        for (long, isNamed) in [(1, true), (4, true), (5, false), (1_000, false), (4_000, false)] {
            let absent = lengths(long: long).absent(from: lengths(long: 0))
            #expect(absent?.rows == (isNamed ? UInt64(long) : nil), "\(long)")
        }
    }
}
