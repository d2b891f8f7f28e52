internal import Glibc
internal import Synchronization

/// A store of notifications for devices that are offline or save power (Apple, "Quality of Service,
/// Store-and-Forward, and Coalesced Notifications").
///
/// An accepted notification is treated as follows:
///
/// - The device is online and does not save power, or it is online and the priority is 10: the
///   notification is delivered at once.
/// - Otherwise, the expiration is 0 or has passed: the notification is discarded.
/// - The device is online and saves power: the notification is held, and delivered with its group.
///   If the device goes offline first, the notification is stored.
/// - The device is offline: the notification is stored, and delivered when the device is online
///   again.
///
/// A stored notification is not delivered in three cases: a newer notification of the same app
/// replaces it (coalesced), its expiration passes (expired), or its age or the number of stored
/// notifications exceeds a limit (dropped).
///
/// Shared by all threads of an endpoint.
final class DeviceStore: Sendable {
    /// Maximum number of notifications stored or held in total.
    static let maximumStored = 200_000
    /// Maximum number of notifications stored or held for one device.
    static let maximumStoredForDevice = 64

    struct Counts: Sendable, Equatable {
        /// Notifications currently stored for devices that are offline.
        var stored = 0
        /// Notifications currently held for devices that save power.
        var held = 0
        /// Notifications delivered to devices.
        var delivered: UInt64 = 0
        /// Notifications replaced by a newer one.
        var coalesced: UInt64 = 0
        /// Notifications whose expiration passed while they were stored or held.
        var expired: UInt64 = 0
        /// Notifications that were not stored, because a single attempt was requested or the
        /// expiration had passed.
        var discarded: UInt64 = 0
        /// Notifications dropped because of their age, or because the store was full.
        var dropped: UInt64 = 0

        /// Adds the counts of notifications that are no longer kept.
        fileprivate mutating func addSettled(_ other: Counts) {
            delivered += other.delivered
            coalesced += other.coalesced
            expired += other.expired
            discarded += other.discarded
            dropped += other.dropped
        }
    }

    /// The limits on the number of notifications, and on the time for which they are kept.
    struct Rules: Sendable {
        var store = StoreRule.app
        /// Maximum time for which a notification is kept.
        var keepNanoseconds: UInt64 = 30 * 86_400_000_000_000
        /// Time from the first held notification of priority 5 to the delivery of its group.
        var groupNanoseconds: UInt64 = 30_000_000_000
    }

    private struct State {
        var offline: DeviceCondition
        var savingPower: DeviceCondition
        var stored: [[UInt8]: [KeptNotification]] = [:]
        var groups = PowerGroups()
        var counts = Counts()
        /// Counts of notifications that were no longer kept at the last reset.
        var earlier = Counts()
        var deliveries: DeliveryLines
        /// Time of the last scan of all devices for expired notifications.
        var sweptMicroseconds: UInt64 = 0
    }

    private let state: Mutex<State>
    private let rules: Rules
    /// The conditions with which the simulator started. `reset` restores them.
    private let conditions: (offline: DeviceCondition, savingPower: DeviceCondition)

    /// - Parameter deliveries: Output file with one line per delivery; nil for none.
    init(
        offline: DeviceCondition = DeviceCondition(.offline),
        savingPower: DeviceCondition = DeviceCondition(.savingPower), deliveries: String? = nil,
        rules: Rules = Rules()
    ) throws(SimulatorError) {
        self.rules = rules
        conditions = (offline, savingPower)
        let lines = try DeliveryLines(path: deliveries)
        state = Mutex(State(offline: offline, savingPower: savingPower, deliveries: lines))
    }

    // MARK: Notifications

    /// Delivers or stores an accepted notification.
    func take(
        _ envelope: Envelope, token: [UInt8], identifier: NotificationIDText, microseconds: UInt64
    ) {
        let token = token.map { $0 | 0x20 }
        let new = KeptNotification(
            envelope: envelope, identifier: identifier, takenMicroseconds: microseconds)
        state.withLock { state in
            deliverGroups(microseconds, &state)
            let isOffline = state.offline.holds(token)
            let waitsForGroup = new.envelope.priority < 10 && state.savingPower.holds(token)
            if !isOffline, !waitsForGroup {
                deliver([new], token, "push", microseconds, &state)
            } else if new.isOver(microseconds) {
                // "If the value is 0, APNs attempts to deliver the notification only once and
                // doesn't store it."
                state.counts.discarded += 1
            } else if isOffline {
                store(new, token, microseconds, &state)
            } else {
                hold(new, token, microseconds, &state)
            }
        }
    }

