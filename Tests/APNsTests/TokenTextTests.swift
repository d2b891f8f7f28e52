import Testing

@testable import BroadsideAPNs

@Suite struct TokenTextTests {
    static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

    @Test
    func
        `Upper case, surrounding blanks and angle brackets are canonicalized to lower-case digits`()
    {
        #expect(canonical(Self.token) == Self.token)
        #expect(canonical(Self.token.uppercased()) == Self.token)
        #expect(canonical("  \t\(Self.token)\r") == Self.token)
        #expect(canonical("<00FC13ad ff785122>") == "00fc13adff785122")
        #expect(canonical(" < 00fc 13ad\t> \r") == "00fc13ad")
        #expect(canonical("ab") == "ab")
        #expect(
            canonical(String(repeating: "aB", count: 100)) == String(repeating: "ab", count: 100))
    }

    @Test
    func
        `Text with an odd number of digits, other characters or more than 200 digits is not a token`()
    {
        for text in [
            "", " ", "a", "abc", "ag", "00 11", "<>", "<a>", "<aabb", "aabb>", "<<aabb>>", "aa<bb>",
            "0x00", "é0", String(repeating: "ab", count: 100) + "cd",
            String(repeating: "a", count: 201), "<" + String(repeating: "ab ", count: 101) + ">",
        ] {
            #expect(canonical(text) == nil, "\(text)")
        }
    }

    /// Each byte in each place of a 64-digit token: the fast path must agree with a plain table.
    @Test
    func
        `Canonicalizing a 64-digit token accepts a byte at each offset exactly if it is a hex digit`()
    {
        for byte in UInt8.min...UInt8.max {
            for place in [0, 1, 31, 32, 62, 63] {
                var text = Array(Self.token.utf8)
                text[place] = byte
                var isToken = false
                let digits = written(TokenText.maximumDigitCount) { output in
                    isToken = TokenText.canonicalize(text.span.bytes, into: &output)
                }
                let character = Character(Unicode.Scalar(byte))
                let isDigit = byte < 128 && character.isHexDigit
                #expect(isToken == isDigit, "byte \(byte) at \(place)")
                if isDigit { #expect(digits[place] == character.lowercased().utf8.first) }
            }
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `A random token of any length is canonicalized whatever its case, blanks and brackets`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let count = 2 * Int.random(in: 1...100, using: &random)
            let digits = (0..<count).map { _ in
                Array("0123456789abcdef").randomElement(using: &random)!
            }
            let text = digits.map { Bool.random(using: &random) ? $0.uppercased() : String($0) }
            let padded = " " + text.joined() + (Bool.random(using: &random) ? "\r" : "\t ")
            #expect(canonical(padded) == String(digits))
            #expect(canonical("<" + text.joined(separator: " ") + ">") == String(digits))
        }
    }

    /// These values are on disk in ledgers: they never change.
    @Test func `The fingerprints of known tokens on disk never change`() {
        #expect(hash("") == 0xd96f_ad15_02d1_f430)
        #expect(hash("ab") == 0x05ab_5ca3_44c6_a6b8)
        #expect(hash(Self.token) == 0x1c4e_0098_9924_eaf4)
        #expect(hash(Self.token + Self.token + "0123456789abcdef") == 0xf091_b67c_0632_f89f)
    }

    @Test func `The fingerprint changes with each digit and with the number of digits`() {
        var random = SeededGenerator(seed: 1)
        var seen: Set<UInt64> = []
        var tokens = 0
        for count in stride(from: 2, through: 200, by: 2) {
            var token = (0..<count).map { _ in
                Array("0123456789abcdef".utf8).randomElement(using: &random)!
            }
            seen.insert(TokenText.fingerprint(token.span.bytes))
            tokens += 1
            for place in 0..<count {
                let before = token[place]
                token[place] = before == 0x30 ? 0x31 : 0x30
                seen.insert(TokenText.fingerprint(token.span.bytes))
                tokens += 1
                token[place] = before
            }
        }
        for count in 0...64 {
            seen.insert(hash(String(repeating: "0", count: count)))
            tokens += 1
        }
        #expect(seen.count == tokens)
    }

    /// One changed bit of the input changes about half of the output's bits.
    @Test func `One changed input bit changes about half of a fingerprint's bits`() {
        var random = SeededGenerator(seed: 2)
        var changed = 0
        let rounds = 4_000
        for _ in 0..<rounds {
            var bytes = (0..<64).map { _ in UInt8.random(in: 0x30...0x39, using: &random) }
            let before = TokenText.fingerprint(bytes.span.bytes)
            bytes[Int.random(in: 0..<64, using: &random)] ^=
                1 << UInt8.random(in: 0...2, using: &random)
            changed += (before ^ TokenText.fingerprint(bytes.span.bytes)).nonzeroBitCount
        }
        let mean = Double(changed) / Double(rounds)
        #expect(mean > 31 && mean < 33)
    }

    @Test func `A shortened token shows at most its first eight digits`() {
        let bytes = Array(Self.token.utf8)
        let long = TokenText.shortened(bytes.span.bytes)
        #expect(long == "00fc13ad…")
        let four = Array(bytes[..<4])
        let short = TokenText.shortened(four.span.bytes)
        #expect(short == "00fc")
    }
}
