import BroadsideRing
internal import Synchronization

/// Addresses to which a connection ended early and lost many requests: more than a quarter of the
/// number of its responses. On a new connection to such an address, the limit on requests in flight
/// grows with the number of responses. Without this limit, a server that ends each connection could
/// put all rows of the list in doubt.
///
///     good -- a connection loses more than a quarter of its responses --> lossy
///       ^                                                                   |
///       '-- a connection has enough responses to use all of its streams ----'
final class LossyAddresses: Sendable {
    /// Number of responses that raises a connection's limit on requests in flight by one.
    static let responsesEach: UInt64 = 4
    /// Limit on entries; beyond it, the oldest entry is dropped.
    static let limit = 256

    private let addresses = Mutex<[SocketAddress]>([])
    /// Number of entries, usually 0; read without taking the lock.
    private let count = Atomic<Int>(0)

    func contains(_ address: SocketAddress) -> Bool {
        guard count.load(ordering: .relaxed) > 0 else { return false }
        return addresses.withLock { $0.contains(address) }
    }

    /// Records a connection that ended without an orderly shutdown.
    ///
    /// - Parameters:
    ///   - lost: Number of requests in flight that the server may have acted on.
    ///   - responses: Number of responses on the connection.
    func connectionEnded(_ address: SocketAddress, lost: Int, responses: UInt64) {
        guard UInt64(lost) > responses / Self.responsesEach else { return }
        change { addresses in
            guard !addresses.contains(address) else { return }
            if addresses.count == Self.limit { addresses.removeFirst() }
            addresses.append(address)
        }
    }

    /// Removes an address. Called when a connection to the address has had so many responses that
    /// all of its streams may be used at once.
    func proved(_ address: SocketAddress) {
        change { addresses in addresses.removeAll { $0 == address } }
    }

    /// Maximum number of requests in flight on a connection that has had this many responses.
    static func worth(responses: UInt64) -> Int { max(1, Int(responses / responsesEach)) }

    private func change(_ body: (inout [SocketAddress]) -> Void) {
        addresses.withLock { addresses in
            body(&addresses)
            assert(addresses.count <= Self.limit, "the oldest addresses are forgotten")
            count.store(addresses.count, ordering: .relaxed)
        }
    }
}
