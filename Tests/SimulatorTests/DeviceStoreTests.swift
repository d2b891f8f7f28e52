import Foundation
import Testing

@testable import BroadsideSimulator

/// What is kept for devices that are away, with the time as a parameter.
@Suite struct DeviceStoreTests {
    private static let second: UInt64 = 1_000_000
    private let token = Array("ab01".utf8)
    private let identifier = NotificationIDText(repeating: 0x31)

    private func store(
        offline: [String] = ["AB01"], savingPower: [String] = [], rule: StoreRule = .app,
        keep: UInt64 = 30 * 86_400, group: UInt64 = 30, file: String? = nil
    ) throws -> DeviceStore {
        func condition(_ kind: DeviceCondition.Kind, _ tokens: [String]) throws -> DeviceCondition {
            var condition = DeviceCondition(kind)
            for token in tokens {
                let normalized = try #require(DeviceCondition.normalized(Array(token.utf8)))
                let isSaid = condition.set(normalized, true)
                #expect(isSaid)
            }
            return condition
        }
        return try DeviceStore(
            offline: try condition(.offline, offline),
            savingPower: try condition(.savingPower, savingPower), deliveries: file,
            rules: .init(
                store: rule, keepNanoseconds: keep * 1_000_000_000,
                groupNanoseconds: group * 1_000_000_000))
    }

    private func take(
        _ store: DeviceStore, app: String = "a.b", collapse: String? = nil,
        expiration: UInt64? = nil, priority: UInt8 = 10, at seconds: UInt64 = 1000
    ) {
        store.take(
            Envelope(
                topic: Array(app.utf8), collapseIdentifier: collapse.map { Array($0.utf8) },
                expirationUnixSeconds: expiration, priority: priority),
            token: Array("aB01".utf8), identifier: identifier,
            microseconds: seconds * Self.second)
    }

    private func counts(_ store: DeviceStore, at seconds: UInt64) -> DeviceStore.Counts {
        store.counts(microseconds: seconds * Self.second)
    }

    private func comesOnline(_ store: DeviceStore, at seconds: UInt64) -> Int? {
        store.setOnline(token, true, microseconds: seconds * Self.second)
    }

    @Test func `A device that is online gets each notification`() throws {
        let store = try store(offline: [])
        for _ in 0..<3 { take(store, expiration: 0) }
        #expect(counts(store, at: 1000) == .init(delivered: 3))
        store.reset()
        take(store)
        #expect(counts(store, at: 1000) == .init(delivered: 1))
        #expect(store.totals(microseconds: 1000 * Self.second) == .init(delivered: 4))
    }

    /// Three notifications without a collapse identifier, two with one, one with another, for each
    /// of two apps.
    @Test(
        arguments: [(StoreRule.app, 2, 10), (.collapseIdentifier, 6, 6)]
            as [(StoreRule, Int, UInt64)])
    func `An offline device stores the newest notification of each app or collapse ID`(
        _ rule: StoreRule, stored: Int, coalesced: UInt64
    ) throws {
        let store = try store(rule: rule)
        for app in ["a.b", "a.c"] {
            for collapse in [nil, "x", "y", "x", nil, nil] as [String?] {
                take(store, app: app, collapse: collapse)
            }
        }
        #expect(counts(store, at: 1000) == .init(stored: stored, coalesced: coalesced))
        #expect(comesOnline(store, at: 1001) == stored)
        #expect(comesOnline(store, at: 1001) == 0)
        let delivered = UInt64(stored)
        #expect(counts(store, at: 1001) == .init(delivered: delivered, coalesced: coalesced))
        take(store)
        #expect(counts(store, at: 1001).delivered == delivered + 1, "it is online now")
        #expect(store.setOnline(token, false, microseconds: 1) == 0)
        take(store)
        #expect(counts(store, at: 1001).stored == 1)
    }

    // MARK: Devices that save power

