import BroadsideSupport
internal import Synchronization

/// Limits new connections to ten in any second, over all reactors and addresses. If a server ended
/// each connection early, reconnecting without this limit would flood the server, and Apple would
/// treat that as an attack.
package final class ConnectRateLimiter: Sendable {
    /// The start times of the last connections, monotonic nanoseconds, oldest first.
    private let begun = Mutex<[UInt64]>([])

    /// Maximum number of new connections in any second.
    static let limit = 10

    package init() {}

    /// Tries to reserve one of the connection attempts that are permitted per second.
    ///
    /// - Returns: nil if reserved; otherwise the earliest time to retry.
    package func reserve(now: UInt64) -> UInt64? {
        begun.withLock { begun in
            if begun.count == Self.limit {
                let free = begun[0] + second
                // Reactors read their clocks independently: a later time may arrive first.
                if now < free { return free }
                begun.removeFirst()
            }
            begun.append(max(now, begun.last ?? 0))
            assert(begun.count <= Self.limit, "only the last attempts are kept")
            return nil
        }
    }

    /// Gives back a reservation that was not used.
    func cancelReservation(now: UInt64) {
        begun.withLock { _ = $0.popLast() }
    }
}
