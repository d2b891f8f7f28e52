/// Notifications held for devices that save power, one group per device, in order of arrival.
///
/// A group is due at a fixed interval after its first notification of priority 5. The times in the
/// queue are therefore in order.
struct PowerGroups: Sendable {
    private struct Group {
        var notifications: [KeptNotification] = []
        /// Due time, microseconds; nil if no notification in the group sets a due time. A group
        /// without a due time waits until another notification is delivered.
        var dueMicroseconds: UInt64?
    }

    private var groups: [[UInt8]: Group] = [:]
    /// Tokens by due time; an entry is stale if its group is due at another time.
    private var queue: [(dueMicroseconds: UInt64, token: [UInt8])] = []
    private var first = 0
    /// Maximum number of stale entries in the queue, in addition to one entry per group.
    private static let staleLimit = 1024

    /// Returns the number of notifications held for a token.
    func count(_ token: [UInt8]) -> Int { groups[token]?.notifications.count ?? 0 }

    /// Earliest time at which a group may be due, microseconds; nil if no group has a due time.
    var dueMicroseconds: UInt64? { first < queue.count ? queue[first].dueMicroseconds : nil }

    /// Holds a notification.
    ///
    /// - Parameter dueMicroseconds: Time at which the group becomes due, unless the group is due
    ///   earlier; nil if this notification sets no due time.
    mutating func append(
        _ notification: KeptNotification, _ token: [UInt8], dueMicroseconds: UInt64?
    ) {
        groups[token, default: Group()].notifications.append(notification)
        guard let dueMicroseconds, groups[token]?.dueMicroseconds == nil else { return }
        groups[token]?.dueMicroseconds = dueMicroseconds
        if queue.count >= 2 * groups.count + Self.staleLimit { removeStaleEntries() }
        queue.append((dueMicroseconds, token))
    }

    /// Removes and returns the group of a token.
    mutating func remove(_ token: [UInt8]) -> [KeptNotification] {
        groups.removeValue(forKey: token)?.notifications ?? []
    }

    /// Takes the next due entry from the queue, and returns the token of the entry.
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