    @Test func `A device that saves power gets priority 10 at once and the others in groups`()
        throws
    {
        let store = try store(offline: [], savingPower: ["AB01"])
        take(store, priority: 5, at: 1000)
        take(store, priority: 10, at: 1001)
        take(store, priority: 5, at: 1010)
        take(store, priority: 1, at: 1011)
        // Priority 10 at once, the others not before the group's time, and then together.
        #expect(counts(store, at: 1029) == .init(held: 3, delivered: 1))
        #expect(store.settleDue(microseconds: 1029 * Self.second) == Self.second)
        #expect(store.settleDue(microseconds: 1030 * Self.second) == nil)
        #expect(counts(store, at: 1030) == .init(delivered: 4))
        // The next group counts from its own first notification.
        take(store, priority: 5, at: 1031)
        #expect(counts(store, at: 1060).held == 1)
        #expect(counts(store, at: 1061) == .init(delivered: 5))
    }

    @Test func `Priority 1 waits until the device stops saving power`() throws {
        let store = try store(offline: [], savingPower: ["AB01"])
        take(store, priority: 1)
        #expect(counts(store, at: 100_000) == .init(held: 1))
        #expect(store.settleDue(microseconds: 100_000 * Self.second) == nil)
        #expect(store.setSavingPower(token, false, microseconds: 100_000 * Self.second) == 1)
        take(store, priority: 1, at: 100_000)
        #expect(counts(store, at: 100_000) == .init(delivered: 2), "it saves no power now")
    }

    @Test func `Held notifications expire, and one with expiration 0 is delivered with its group`()
        throws
    {
        let store = try store(offline: [], savingPower: ["AB01"])
        take(store, expiration: 0, priority: 5)
        take(store, expiration: 1020, priority: 5)
        take(store, expiration: 1040, priority: 5)
        #expect(counts(store, at: 1030) == .init(delivered: 1, expired: 1, discarded: 1))
    }

    /// A group of a device that goes offline is stored like anything else.
    @Test func `A group of a device that goes offline is stored`() throws {
        let store = try store(offline: [], savingPower: ["AB01"])
        take(store, priority: 5)
        take(store, priority: 5)
        #expect(store.setOnline(token, false, microseconds: 1001 * Self.second) == 0)
        #expect(counts(store, at: 1030) == .init(stored: 1, coalesced: 1))
        #expect(comesOnline(store, at: 1040) == 1)
        #expect(counts(store, at: 1040) == .init(delivered: 1, coalesced: 1))
    }

    @Test func `A group holds at most 64 notifications, and later ones are dropped`() throws {
        let store = try store(offline: [], savingPower: ["AB01"])
        for _ in 0..<70 { take(store, priority: 5) }
        #expect(counts(store, at: 1000) == .init(held: 64, dropped: 6))
        // Waking and saving again leaves nothing behind.
        for _ in 0..<5000 {
            _ = store.setSavingPower(token, false, microseconds: 1001 * Self.second)
            _ = store.setSavingPower(token, true, microseconds: 1001 * Self.second)
            take(store, priority: 5, at: 1001)
        }
        #expect(counts(store, at: 1032) == .init(delivered: 64 + 5000, dropped: 6))
    }

    @Test func `A stored notification expires at its time, and expiration 0 is never stored`()
        throws
    {
        let store = try store(rule: .collapseIdentifier)
        take(store, expiration: 0)
        take(store, expiration: 1000)
        #expect(counts(store, at: 1000) == .init(discarded: 2))
        take(store, expiration: 1001)
        #expect(counts(store, at: 1000) == .init(stored: 1, discarded: 2))
        #expect(counts(store, at: 1001) == .init(expired: 1, discarded: 2))
        take(store, collapse: "x", expiration: 2000)
        take(store, expiration: 1500)
        #expect(comesOnline(store, at: 1500) == 1)
        #expect(counts(store, at: 1500) == .init(delivered: 1, expired: 2, discarded: 2))
    }

    @Test func `A stored notification is dropped after the storage time`() throws {
        let store = try store(keep: 60)
        take(store)
        #expect(counts(store, at: 1059).stored == 1)
        #expect(counts(store, at: 1060) == .init(dropped: 1))
    }

    @Test func `At most 64 notifications are stored for a device`() throws {
        let store = try store(rule: .collapseIdentifier)
        for number in 0..<70 { take(store, collapse: "\(number)") }
        #expect(counts(store, at: 1000) == .init(stored: 64, dropped: 6))
        #expect(comesOnline(store, at: 1000) == 64)
    }