    /// Delivers a broadcast to the subscribers that are online, even if they save power. Returns
    /// the subscribers that are offline.
    func deliver(
        _ notification: KeptNotification, to tokens: Set<[UInt8]>, from: StaticString,
        microseconds: UInt64
    ) -> Set<[UInt8]> {
        state.withLock { state in
            let away = tokens.filter { state.offline.holds($0) }
            for token in tokens.subtracting(away) {
                deliver([notification], token, from, microseconds, &state)
            }
            return away
        }
    }

    /// Whether a new notification replaces an older one. "APNs stores only one notification per
    /// bundle ID."
    private func isReplaced(_ older: KeptNotification, by new: KeptNotification) -> Bool {
        guard older.envelope.topic == new.envelope.topic else { return false }
        return rules.store == .app
            || older.envelope.collapseIdentifier == new.envelope.collapseIdentifier
    }

    private func store(
        _ new: KeptNotification, _ token: [UInt8], _ microseconds: UInt64, _ state: inout State
    ) {
        var kept = state.stored[token] ?? []
        if let older = kept.firstIndex(where: { isReplaced($0, by: new) }) {
            kept.remove(at: older)
            state.counts.stored -= 1
            state.counts.coalesced += 1
        }
        assert(kept.count <= Self.maximumStoredForDevice, "a device has so many notifications")
        if kept.count == Self.maximumStoredForDevice {
            kept.removeFirst()
            state.counts.stored -= 1
            state.counts.dropped += 1
        }
        state.stored[token] = kept.isEmpty ? nil : kept
        guard hasRoom(microseconds, &state) else { return }
        state.stored[token, default: []].append(new)
        state.counts.stored += 1
        assert(
            state.offline.holds(token), "notifications are stored only for offline devices")
    }

    /// Holds a notification for a device that saves power. "Notifications with this priority might
    /// be grouped and delivered in bursts."
    private func hold(
        _ new: KeptNotification, _ token: [UInt8], _ microseconds: UInt64, _ state: inout State
    ) {
        guard state.groups.count(token) < Self.maximumStoredForDevice else {
            state.counts.dropped += 1
            return
        }
        guard hasRoom(microseconds, &state) else { return }
        // Priority 1 "prevents awakening the device": such a notification is delivered together
        // with another notification.
        let due = new.envelope.priority == 1 ? nil : microseconds + rules.groupNanoseconds / 1000
        state.groups.append(new, token, dueMicroseconds: due)
        state.counts.held += 1
    }

    /// Returns whether one more notification can be kept. If not, counts the notification as
    /// dropped.
    private func hasRoom(_ microseconds: UInt64, _ state: inout State) -> Bool {
        assert(state.counts.stored >= 0 && state.counts.held >= 0, "what is kept is counted once")
        func isFull() -> Bool { state.counts.stored + state.counts.held >= Self.maximumStored }
        // At most once a second, because the scan visits every device.
        if isFull(), microseconds >= state.sweptMicroseconds + 1_000_000 {
            sweep(microseconds, &state)
        }
        guard isFull() else { return true }
        state.counts.dropped += 1
        return false
    }

    /// Removes and counts the notifications that are too old, and returns all others.
    private func keepValid(
        _ kept: [KeptNotification], _ microseconds: UInt64, _ state: inout State
    ) -> [KeptNotification] {
        kept.filter { notification in
            if notification.isOver(microseconds) {
                state.counts.expired += 1
            } else if microseconds
                >= notification.takenMicroseconds + rules.keepNanoseconds / 1000
            {
                state.counts.dropped += 1
            } else {
                return true
            }
            return false
        }
    }

    private func sweep(_ microseconds: UInt64, _ state: inout State) {
        state.sweptMicroseconds = microseconds
        for (token, kept) in state.stored {
            let valid = keepValid(kept, microseconds, &state)
            guard valid.count < kept.count else { continue }
            state.counts.stored -= kept.count - valid.count
            assert(state.counts.stored >= 0, "what is kept is counted once")
            state.stored[token] = valid.isEmpty ? nil : valid
        }
    }

