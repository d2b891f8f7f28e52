import Testing

@testable import Engine

/// The ages of a provider token: no clock, no key.
struct ProviderTokenLifeTests {
    private static let start: UInt64 = 1_800_000_000
    private static let minute: UInt64 = 60

    private func token(_ minutes: UInt64) -> ProviderTokenLife.Token {
        .init(value: Array("bearer \(minutes)".utf8), issuedAt: Self.start + minutes * 60)
    }

    private func at(_ minutes: UInt64) -> UInt64 { Self.start + minutes * 60 }

    /// Does what a watch does; nil where there is nothing to do.
    private func renew(_ life: inout ProviderTokenLife, minutes: UInt64) -> String? {
        switch life.renewal(at(minutes)) {
        case .none: return nil
        case .use(let token):
            life.take(token)
            return "used"
        case .make:
            life.take(token(minutes))
            return "made"
        }
    }

    private func value(_ life: ProviderTokenLife) -> String {
        String(decoding: life.current?.value ?? [], as: UTF8.self)
    }

    @Test("Another one is wanted at 45 minutes and not before; sending goes on meanwhile")
    func age() {
        var life = ProviderTokenLife(token(0))
        life.wantIfDue(at(45) - 1)
        #expect(!life.isWanted)
        life.wantIfDue(at(45))
        #expect(life.isWanted && !life.isStale)
        let renewed1 = renew(&life, minutes: 45)
        #expect(renewed1 == "made")
        #expect(value(life) == "bearer 45" && life.version == 2 && !life.isWanted)
        let renewed2 = renew(&life, minutes: 46)
        #expect(renewed2 == nil)
    }

    @Test("Expired: one renewal for all who say so, none for a young token")
    func expired() {
        var life = ProviderTokenLife(token(0))
        let goesOn3 = life.wantExpired(at(20) - 1, usedVersion: 1)
        #expect(!goesOn3)
        #expect(!life.isWanted)
        let goesOn4 = life.wantExpired(at(20), usedVersion: 1)
        #expect(goesOn4)
        #expect(life.isStale)
        let goesOn5 = life.wantExpired(at(20), usedVersion: 1)
        #expect(goesOn5)
        let renewed6 = renew(&life, minutes: 20)
        #expect(renewed6 == "made")
        #expect(!life.isStale)
        // Requests that were under way with the token before.
        let goesOn7 = life.wantExpired(at(21), usedVersion: 1)
        #expect(goesOn7)
        #expect(!life.isWanted)
        let goesOn8 = life.wantExpired(at(21), usedVersion: 2)
        #expect(!goesOn8)
    }

    @Test("Too many updates: back to the one before, and the one that came too early later")
    func tooMany() {
        var life = ProviderTokenLife(token(0))
        life.wantIfDue(at(45))
        let renewed9 = renew(&life, minutes: 45)
        #expect(renewed9 == "made")
        life.freeze(at(45), usedVersion: 2)
        #expect(value(life) == "bearer 0" && life.version == 3)
        // Others say the same of the same token.
        life.freeze(at(45), usedVersion: 2)
        #expect(value(life) == "bearer 0" && life.version == 3)
        life.wantIfDue(at(50))
        let renewed10 = renew(&life, minutes: 50)
        #expect(renewed10 == nil)
        // At 61 minutes it is expired: nothing is sent until the 20 minutes are over.
        let goesOn11 = life.wantExpired(at(61), usedVersion: 3)
        #expect(goesOn11)
        #expect(life.isStale)
        let renewed12 = renew(&life, minutes: 64)
        #expect(renewed12 == nil)
        let renewed13 = renew(&life, minutes: 65)
        #expect(renewed13 == "used")
        #expect(value(life) == "bearer 45" && !life.isStale)
    }

    @Test("Too many updates with the first token: it stays, and none is made for 20 minutes")
    func tooManyAtOnce() {
        var life = ProviderTokenLife(token(0))
        life.freeze(at(44), usedVersion: 1)
        #expect(value(life) == "bearer 0" && life.version == 1)
        life.wantIfDue(at(45))
        let renewed14 = renew(&life, minutes: 63)
        #expect(renewed14 == nil)
        let renewed15 = renew(&life, minutes: 64)
        #expect(renewed15 == "made")
    }

    @Test(
        "Back to the one before only while that is not expired itself",
        arguments: [(3_599, true), (3_600, false)] as [(UInt64, Bool)])
    func tooManyWithAnOldOne(seconds: UInt64, isUsed: Bool) {
        var life = ProviderTokenLife(token(0))
        life.take(token(45))
        life.freeze(Self.start + seconds, usedVersion: 2)
        #expect(value(life) == (isUsed ? "bearer 0" : "bearer 45"))
        #expect(life.version == (isUsed ? 3 : 2))
    }

    @Test("Of two of the same second none came before the other")
    func tooManyOfOneSecond() {
        var life = ProviderTokenLife(token(0))
        life.take(.init(value: Array("bearer other".utf8), issuedAt: Self.start))
        life.freeze(at(1), usedVersion: 2)
        #expect(value(life) == "bearer other" && life.version == 2)
        life.wantIfDue(at(45))
        let renewed = renew(&life, minutes: 45)
        #expect(renewed == "made")
    }

    @Test(
        "The one that came too early is used below 40 minutes of age",
        arguments: [(84, "used"), (85, "made")] as [(UInt64, String)])
    func tooManyLater(minutes: UInt64, expected: String) {
        var life = ProviderTokenLife(token(0))
        life.take(token(45))
        life.freeze(at(45), usedVersion: 2)
        #expect(value(life) == "bearer 0")
        life.wantIfDue(at(minutes))
        let renewed = renew(&life, minutes: minutes)
        #expect(renewed == expected)
    }

    @Test("A certificate has none")
    func none() {
        var life = ProviderTokenLife(nil)
        life.wantIfDue(at(100))
        #expect(!life.isWanted)
        let renewed16 = renew(&life, minutes: 100)
        #expect(renewed16 == nil)
    }
}
