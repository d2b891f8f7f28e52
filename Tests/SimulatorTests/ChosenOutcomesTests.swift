import BroadsideAPNs
import Testing

@testable import BroadsideSimulator

@Suite struct ChosenOutcomesTests {
    private let gone = ChosenOutcomes.Outcome(response: .refused(.unregistered), remaining: nil)

    @Test func `An outcome is for the token in either case, as often as it says`() {
        let outcomes = ChosenOutcomes()
        func take(_ token: String) -> Response? {
            Array(token.utf8).withBytes { outcomes.take($0) }
        }
        #expect(take("00ff") == nil && take("") == nil)
        #expect(outcomes.set(Array("00ff".utf8), .init(response: gone.response, remaining: 2)))
        #expect(take("00FF")?.status == 410 && take("00fe") == nil)
        #expect(take("00ff")?.reason == .unregistered && outcomes.count == 0)
        #expect(take("00ff") == nil)
        #expect(outcomes.set(Array("00ff".utf8), gone))
        for _ in 0..<5 { #expect(take("00ff")?.status == 410) }
        #expect(outcomes.remove(Array("00ff".utf8)) && !outcomes.remove(Array("00ff".utf8)))
        #expect(take("00ff") == nil)
    }

    @Test func `Above the limit of outcomes only tokens that have one get another`() {
        let outcomes = ChosenOutcomes()
        func token(_ number: Int) -> [UInt8] {
            Array(String(number + 0x10_0000, radix: 16).utf8)
        }
        for number in 0..<ChosenOutcomes.limit { #expect(outcomes.set(token(number), gone)) }
        #expect(!outcomes.set(token(ChosenOutcomes.limit), gone) && outcomes.set(token(0), gone))
        #expect(outcomes.count == ChosenOutcomes.limit)
        outcomes.removeAll()
        #expect(outcomes.count == 0 && outcomes.set(token(ChosenOutcomes.limit), gone))
    }

    @Test func `Provider tokens used so far expire, later ones do not, and each may be renewed`() {
        let tokens = ExpiredTokens()
        tokens.note(1)
        tokens.note(2)
        tokens.note(1)
        #expect(!tokens.isExpired(1))
        #expect(tokens.expireUsed() == 2 && tokens.isExpired(1) && tokens.isExpired(2))
        tokens.note(3)
        #expect(!tokens.isExpired(3) && tokens.expireUsed() == 1 && tokens.isExpired(3))
        tokens.removeAll()
        #expect(!tokens.isExpired(1) && tokens.expireUsed() == 3)
        for number in 10..<UInt64(10 + ExpiredTokens.limit) { tokens.note(number) }
        #expect(tokens.expireUsed() == ExpiredTokens.limit)
        // The oldest ones made room.
        #expect(!tokens.isExpired(1) && tokens.isExpired(10))
    }
}
