internal import Glibc
internal import Synchronization

/// Store and forward (Apple, "Quality of Service, Store-and-Forward, and Coalesced Notifications").
///
///     accepted -> online?  yes ------------------------------------> delivered
///                    | no
///                    +-> expiration 0, or past ---> discarded
///                    +-> stored, one an app and collapse identifier: the newest
///                          |                |                  |                 |
///                          coalesced        expired            dropped           delivered
///                          (a newer came)   (its time passed)  (30 days, limits) (back online)
///
/// All threads of an endpoint share one.
final class DeviceStore: Sendable {
    /// Notifications kept in all.
    static let maximumStored = 200_000
    /// Notifications kept for one device: apps times collapse identifiers.
    static let maximumStoredForDevice = 64
    /// Octets of the deliveries that wait to be written.
    private static let flushCount = 1 << 16
    private static let flushIntervalMicroseconds: UInt64 = 200_000

    struct Counts: Sendable, Equatable {
        /// Kept at this moment.
        var stored = 0
        /// Given to devices.
        var delivered: UInt64 = 0
        /// Replaced by a newer one.
        var coalesced: UInt64 = 0
        /// Kept until their expiration passed.
        var expired: UInt64 = 0
        /// Not kept at all: one attempt was asked for, or the expiration had passed.
        var discarded: UInt64 = 0
        /// Let go of after a long time, or for want of room.
        var dropped: UInt64 = 0
    }

    private struct Stored {
        var envelope: Envelope
        var identifier: NotificationIDText
        /// When it was taken, microseconds since the epoch.
        var takenMicroseconds: UInt64
    }

    private struct State {
        var presence: DevicePresence
        var devices: [[UInt8]: [Stored]] = [:]
        var counts = Counts()
        var lines: [UInt8] = []
        var oldestLine: UInt64 = 0
        var hasFailed = false
        /// When all devices were last looked through for what has expired.
        var sweptMicroseconds: UInt64 = 0
    }

    private let state: Mutex<State>
    private let descriptor: Int32
    private let keepMicroseconds: UInt64

