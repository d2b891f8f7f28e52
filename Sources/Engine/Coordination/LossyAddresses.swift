import BroadsideRing
internal import Synchronization

/// Addresses whose connections end early: rows in flight were lost by one that had not given many times as
/// many responses. A new connection to such an address has as many requests in flight as its responses
/// are worth, so that a server that ends one connection after the other cannot use the list up.
///
///     good --a connection loses more than a quarter of its responses--> lossy
///       ^                                                                 |
///       '------ a connection's responses are worth all its streams -------'
final class LossyAddresses: Sendable {
    /// Responses that one request in flight has to be worth, on a connection to such an address.
    static let responsesEach: UInt64 = 4
    /// Addresses that are remembered: beyond, the oldest goes.
    static let limit = 256

    private let addresses = Mutex<[SocketAddress]>([])
    /// How many there are: mostly none.
    private let count = Atomic<Int>(0)

    func contains(_ address: SocketAddress) -> Bool {
        guard count.load(ordering: .relaxed) > 0 else { return false }
        return addresses.withLock { $0.contains(address) }
    }

    /// A connection ended without an orderly goodbye.
    ///
    /// - Parameters:
    ///   - lost: Requests in flight that may have been acted on.
    ///   - responses: All that it gave.
    func connectionEnded(_ address: SocketAddress, lost: Int, responses: UInt64) {
        guard UInt64(lost) > responses / Self.responsesEach else { return }
        change { addresses in
            guard !addresses.contains(address) else { return }
            if addresses.count == Self.limit { addresses.removeFirst() }
            addresses.append(address)
        }
    }

    /// A connection gave as many responses as all its streams have to be worth.
    func proved(_ address: SocketAddress) {
        change { addresses in addresses.removeAll { $0 == address } }
    }

    /// Requests that a connection to such an address may have in flight.
    static func worth(responses: UInt64) -> Int { max(1, Int(responses / responsesEach)) }

    private func change(_ body: (inout [SocketAddress]) -> Void) {
        addresses.withLock { addresses in
            body(&addresses)
            assert(addresses.count <= Self.limit, "the oldest addresses are forgotten")
            count.store(addresses.count, ordering: .relaxed)
        }
    }
}
