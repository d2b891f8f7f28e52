import BroadsideSupport
import Testing

@testable import BroadsideSimulator

/// The fates of a few tokens with 10 % bad and 30 % unregistered, computed in Python:
///
///     h = splitmix64(int.from_bytes(token[:8].ljust(8, b"\0"), "big") ^ seed); u = h / 2**64
@Suite struct TokenOutcomeTests {
    struct Case: Sendable {
        let token: String
        let seed: UInt64
        let status: UInt16
        let timestamp: UInt64

        init(_ token: String, _ seed: UInt64, _ status: UInt16, _ timestamp: UInt64) {
            self.token = token
            self.seed = seed
            self.status = status
            self.timestamp = timestamp
        }
    }

    static let cases = [
        Case(
            "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0", 7, 410,
            1_700_012_689_224),
        Case("ab", 7, 200, 0),
        Case("0011", 0, 410, 1_700_060_947_802),
        Case("0011", 7, 200, 0),
        Case("0011", 9_223_372_036_854_775_813, 410, 1_700_025_548_281),
        Case("abcdef", 7, 200, 0),
        Case("ABCDEF", 7, 200, 0),
        Case("0123456789abcdef", 0, 400, 0),
        Case("0123456789abcdef", 7, 400, 0),
        Case("ffffffffffffffff00", 7, 200, 0),
        Case(
            "bde201825045e4da32da5e96796b9d3078e6452f2969cccdc2710c83869ecb79", 0, 410,
            1_700_051_748_274),
        Case(
            "bde201825045e4da32da5e96796b9d3078e6452f2969cccdc2710c83869ecb79", 7, 410,
            1_700_047_648_627),
        Case("67885128a658859f8416d703d065ead4b6fe43878b932b10d3bd3e0f658a2009", 7, 400, 0),
        Case(
            "67885128a658859f8416d703d065ead4b6fe43878b932b10d3bd3e0f658a2009",
            9_223_372_036_854_775_813, 410, 1_700_081_847_099),
        Case("1d4442f505ef5204154be9d8ee7055af82b62300df0ba836540ab03541a252ed", 7, 400, 0),
    ]

    @Test func `The generator starts with the published value`() {
        #expect(splitmix64(0) == 0xe220_a839_7b1d_cdaf)
    }

    @Test(arguments: cases) func `The outcome of a token is the computed one`(_ one: Case) throws {
        let fate = TokenOutcome(badToken: 0.1, unregistered: 0.3, seed: one.seed)
        let head = try #require(
            Array(one.token.utf8).withBytes { TokenOutcome.head(ofDigits: $0) })
        let answer = fate.response(head: head)
        #expect(answer.status == one.status)
        #expect(answer.timestampMilliseconds == one.timestamp)
    }

    /// As counted in Python over the same hundred thousand tokens.
    @Test func `The shares of outcomes over 100,000 tokens are those counted in Python`() {
        let fate = TokenOutcome(badToken: 0.001, unregistered: 0.01, seed: 7)
        var counts: [UInt16: Int] = [:]
        for number in UInt64(0)..<100_000 {
            counts[fate.response(head: number.byteSwapped).status, default: 0] += 1
        }
        #expect(counts == [200: 98_916, 400: 88, 410: 996])
    }

    @Test(arguments: ["", "a", "abc", "xy", "00g0", String(repeating: "a", count: 202)])
    func `Text that is not a token has no head`(_ text: String) {
        #expect(Array(text.utf8).withBytes { TokenOutcome.head(ofDigits: $0) } == nil)
    }

    @Test func `A token of 200 digits has a head`() {
        let digits = [UInt8](repeating: UInt8(ascii: "f"), count: 200)
        #expect(digits.withBytes { TokenOutcome.head(ofDigits: $0) } == .max)
    }
}