    /// - Parameters:
    ///   - deliveries: A file that gets a line a delivery; nil for none.
    ///   - keepNanoseconds: For how long a notification is kept at most.
    init(
        presence: DevicePresence, deliveries: String?, keepNanoseconds: UInt64
    ) throws(SimulatorError) {
        state = Mutex(State(presence: presence))
        keepMicroseconds = keepNanoseconds / 1000
        guard let path = deliveries else {
            descriptor = -1
            return
        }
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw SimulatorError(
                "--deliveries \(path): \(describe(errno: errno)): name a file that can be written",
                exitCode: 2)
        }
        state.withLock { $0.lines = Array(Self.header.utf8) }
        flush()
    }

    private static let header = "t_us,token,topic,apns_id,collapse_id,expiration,from\n"

    // MARK: Notifications

    /// Takes an accepted notification: to the device, or into the store.
    func take(
        _ envelope: Envelope, token: [UInt8], identifier: NotificationIDText, microseconds: UInt64
    ) {
        let token = token.map { $0 | 0x20 }
        let new = Stored(
            envelope: envelope, identifier: identifier, takenMicroseconds: microseconds)
        state.withLock { state in
            if state.presence.isOnline(token) {
                deliver(new, token, "push", microseconds, &state)
            } else if isOver(new, microseconds) {
                // "If the value is 0, APNs attempts to deliver the notification only once and
                // doesn't store it."
                state.counts.discarded += 1
            } else {
                store(new, token, microseconds, &state)
            }
        }
    }

    private func store(
        _ new: Stored, _ token: [UInt8], _ microseconds: UInt64, _ state: inout State
    ) {
        var kept = state.devices[token] ?? []
        if let older = kept.firstIndex(where: {
            $0.envelope.topic == new.envelope.topic
                && $0.envelope.collapseIdentifier == new.envelope.collapseIdentifier
        }) {
            kept.remove(at: older)
            state.counts.stored -= 1
            state.counts.coalesced += 1
        }
        if kept.count == Self.maximumStoredForDevice {
            kept.removeFirst()
            state.counts.stored -= 1
            state.counts.dropped += 1
        }
        if state.counts.stored >= Self.maximumStored {
            // At most once a second: looking through all of them takes its time.
            if microseconds >= state.sweptMicroseconds + 1_000_000 { sweep(microseconds, &state) }
            guard state.counts.stored < Self.maximumStored else {
                state.counts.dropped += 1
                state.devices[token] = kept.isEmpty ? nil : kept
                return
            }
            kept = kept.filter { !isOver($0, microseconds) }
        }
        kept.append(new)
        state.counts.stored += 1
        state.devices[token] = kept
    }

    /// Whether a notification's time has passed.
    private func isOver(_ stored: Stored, _ microseconds: UInt64) -> Bool {
        guard let expiration = stored.envelope.expirationUnixSeconds else { return false }
        return expiration <= microseconds / 1_000_000
    }

    /// Lets go of what is too old; returns what is left.
    private func keepValid(
        _ kept: [Stored], _ microseconds: UInt64, _ state: inout State
    ) -> [Stored] {
        kept.filter { stored in
            if isOver(stored, microseconds) {
                state.counts.expired += 1
            } else if microseconds >= stored.takenMicroseconds + keepMicroseconds {
                state.counts.dropped += 1
            } else {
                return true
            }
            state.counts.stored -= 1
            return false
        }
    }

    private func sweep(_ microseconds: UInt64, _ state: inout State) {
        state.sweptMicroseconds = microseconds
        for (token, kept) in state.devices {
            let valid = keepValid(kept, microseconds, &state)
            if valid.count < kept.count { state.devices[token] = valid.isEmpty ? nil : valid }
        }
    }

    // MARK: Devices

    /// A device comes online and gets what was kept for it, or goes offline. Returns how many it
    /// got; nil where too much was said already.
    func setOnline(_ token: [UInt8], _ isOnline: Bool, microseconds: UInt64) -> Int? {
        state.withLock { state in
            guard state.presence.say(token, isOnline: isOnline) else { return nil }
            guard isOnline, let kept = state.devices.removeValue(forKey: token) else { return 0 }
            let valid = keepValid(kept, microseconds, &state)
            state.counts.stored -= valid.count
            for stored in valid { deliver(stored, token, "store", microseconds, &state) }
            return valid.count
        }
    }

    /// What is stored now, and what became of the others.
    func counts(microseconds: UInt64) -> Counts {
        state.withLock { state in
            sweep(microseconds, &state)
            return state.counts
        }
    }

    // MARK: The file

    private func deliver(
        _ notification: Stored, _ token: [UInt8], _ from: StaticString, _ microseconds: UInt64,
        _ state: inout State
    ) {
        state.counts.delivered += 1
        guard descriptor >= 0 else { return }
        if state.lines.isEmpty { state.oldestLine = microseconds }
        func field(_ octets: some Sequence<UInt8>) {
            state.lines += octets
            state.lines.append(UInt8(ascii: ","))
        }
        let envelope = notification.envelope
        field("\(microseconds)".utf8)
        field(token)
        field(envelope.topic)
        field(notification.identifier.indices.map { notification.identifier[$0] })
        field(Self.quoted(envelope.collapseIdentifier ?? []))
        field((envelope.expirationUnixSeconds.map(String.init) ?? "").utf8)
        state.lines += "\(from)\n".utf8
        if state.lines.count >= Self.flushCount { write(&state) }
    }

    /// As a field of CSV: quotes where it holds a comma or quotes.
    private static func quoted(_ octets: [UInt8]) -> [UInt8] {
        let quote = UInt8(ascii: "\"")
        guard octets.contains(where: { $0 == quote || $0 == UInt8(ascii: ",") }) else {
            return octets
        }
        return [quote] + octets.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
    }

    /// Writes what has waited long enough; returns for how many microseconds the rest may wait.
    func flushIfDue(microseconds: UInt64) -> UInt64? {
        state.withLock { state in
            guard !state.lines.isEmpty else { return nil }
            let due = state.oldestLine + Self.flushIntervalMicroseconds
            if due > microseconds { return due - microseconds }
            write(&state)
            return nil
        }
    }

    /// Writes what waits.
    func flush() { state.withLock { write(&$0) } }

    private func write(_ state: inout State) {
        var offset = 0
        while offset < state.lines.count {
            let count = unsafe state.lines.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress! + offset, $0.count - offset)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                state.hasFailed = true
                break
            }
            offset += count
        }
        state.lines.removeAll(keepingCapacity: true)
    }

    /// After all threads have ended: writes what waits; true where all of it was written.
    func finish() -> Bool {
        flush()
        if descriptor >= 0 { _ = close(descriptor) }
        return state.withLock { !$0.hasFailed }
    }
}
