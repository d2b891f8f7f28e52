import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

@Suite struct DeadTokensTests {
    private let monday = testTime
    private let tuesday = testTime + 86_400_000

    private func dead(_ token: String, at time: UInt64, died: UInt64? = nil) -> TestVerdict {
        TestVerdict(
            token: token, state: .rejected, reason: .unregistered, settledAt: time,
            timestamp: died)
    }

    /// Since when ledgers say that the token is dead.
    private func death(
        _ ledgers: [VerdictLedger], reasons: Set<Reason> = [.unregistered, .expiredToken]
    ) throws -> UInt64? {
        let tokens = try deadTokens(ledgers, reasons: reasons)
        return diedAt(token, tokens)
    }

    private let token = testToken(1)

    @Test func `The newest verdict of a token counts, whatever the order of ledgers`() throws {
        let died = verdictLedger([dead(token, at: monday, died: 5)])
        let lives = verdictLedger([TestVerdict(token: token, settledAt: tuesday)])
        let livedBefore = verdictLedger([TestVerdict(token: token, settledAt: monday - 1)])
        for ledgers in [[died, lives], [lives, died], [died, lives, livedBefore]] {
            #expect(try death(ledgers) == nil)
        }
        for ledgers in [[died], [died, livedBefore], [livedBefore, died]] {
            #expect(try death(ledgers) == 5)
        }
        let sameInstant = verdictLedger([TestVerdict(token: token, settledAt: monday)])
        #expect(try death([died, sameInstant]) == nil)
    }

