import BroadsideSupport
internal import Synchronization

/// Holds new connections to ten in any second, over all reactors and addresses: a server that ends
/// each connection soon is not stormed, and Apple takes rapid reconnecting for an attack.
final class ConnectRateLimiter: Sendable {
    /// When the last connections were begun, monotonic nanoseconds, oldest first.
    private let begun = Mutex<[UInt64]>([])

    /// So many in any second.
    static let limit = 10

    /// Takes leave to begin a connection now.
    ///
    /// - Returns: nil where it is given; else when to ask again.
    func reserve(now: UInt64) -> UInt64? {
        begun.withLock { begun in
            if begun.count == Self.limit {
                let free = begun[0] + second
                // Reactors' clocks are read one after the other: a later one may have come first.
                if now < free { return free }
                begun.removeFirst()
            }
            begun.append(max(now, begun.last ?? 0))
            assert(begun.count <= Self.limit, "only the last attempts are kept")
            return nil
        }
    }

    /// The leave was not used.
    func cancelReservation(now: UInt64) {
        begun.withLock { _ = $0.popLast() }
    }
}
