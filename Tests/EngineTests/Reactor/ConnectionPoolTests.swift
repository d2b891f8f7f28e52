import BroadsidePolicy
import BroadsideRing
import BroadsideSupport
import Synchronization
import Testing

@testable import BroadsideEngine

/// The connections of a reactor.
@Suite struct ConnectionPoolTests {
    /// Counts what is alive.
    private final class Living: Sendable {
        let count = Atomic(0)
    }

    /// A record layer that is counted while it lives.
    private struct CountedRecords: RecordLayer, ~Copyable {
        private let living: Living
        let isEstablished = true
        var closedEarly: RecordLayerError? { nil }

        init(configuration: Living) {
            living = configuration
            living.count.add(1, ordering: .relaxed)
        }

        deinit { living.count.subtract(1, ordering: .relaxed) }

        mutating func receive(
            _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
            ciphertext: inout OutputRawSpan
        ) -> RecordLayerResult { .more }

        mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool { true }
        mutating func close(ciphertext: inout OutputRawSpan) {}
        static func sealedCount(_ plaintextCount: Int) -> Int { plaintextCount }
    }

    @Test func `Behind a proxy only the proxy is the peer until the tunnel stands`() {
        var settings = ScriptedRun.settings
        settings.tunnelTarget = "api.push.apple.com:443"
        let book = AddressBook(health: AddressHealth(), lossy: LossyAddresses(), reactor: 0)
        var pool = ConnectionPool<CountedRecords>(
            settings: settings, recordConfiguration: Living(), addresses: book, initialCount: 1,
            now: ScriptedRun.start)
        pool.addresses.update(
            [.v4(0x0a00_0001, port: 8080)], now: ScriptedRun.start.nanoseconds
        ) { _ in false }
        pool.grow {
            Connection(rateLimiter: RateLimiter(milliRate: nil, now: 0), outgoingCapacity: 64)
        }
        var peers: [String] = []
        pool[0].enter(.connecting, now: 0)
        peers.append(pool.peer(0))
        pool[0].records = CountedRecords(configuration: Living())
        pool[0].enter(.handshaking, now: 0)
        peers.append(pool.peer(0))
        pool[0].enter(.open, now: 0)
        peers.append(pool.peer(0))
        #expect(peers[0] == "the proxy 10.0.0.1:8080")
        #expect(
            peers[1...] == [
                "api.push.apple.com:443 through the proxy 10.0.0.1:8080",
                "api.push.apple.com:443 through the proxy 10.0.0.1:8080",
            ])
    }

    // In a checked build, the pool of this test is generic code that was optimized. The value witness
    // of such a pool skips its `deinit` (Swift 6.3). A reactor's pool is specialized, and ends.
    #if !CHECKED_BUILD
        @Test func `Open connections at a reactor's end leave nothing behind`() {
            let living = Living()
            do {
                var settings = ScriptedRun.settings
                settings.connections = 3
                var pool = ConnectionPool<CountedRecords>(
                    settings: settings, recordConfiguration: living,
                    addresses: AddressBook(
                        health: AddressHealth(), lossy: LossyAddresses(), reactor: 0),
                    initialCount: 3,
                    now: ScriptedRun.start)
                pool.grow {
                    Connection(
                        rateLimiter: RateLimiter(milliRate: nil, now: 0), outgoingCapacity: 64)
                }
                #expect(pool.count == 6)
                for index in 0..<pool.count {
                    pool[index].records = CountedRecords(configuration: living)
                }
                #expect(living.count.load(ordering: .relaxed) == 6)
            }
            #expect(living.count.load(ordering: .relaxed) == 0)
        }
    #endif
}
