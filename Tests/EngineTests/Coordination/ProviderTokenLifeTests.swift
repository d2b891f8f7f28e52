import BroadsideAPNs
import Testing

@testable import BroadsideEngine

/// The ages of a provider token: no clock, no key. Times are minutes after the start of a window.
struct ProviderTokenLifeTests {
    private static let start: UInt64 = 1_800_000_000

    private func token(_ minutes: Int) -> ProviderTokenLife.Token {
        .init(value: Array("bearer \(minutes)".utf8), issuedAt: at(minutes))
    }

    private func at(_ minutes: Int) -> UInt64 { UInt64(Int(Self.start) + minutes * 60) }

    /// Does what a watch does; nil where there is nothing to do.
    private func renew(_ life: inout ProviderTokenLife, _ minutes: Int) -> String? {
        guard let issuedAt = life.renewal(at(minutes)) else { return nil }
        let made = token((Int(issuedAt) - Int(Self.start)) / 60)
        life.take(made, at(minutes))
        return text(made)
    }

    private func text(_ token: ProviderTokenLife.Token?) -> String {
        String(decoding: token?.value ?? [], as: UTF8.self)
    }

    private func value(_ life: ProviderTokenLife) -> String { text(life.current) }

    @Test(
        arguments: [(0, -30), (299, -30), (300, 0), (1799, 0), (2099, 0), (2100, 30)]
            as [(Int, Int)])
    func `A token's issue time is this window's from its fifth minute on`(
        second: Int, expected: Int
    ) {
        let date = ProviderTokenAge.issueTime(at: UInt64(Int(Self.start) + second))
        #expect(date == at(expected))
    }

    @Test
    func `Another token is wanted five minutes into the next window, and sending continues`() {
        var life = ProviderTokenLife(token(0))
        life.requestIfDue(at(35) - 1)
        #expect(!life.isWanted)
        life.requestIfDue(at(35))
        #expect(life.isWanted && !life.isStale && !life.isTooOld(at(35)))
        let renewed = renew(&life, 35)
        #expect(renewed == "bearer 30")
        #expect(life.version == 2 && !life.isWanted)
        life.requestIfDue(at(36))
        let again = renew(&life, 36)
        #expect(again == nil)
    }

    @Test func `From 55 minutes on a token is too old to send with`() {
        let life = ProviderTokenLife(token(0))
        #expect(!life.isTooOld(at(55) - 1))
        #expect(life.isTooOld(at(55)))
    }

    @Test func `An expired token of an earlier window is renewed once, and this window's is not`() {
        var life = ProviderTokenLife(token(0))
        let isRenewedEarly = life.requestAfterExpiry(at(30) - 1, usedVersion: 1)
        #expect(!isRenewedEarly && !life.isWanted && !life.isStale)
        let isRenewed = life.requestAfterExpiry(at(30), usedVersion: 1)
        #expect(isRenewed && life.isStale)
        let isRenewedOnce = life.requestAfterExpiry(at(30), usedVersion: 1)
        #expect(isRenewedOnce)
        let renewed = renew(&life, 31)
        #expect(renewed == "bearer 30")
        #expect(!life.isStale)
        // Requests that were in flight with the token before.
        let isLate = life.requestAfterExpiry(at(31), usedVersion: 1)
        #expect(isLate && !life.isWanted)
        let isCurrent = life.requestAfterExpiry(at(31), usedVersion: 2)
        #expect(!isCurrent)
    }

    @Test func `After TooManyProviderTokenUpdates the token before serves for 20 minutes`() {
        var life = ProviderTokenLife(token(0))
        life.requestIfDue(at(35))
        _ = renew(&life, 35)
        #expect(life.returnedUntil == nil)
        life.freeze(at(35), usedVersion: 2)
        #expect(value(life) == "bearer 0" && life.version == 3)
        #expect(life.returnedUntil == at(55))
        // Others say the same of the same token.
        life.freeze(at(36), usedVersion: 2)
        #expect(value(life) == "bearer 0" && life.version == 3)
        life.requestIfDue(at(40))
        let frozen = renew(&life, 54)
        #expect(frozen == nil)
        life.requestIfDue(at(55))
        let renewed = renew(&life, 55)
        #expect(renewed == "bearer 30" && life.returnedUntil == nil)
        // The next window's is due ten minutes later, and comes 20 minutes later.
        life.requestIfDue(at(74))
        #expect(!life.isWanted)
        life.requestIfDue(at(75))
        let next = renew(&life, 75)
        #expect(next == "bearer 60")
        // From then on it changes with all others.
        life.requestIfDue(at(95))
        let last = renew(&life, 95)
        #expect(last == "bearer 90")
    }

    @Test
    func
        `A token that expires while renewal is frozen stops sending until the 20 minutes are over`()
    {
        var life = ProviderTokenLife(token(0))
        life.requestIfDue(at(35))
        _ = renew(&life, 35)
        life.freeze(at(35), usedVersion: 2)
        let isRenewed = life.requestAfterExpiry(at(40), usedVersion: 3)
        #expect(isRenewed && life.isStale)
        let frozen = renew(&life, 54)
        #expect(frozen == nil)
        let renewed = renew(&life, 55)
        #expect(renewed == "bearer 30" && !life.isStale)
    }