    @Test(arguments: [1, 16])
    func `A legacy gateway's acceptance by silence saves no token, and its refusals count`(
        attempts: Int
    ) throws {
        let died = verdictLedger([dead(token, at: monday, died: 5)], wireProtocol: "feedback")
        let silent = verdictLedger(
            [TestVerdict(token: token, settledAt: tuesday)], attempts: attempts,
            wireProtocol: "binary")
        for ledgers in [[died, silent], [silent, died]] { #expect(try death(ledgers) == 5) }
        // What APNs says of itself counts: a 200 as well as a refusal for another reason.
        let answered = verdictLedger(
            [TestVerdict(token: token, settledAt: tuesday)], attempts: attempts)
        let refused = verdictLedger(
            [
                TestVerdict(
                    token: token, state: .rejected, reason: .payloadTooLarge, settledAt: tuesday)
            ], wireProtocol: "binary")
        for other in [answered, refused] {
            #expect(try death([died, silent, other]) == nil)
            #expect(try death([other, silent, died]) == nil)
        }
    }

    /// A verdict's time, its topic and environment, and whether it says that the token lives.
    struct Said: Sendable, CustomTestStringConvertible {
        var day: UInt64
        var topic: String?
        var environment = "production"
        var lives = false
        var wireProtocol: String?

        var testDescription: String {
            "\(lives ? "lives" : "died") on \(day) for \(topic ?? "?") in \(environment)"
        }
    }

    static let scopes: [(said: [Said], died: UInt64?)] = [
        ([.init(day: 1, topic: "a"), .init(day: 2, topic: "a", lives: true)], nil),
        ([.init(day: 1, topic: "a"), .init(day: 2, topic: "b", lives: true)], 1),
        (
            [
                .init(day: 1, topic: "a"),
                .init(day: 2, topic: "a", environment: "development", lives: true),
            ], 1
        ),
        // Dead for two: the later death.
        ([.init(day: 1, topic: "a"), .init(day: 2, topic: "b")], 2),
        ([.init(day: 2, topic: "a"), .init(day: 1, topic: "b")], 2),
        // Dead for two, and alive again for one of them, whichever was the later.
        (
            [
                .init(day: 1, topic: "a"), .init(day: 2, topic: "b"),
                .init(day: 3, topic: "b", lives: true),
            ], 1
        ),
        (
            [
                .init(day: 1, topic: "a"), .init(day: 2, topic: "b"),
                .init(day: 3, topic: "a", lives: true),
            ], 2
        ),
        (
            [
                .init(day: 1, topic: "a"), .init(day: 2, topic: "b"),
                .init(day: 3, topic: "a", lives: true), .init(day: 3, topic: "b", lives: true),
            ], nil
        ),
        // A certificate's topic and a feedback service's environment are not known: they may be any.
        ([.init(day: 1, topic: nil), .init(day: 2, topic: "a", lives: true)], nil),
        ([.init(day: 1, topic: "a"), .init(day: 2, topic: nil, lives: true)], nil),
        (
            [
                .init(day: 1, topic: nil, wireProtocol: "feedback"),
                .init(day: 2, topic: "a", environment: "development", lives: true),
            ], nil
        ),
    ]

    @Test(arguments: scopes.indices)
    func `A device's verdict for one app proves nothing for another`(_ index: Int) throws {
        let (said, died) = Self.scopes[index]
        let ledgers = said.map { said in
            verdictLedger(
                [
                    said.lives
                        ? TestVerdict(token: token, settledAt: testTime + said.day)
                        : dead(token, at: testTime + said.day, died: said.day)
                ], wireProtocol: said.wireProtocol, topic: said.topic,
                environment: said.environment)
        }
        #expect(try death(ledgers) == died, "\(said)")
        #expect(try death(ledgers.reversed()) == died, "\(said)")
    }

    @Test func `Of several dead verdicts the newest gives the time`() throws {
        let first = verdictLedger([dead(token, at: monday, died: 7)])
        let second = verdictLedger([dead(token, at: tuesday, died: 9)])
        let asNew = verdictLedger([dead(token, at: tuesday, died: 3)])
        #expect(try death([first, second]) == 9)
        #expect(try death([second, first]) == 9)
        #expect(try death([second, asNew]) == 3)
        #expect(try death([asNew, second]) == 3)
        let untimed = verdictLedger([dead(token, at: tuesday)])
        #expect(try death([untimed]) == tuesday)
    }

    @Test func `Only refusals with the named reasons make a token dead`() throws {
        for reason in [Reason.badDeviceToken, .payloadTooLarge, .topicDisallowed] {
            let verdict = TestVerdict(token: token, state: .rejected, reason: reason)
            #expect(try death([verdictLedger([verdict])]) == nil)
            #expect(try death([verdictLedger([verdict])], reasons: [reason]) != nil)
        }
        for state in [RowState.failed, .unknown, .skipped, .invalid] {
            let verdict = TestVerdict(token: token, state: state, reason: .unregistered)
            #expect(try death([verdictLedger([verdict])]) == nil)
        }
    }

    @Test func `A response saves a token, and silence does not`() throws {
        let died = verdictLedger([dead(token, at: monday, died: 5)])
        for state in [RowState.failed, .unknown, .skipped] {
            let silent = TestVerdict(
                token: token, state: state, reason: .timeout, settledAt: tuesday)
            #expect(try death([died, verdictLedger([silent])]) == 5)
        }
        let refused = TestVerdict(
            token: token, state: .rejected, reason: .badDeviceToken, settledAt: tuesday)
        #expect(try death([died, verdictLedger([refused])]) == nil)
        let often = verdictLedger([TestVerdict(token: token, settledAt: tuesday)], attempts: 20)
        #expect(try death([died, often]) == nil)
    }

    @Test func `Tokens with equal fingerprints are kept apart`() {
        var tokens = DeadTokens()
        func isDead(_ digits: String) -> Bool {
            tokens.find(digits: Array(digits.utf8).span.bytes, fingerprint: 77) != nil
        }
        tokens.insert(
            bytes: ([0xab, 0xcd] as [UInt8]).span.bytes, fingerprint: 77, reason: 1, settledAt: 1,
            diedAt: 1)
        tokens.seal()
        #expect(isDead("abcd"))
        for other in ["abce", "abc", "abcdef", "bbcd", ""] { #expect(!isDead(other)) }
        tokens.rescue(bytes: ([0xab, 0xce] as [UInt8]).span.bytes, fingerprint: 77, settledAt: 2)
        #expect(isDead("abcd"))
        tokens.rescue(fingerprint: 77, settledAt: 2)
        #expect(!isDead("abcd"))
    }

    @Test func `Verdicts of many tokens equal a dictionary's`() throws {
        var random = SeededRandom(seed: 4)
        var newest: [Int: (time: UInt64, isDead: Bool)] = [:]
        var ledgers: [VerdictLedger] = []
        for _ in 0..<3 {
            var verdicts: [TestVerdict] = []
            for _ in 0..<20_000 {
                let number = Int.random(in: 0..<15_000, using: &random)
                let time = testTime + UInt64.random(in: 0..<1_000_000, using: &random)
                let isDead = Bool.random(using: &random)
                verdicts.append(
                    isDead
                        ? dead(testToken(number), at: time)
                        : TestVerdict(token: testToken(number), settledAt: time))
                let known = newest[number]
                let isNewer = known.map { time > $0.time || (time == $0.time && !isDead) } ?? true
                if isNewer { newest[number] = (time, isDead) }
            }
            ledgers.append(verdictLedger(verdicts))
        }
        let tokens = try deadTokens(ledgers)
        for number in 0..<16_000 {
            let isDead = newest[number]?.isDead ?? false
            let death = diedAt(testToken(number), tokens)
            #expect((death != nil) == isDead)
        }
    }

    @Test func `A table beyond its memory reports it and forgets nothing`() {
        var tokens = DeadTokens(memoryLimit: 2 * DeadTokens.pageByteCount)
        var bytes = [UInt8](repeating: 0, count: 32)
        for number in 0..<60_000 {
            bytes[0] = UInt8(truncatingIfNeeded: number)
            bytes[1] = UInt8(truncatingIfNeeded: number >> 8)
            tokens.insert(
                bytes: bytes.span.bytes, fingerprint: UInt64(number) &* 0x9e37_79b9_7f4a_7c15,
                reason: 1, settledAt: 1, diedAt: 1)
        }
        let (isFull, byteCount, count) = (tokens.isFull, tokens.byteCount, tokens.count)
        #expect(isFull)
        #expect(byteCount <= 2 * DeadTokens.pageByteCount)
        #expect(count > 10_000 && count < 60_000)
    }

    @Test func `Dead tokens of a damaged ledger are refused`() {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        let draft = SegmentDraft(
            campaign: testCampaign, epoch: manifest.beginEpoch(atMilliseconds: testTime),
            reactor: 0)
        draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        draft.sync()
        manifest.endEpoch(lengths: [draft.length], isFinished: false)
        draft.bytes[60] ^= 1
        let ledger = VerdictLedger(manifest: manifest, segments: [draft.segment])
        #expect(throws: LedgerError.self) { _ = try deadTokens([ledger]).count }
    }
}
