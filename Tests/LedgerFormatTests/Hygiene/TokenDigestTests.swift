import BroadsideHygiene
import Testing

/// Digests that stand for tokens where later copies of one are looked for.
@Suite struct TokenDigestTests {
    private func digest(_ text: String) -> TokenDigest {
        TokenDigest(Array(text.utf8).span.bytes)
    }

    @Test func `Tokens that differ anywhere have digests that differ in both halves`() {
        let token = Array(String(repeating: "0123456789abcdef", count: 6) + "01234")
        for count in [1, 7, 8, 9, 15, 16, 63, 64, 65, 96, 101] {
            let text = String(token.prefix(count))
            var texts: Set = [text, text + "0", "0" + text]
            for place in 0..<count {
                for other in ["f", "e", "0"] as [Character] where token[place] != other {
                    var changed = token.prefix(count)
                    changed[place] = other
                    texts.insert(String(changed))
                }
                if place > 0, token[place] != token[place - 1] {
                    var swapped = token.prefix(count)
                    swapped.swapAt(place, place - 1)
                    texts.insert(String(swapped))
                }
            }
            let all = texts.map(digest)
            #expect(texts.map(digest) == all)
            #expect(Set(all.map(\.high)).count == all.count, "\(count)")
            #expect(Set(all.map(\.low)).count == all.count, "\(count)")
        }
    }

    @Test func `Many tokens have as many digests with independent halves`() {
        let all = (0..<20_000).map { digest(testToken($0)) }
        #expect(Set(all.map(\.high)).count == all.count && Set(all.map(\.low)).count == all.count)
        #expect(all.allSatisfy { $0.high != $0.low })
        // Each bit of the other half is set in about half of them.
        for bit in 0..<64 as Range<UInt64> {
            let count = all.count { $0.low >> bit & 1 == 1 }
            #expect(count > 9_000 && count < 11_000, "bit \(bit)")
        }
    }
}