    @Test
    func
        `After TooManyProviderTokenUpdates the first token stays, and none is made for 20 minutes`()
    {
        var life = ProviderTokenLife(token(0))
        life.freeze(at(34), usedVersion: 1)
        #expect(value(life) == "bearer 0" && life.version == 1)
        life.requestIfDue(at(35))
        let frozen = renew(&life, 53)
        #expect(frozen == nil)
        let renewed = renew(&life, 54)
        #expect(renewed == "bearer 30")
    }

    @Test(arguments: [(3_299, true), (3_300, false)] as [(UInt64, Bool)])
    func `The token before serves only while it is younger than 55 minutes`(
        seconds: UInt64, isUsed: Bool
    ) {
        var life = ProviderTokenLife(token(0))
        life.take(token(30), at(35))
        life.freeze(Self.start + seconds, usedVersion: 2)
        #expect(value(life) == (isUsed ? "bearer 0" : "bearer 30"))
        #expect(life.version == (isUsed ? 3 : 2))
    }

    @Test func `Of two tokens with the same issue time none counts as the one before`() {
        var life = ProviderTokenLife(token(0))
        life.take(.init(value: Array("bearer other".utf8), issuedAt: Self.start), at(6))
        life.freeze(at(7), usedVersion: 2)
        #expect(value(life) == "bearer other" && life.version == 2)
    }

    @Test func `After a failed signature, the token stays in use, and the next attempt waits`() {
        var life = ProviderTokenLife(token(0))
        life.requestIfDue(at(35))
        let isUsable = life.recordFailure(at(35))
        let atOnce = renew(&life, 35)
        #expect(isUsable && value(life) == "bearer 0" && atOnce == nil)
        let later = renew(&life, 36)
        #expect(later == "bearer 30")
    }

    @Test(arguments: [false, true])
    func `A failed signature matters at once if the token can't be sent any more`(isStale: Bool) {
        var life = ProviderTokenLife(token(0))
        life.requestIfDue(at(54))
        let isUsable = life.recordFailure(at(55) - 30)
        #expect(isUsable && life.renewal(at(55) - 1) == nil)
        if isStale { _ = life.requestAfterExpiry(at(55) - 1, usedVersion: 1) }
        let time = isStale ? at(55) - 1 : at(55)
        #expect(life.renewal(time) == at(30))
        let isUsableLater = life.recordFailure(time)
        #expect(!isUsableLater)
    }

    @Test func `A supplied token waits for the end of the freeze, and the latest one is used`() {
        var life = ProviderTokenLife(token(0))
        life.take(token(30), at(35))
        life.freeze(at(35), usedVersion: 2, isSupplied: true)
        let times = [life.offer(token(36), at(36)), life.offer(token(40), at(40))]
        #expect(times == [at(55), at(55)])
        // Another refusal of the token in use does not make it wait longer.
        life.freeze(at(41), usedVersion: life.version, isSupplied: true)
        life.takeDeferred(at(55) - 1)
        #expect(value(life) == "bearer 0" && life.deferredUntil == at(55))
        life.takeDeferred(at(55))
        #expect(value(life) == "bearer 40" && life.deferredUntil == nil)
        let next = life.offer(token(60), at(60))
        #expect(next == nil && value(life) == "bearer 60")
    }

    @Test func `A supplied token that was refused is used again after the freeze`() {
        var life = ProviderTokenLife(token(0))
        _ = life.offer(token(30), at(35))
        life.freeze(at(35), usedVersion: 2, isSupplied: true)
        #expect(value(life) == "bearer 0")
        life.takeDeferred(at(55))
        #expect(value(life) == "bearer 30")
    }

    @Test func `The version of the key changes with the key, also back to the token before`() {
        func token(_ minutes: Int, key: String) -> ProviderTokenLife.Token {
            .init(value: Array("bearer".utf8), issuedAt: at(minutes), keyID: key)
        }
        var life = ProviderTokenLife(token(0, key: "A"))
        life.take(token(20, key: "A"), at(20))
        #expect(life.keyVersion == 1)
        life.take(token(40, key: "B"), at(40))
        #expect(life.keyVersion == 2)
        life.freeze(at(40), usedVersion: life.version)
        #expect(life.keyVersion == 3)
    }

    @Test func `A clock that is set back makes no earlier token`() {
        var life = ProviderTokenLife(token(30))
        life.requestIfDue(at(10))
        let renewed = renew(&life, 10)
        #expect(!life.isWanted && renewed == nil)
    }

    @Test func `A run with a certificate renews no token`() {
        var life = ProviderTokenLife(nil)
        life.requestIfDue(at(100))
        #expect(!life.isWanted && !life.isTooOld(at(100)))
        let renewed = renew(&life, 100)
        #expect(renewed == nil)
    }
}