    // MARK: Devices

    /// Sets whether a device is online. A device that comes online gets its stored notifications.
    /// Returns their number, or nil if too many devices have an explicit setting.
    func setOnline(_ token: [UInt8], _ isOnline: Bool, microseconds: UInt64) -> Int? {
        state.withLock { state in
            deliverGroups(microseconds, &state)
            guard state.offline.set(token, !isOnline) else { return nil }
            guard isOnline else {
                for held in state.groups.remove(token) {
                    state.counts.held -= 1
                    store(held, token, microseconds, &state)
                }
                return 0
            }
            guard let kept = state.stored.removeValue(forKey: token) else { return 0 }
            state.counts.stored -= kept.count
            assert(state.counts.stored >= 0, "what is kept is counted once")
            let valid = keepValid(kept, microseconds, &state)
            deliver(valid, token, "store", microseconds, &state)
            return valid.count
        }
    }

    /// Sets whether a device saves power. A device that stops saving power gets the notifications
    /// held for it. Returns their number, or nil if too many devices have an explicit setting.
    func setSavingPower(_ token: [UInt8], _ saves: Bool, microseconds: UInt64) -> Int? {
        state.withLock { state in
            deliverGroups(microseconds, &state)
            guard state.savingPower.set(token, saves) else { return nil }
            return saves ? 0 : deliverGroup(token, microseconds, &state)
        }
    }

    /// Removes all notifications and counts, and restores the conditions of the start.
    func reset() {
        state.withLock { state in
            state.offline = conditions.offline
            state.savingPower = conditions.savingPower
            state.stored = [:]
            state.groups = PowerGroups()
            state.earlier.addSettled(state.counts)
            state.counts = Counts()
            state.deliveries.flush()
        }
    }

    /// Delivers the groups that are due.
    private func deliverGroups(_ microseconds: UInt64, _ state: inout State) {
        while let token = state.groups.nextDue(microseconds) {
            _ = deliverGroup(token, microseconds, &state)
        }
    }

    private func deliverGroup(
        _ token: [UInt8], _ microseconds: UInt64, _ state: inout State
    ) -> Int {
        let group = state.groups.remove(token)
        state.counts.held -= group.count
        assert(state.counts.held >= 0, "what is kept is counted once")
        let valid = keepValid(group, microseconds, &state)
        deliver(valid, token, "group", microseconds, &state)
        return valid.count
    }

    /// The numbers of notifications that are kept now, and the other counts since the start.
    func totals(microseconds: UInt64) -> Counts {
        var totals = counts(microseconds: microseconds)
        totals.addSettled(state.withLock { $0.earlier })
        return totals
    }

    /// The numbers of notifications that are kept now, and the other counts since the last reset.
    func counts(microseconds: UInt64) -> Counts {
        state.withLock { state in
            deliverGroups(microseconds, &state)
            sweep(microseconds, &state)
            assert(
                state.counts.stored == state.stored.values.reduce(0) { $0 + $1.count },
                "the count equals the number of stored notifications")
            return state.counts
        }
    }

    // MARK: Output file

    private func deliver(
        _ notifications: [KeptNotification], _ token: [UInt8], _ from: StaticString,
        _ microseconds: UInt64, _ state: inout State
    ) {
        state.counts.delivered += UInt64(notifications.count)
        for notification in notifications {
            state.deliveries.append(notification, token, from, microseconds)
        }
    }

    /// Performs the work that is due; returns the microseconds until the next work is due, or nil
    /// if none is pending.
    func settleDue(microseconds: UInt64) -> UInt64? {
        state.withLock { state in
            deliverGroups(microseconds, &state)
            let due = [state.groups.dueMicroseconds, state.deliveries.flushDue(microseconds)]
            return due.compactMap { $0 }.min().map { $0 > microseconds ? $0 - microseconds : 0 }
        }
    }

    /// Writes the buffered delivery lines.
    func flush() { state.withLock { $0.deliveries.flush() } }

    /// Writes the buffered delivery lines after all threads have ended; returns true if every line
    /// was written.
    func finish() -> Bool { state.withLock { $0.deliveries.finish() } }
}