    @Test func `At most the documented number of notifications is stored in all`() throws {
        let store = try DeviceStore(
            offline: DeviceCondition(.offline, share: 1),
            rules: .init(keepNanoseconds: 86_400_000_000_000))
        for number in 0..<DeviceStore.maximumStored + 10 {
            store.take(
                Envelope(topic: [0x61], expirationUnixSeconds: 2000),
                token: Array(String(0x1000_0000 + number, radix: 16).utf8),
                identifier: identifier, microseconds: 1_000_000_000)
        }
        #expect(
            counts(store, at: 1000) == .init(stored: DeviceStore.maximumStored, dropped: 10))
        // What has expired makes room.
        take(store, at: 3000)
        #expect(counts(store, at: 3000).stored == 1)
    }

    /// The two shares are independent of each other.
    @Test func `The shares of devices offline and saving power are independent of each other`() {
        let offline = DeviceCondition(.offline, share: 0.3, seed: 7)
        let savingPower = DeviceCondition(.savingPower, share: 0.3, seed: 7)
        let tokens = (0..<10_000).map {
            Array(String(0x1000_0000_0000 + $0 * 7919, radix: 16).utf8)
        }
        #expect(abs(tokens.count(where: offline.holds) - 3000) < 200)
        #expect(abs(tokens.count(where: savingPower.holds) - 3000) < 200)
        #expect(abs(tokens.count { offline.holds($0) && savingPower.holds($0) } - 900) < 150)
        #expect(DeviceCondition.normalized(Array("ABc".utf8)) == nil)
        #expect(DeviceCondition.normalized(Array("ABcd".utf8)) == Array("abcd".utf8))
    }

    @Test(arguments: [
        (DeviceCondition.Kind.offline, "--offline"), (.savingPower, "--saving-power"),
    ])
    func `A list of devices with a malformed line is refused with option and line`(
        _ kind: DeviceCondition.Kind, option: String
    ) throws {
        let folder = Folder()
        let file = try folder.write("devices.txt", "ab01\r\n\nAB02\nnonsense\n")
        var condition = DeviceCondition(kind)
        let error = #expect(throws: SimulatorError.self) { try condition.read(file) }
        #expect(error?.exitCode == 2 && error?.message.contains("line 4") == true)
        #expect(error?.message.hasPrefix(option) == true)
        #expect(condition.holds(Array("ab02".utf8)))
    }
}

/// Device tokens that tell what they are for.
@Suite struct TokenTrustTests {
    private let key = Array(UInt8(0)..<32)
    private let topic = Array("a.b".utf8)

    @Test func `A token is good only unchanged and for the topic it was issued for`() {
        let trust = TokenTrust(key: key, environment: .production)
        let token = trust.issue(
            device: 0x0102_0304_0506_0708, topic: topic, environment: .production)
        #expect(token.count == TokenTrust.tokenCount)
        #expect(trust.judge(token, topic: topic) == .good(device: 0x0102_0304_0506_0708))
        #expect(trust.judge(token, topic: Array("a.c".utf8)) == .otherTopic)
        for byte in token.indices {
            for bit in 0..<8 {
                var forged = token
                forged[byte] ^= 1 << UInt8(bit)
                #expect(trust.judge(forged, topic: topic) == .bad)
            }
        }
        #expect(trust.judge(Array(token.dropLast()), topic: topic) == .bad)
        #expect(trust.judge(token + [0], topic: topic) == .bad)
        let other = TokenTrust(key: key, environment: .development)
        #expect(other.judge(token, topic: topic) == .bad)
        #expect(
            other.judge(
                trust.issue(device: 1, topic: topic, environment: .development), topic: topic)
                == .good(device: 1))
        let stranger = TokenTrust(key: key.reversed(), environment: .production)
        #expect(stranger.judge(token, topic: topic) == .bad)
        // Whom it is for can be told for any topic and environment, with the key.
        #expect(other.device(of: token) == 0x0102_0304_0506_0708)
        #expect(stranger.device(of: token) == nil)
    }
}
