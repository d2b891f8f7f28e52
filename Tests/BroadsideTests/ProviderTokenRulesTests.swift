import Campaign
import Testing

@testable import Broadside

/// What is done about a provider token that APNs calls expired, or renewed too often.
@Suite struct ProviderTokenRulesTests {
    private let start: UInt64 = 1_760_000_000

    private func run(signs: Bool = true, age: UInt64 = 0) -> SharedRun {
        var sign: (@Sendable (UInt64) -> [UInt8]?)?
        if signs { sign = { seconds in Array("bearer \(seconds)".utf8) } }
        return SharedRun(
            authorization: Array("bearer first".utf8), issuedAt: start - age, milliRate: nil,
            abortAfter: 50, maxBadTokensPercent: 50, sign: sign)
    }

    private func now(_ seconds: UInt64) -> Now {
        Now(nanoseconds: seconds * second + second, wallMilliseconds: (start + seconds) * 1000)
    }

    private func value(_ shared: SharedRun) -> String {
        String(decoding: shared.authorization().value ?? [], as: UTF8.self)
    }

    @Test func `One renewal at once for the whole process, none for twenty minutes`() {
        let shared = run()
        let first = shared.authorizationVersion
        #expect(shared.renewExpired(now(5), usedVersion: first))
        #expect(value(shared) == "bearer \(start + 5)")
        // Another reactor heard the same of the token before.
        #expect(shared.renewExpired(now(5), usedVersion: first))
        #expect(value(shared) == "bearer \(start + 5)")
        let second = shared.authorizationVersion
        #expect(!shared.renewExpired(now(1204), usedVersion: second))
        #expect(shared.expiredMessage(now(1204)).contains("check the clock"))
        #expect(shared.renewExpired(now(1205), usedVersion: second))
    }

    @Test func `A token from elsewhere is not renewed here`() {
        let shared = run(signs: false)
        #expect(!shared.renewExpired(now(5), usedVersion: shared.authorizationVersion))
        #expect(shared.expiredMessage(now(5)).contains("--auth-token-file"))
    }

    @Test func `Too many updates bring the token before back, and freeze renewal`() {
        let shared = run(age: 2690)
        shared.renewIfDue(now(9))
        #expect(value(shared) == "bearer first")
        shared.renewIfDue(now(10))
        #expect(value(shared) == "bearer \(start + 10)")
        let renewed = shared.authorizationVersion
        #expect(shared.returnToPreviousToken(now(11), usedVersion: renewed))
        #expect(value(shared) == "bearer first")
        // Answers to requests that went out before say nothing new.
        #expect(shared.returnToPreviousToken(now(12), usedVersion: renewed))
        #expect(value(shared) == "bearer first")
        shared.renewIfDue(now(1210))
        #expect(value(shared) == "bearer first")
        #expect(!shared.renewExpired(now(1210), usedVersion: shared.authorizationVersion))
        #expect(shared.expiredMessage(now(1210)).contains("20 minutes"))
        shared.renewIfDue(now(1211))
        #expect(value(shared) == "bearer \(start + 1211)")
    }

    @Test func `Without a token before it the attempt is counted`() {
        let shared = run()
        #expect(
            !shared.returnToPreviousToken(now(1), usedVersion: shared.authorizationVersion))
    }

    @Test func `A disk that fails is the cause, whatever came before`() {
        let shared = run()
        shared.stop(.signal)
        shared.stop(.deadline)
        #expect(shared.stopCause == .signal)
        shared.stop(.diskFailed("full"))
        shared.stop(.signal)
        #expect(shared.stopCause == .diskFailed("full"))
    }
}
