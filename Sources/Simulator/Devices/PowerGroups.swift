/// Notifications that wait for devices that save power, a group for each device, in order.
///
/// A group is due a fixed time after its first notification of priority 5, so the queue of due times
/// is in order by itself.
struct PowerGroups: Sendable {
    private struct Group {
        var notifications: [KeptNotification] = []
        /// When it is due, microseconds; nil: with the next delivery of another kind.
        var dueMicroseconds: UInt64?
    }

    private var groups: [[UInt8]: Group] = [:]
    /// Tokens by due time; an entry is stale if its group is due at another time.
    private var queue: [(dueMicroseconds: UInt64, token: [UInt8])] = []
    private var first = 0
    /// Stale entries that may be in the queue beside one for each group.
    private static let staleLimit = 1024

    /// Notifications held for a token.
    func count(_ token: [UInt8]) -> Int { groups[token]?.notifications.count ?? 0 }

    /// When the next group may be due, microseconds; nil: no group is.
    var dueMicroseconds: UInt64? { first < queue.count ? queue[first].dueMicroseconds : nil }

    /// Holds a notification.
    ///
    /// - Parameter dueMicroseconds: When its group is due at the latest; nil: it makes no group due.
    mutating func append(
        _ notification: KeptNotification, _ token: [UInt8], dueMicroseconds: UInt64?
    ) {
        groups[token, default: Group()].notifications.append(notification)
        guard let dueMicroseconds, groups[token]?.dueMicroseconds == nil else { return }
        groups[token]?.dueMicroseconds = dueMicroseconds
        if queue.count >= 2 * groups.count + Self.staleLimit { removeStaleEntries() }
        queue.append((dueMicroseconds, token))
    }

    /// Removes a token's group and returns it.
    mutating func remove(_ token: [UInt8]) -> [KeptNotification] {
        groups.removeValue(forKey: token)?.notifications ?? []
    }

    /// The token of a group that is due; its entry in the queue is gone afterwards.
    mutating func nextDue(_ microseconds: UInt64) -> [UInt8]? {
        while first < queue.count, queue[first].dueMicroseconds <= microseconds {
            let entry = queue[first]
            first += 1
            assert(first <= queue.count, "entries are passed over once")
            if first >= Self.staleLimit { removeStaleEntries() }
            if groups[entry.token]?.dueMicroseconds == entry.dueMicroseconds { return entry.token }
        }
        return nil
    }

    private mutating func removeStaleEntries() {
        queue = queue[first...].filter { groups[$0.token]?.dueMicroseconds == $0.dueMicroseconds }
        first = 0
    }
}
