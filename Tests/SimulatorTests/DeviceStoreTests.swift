import Foundation
import Testing

@testable import Simulator

/// What is kept for devices that are away, with the time as a parameter.
@Suite struct DeviceStoreTests {
    private static let second: UInt64 = 1_000_000
    private let token = Array("ab01".utf8)
    private let identifier = NotificationIDText(repeating: 0x31)

    private func store(
        offline: [String] = ["AB01"], keep: UInt64 = 30 * 86_400, file: String? = nil
    ) throws -> DeviceStore {
        var presence = DevicePresence(share: 0, seed: 0)
        for token in offline {
            let normalized = try #require(DevicePresence.normalized(Array(token.utf8)))
            let isSaid = presence.say(normalized, isOnline: false)
            #expect(isSaid)
        }
        return try DeviceStore(
            presence: presence, deliveries: file, keepNanoseconds: keep * 1_000_000_000)
    }

    private func take(
        _ store: DeviceStore, app: String = "a.b", collapse: String? = nil,
        expiration: UInt64? = nil, at seconds: UInt64 = 1000
    ) {
        store.take(
            Envelope(
                topic: Array(app.utf8), collapseIdentifier: collapse.map { Array($0.utf8) },
                expirationUnixSeconds: expiration),
            token: Array("aB01".utf8), identifier: identifier,
            microseconds: seconds * Self.second)
    }

    private func counts(_ store: DeviceStore, at seconds: UInt64) -> DeviceStore.Counts {
        store.counts(microseconds: seconds * Self.second)
    }

    private func comesOnline(_ store: DeviceStore, at seconds: UInt64) -> Int? {
        store.setOnline(token, true, microseconds: seconds * Self.second)
    }

    @Test func onlineDevicesGetAll() throws {
        let store = try store(offline: [])
        for _ in 0..<3 { take(store, expiration: 0) }
        #expect(counts(store, at: 1000) == .init(delivered: 3))
    }

    @Test func newestOfAnAppAndOfACollapseIdentifier() throws {
        let store = try store()
        for app in ["a.b", "a.c"] {
            for collapse in [nil, "x", "y", "x", nil, nil] as [String?] {
                take(store, app: app, collapse: collapse)
            }
        }
        #expect(counts(store, at: 1000) == .init(stored: 6, coalesced: 6))
        #expect(comesOnline(store, at: 1001) == 6)
        #expect(comesOnline(store, at: 1001) == 0)
        #expect(counts(store, at: 1001) == .init(delivered: 6, coalesced: 6))
        take(store)
        #expect(counts(store, at: 1001).delivered == 7, "it is online now")
        #expect(store.setOnline(token, false, microseconds: 1) == 0)
        take(store)
        #expect(counts(store, at: 1001).stored == 1)
    }

    @Test func expiration() throws {
        let store = try store()
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

    @Test func droppedAfterALongTime() throws {
        let store = try store(keep: 60)
        take(store)
        #expect(counts(store, at: 1059).stored == 1)
        #expect(counts(store, at: 1060) == .init(dropped: 1))
    }

    @Test func limitForADevice() throws {
        let store = try store()
        for number in 0..<70 { take(store, collapse: "\(number)") }
        #expect(counts(store, at: 1000) == .init(stored: 64, dropped: 6))
        #expect(comesOnline(store, at: 1000) == 64)
    }

    @Test func limitInAll() throws {
        let store = try DeviceStore(
            presence: DevicePresence(share: 1, seed: 0), deliveries: nil,
            keepNanoseconds: 86_400_000_000_000)
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

    @Test func shareOfDevices() {
        let presence = DevicePresence(share: 0.3, seed: 7)
        let offline = (0..<10_000).count {
            !presence.isOnline(Array(String(0x1000_0000_0000 + $0 * 7919, radix: 16).utf8))
        }
        #expect(abs(offline - 3000) < 200)
        #expect(DevicePresence.normalized(Array("ABc".utf8)) == nil)
        #expect(DevicePresence.normalized(Array("ABcd".utf8)) == Array("abcd".utf8))
    }

    @Test func badListOfDevices() throws {
        let folder = Folder()
        let file = try folder.write("offline.txt", "ab01\r\n\nAB02\nnonsense\n")
        var presence = DevicePresence(share: 0, seed: 0)
        let error = #expect(throws: SimulatorError.self) { try presence.read(file) }
        #expect(error?.exitCode == 2 && error?.message.contains("line 4") == true)
        #expect(!presence.isOnline(Array("ab02".utf8)))
    }
}

/// Device tokens that tell what they are for.
@Suite struct TokenTrustTests {
    private let key = Array(UInt8(0)..<32)
    private let topic = Array("a.b".utf8)

    @Test func onlyIssuedOnesAreGood() {
        let trust = TokenTrust(key: key, environment: .production)
        let token = trust.issue(
            device: 0x0102_0304_0506_0708, topic: topic, environment: .production)
        #expect(token.count == TokenTrust.tokenCount)
        #expect(trust.judge(token, topic: topic) == .good(device: 0x0102_0304_0506_0708))
        #expect(trust.judge(token, topic: Array("a.c".utf8)) == .otherTopic)
        for octet in token.indices {
            for bit in 0..<8 {
                var forged = token
                forged[octet] ^= 1 << UInt8(bit)
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
    }
}
