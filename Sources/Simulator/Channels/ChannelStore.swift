internal import BroadsideAPNs
internal import BroadsideSupport
internal import Glibc
internal import Synchronization

/// The broadcast channels of a simulated APNs: their policy, their subscribers, and the newest
/// broadcast of each.
///
///     broadcast -> subscriber online? yes ----------------------------------> delivered
///                          | no
///                          +-> policy 0, or expiration 0 -> never
///                          +-> stored: one for each channel -- comes online -> delivered
///                                |                |
///                                a newer one      8 hours, or its expiration
///
/// Shared by all threads of an endpoint.
final class ChannelStore: Sendable {
    /// Maximum number of subscriptions in total.
    static let subscriptionsLimit = 200_000

    /// A broadcast kept for the subscribers that were offline.
    private struct Stored {
        var notification: KeptNotification
        /// Time until which the broadcast is kept, microseconds since the epoch.
        var untilMicroseconds: UInt64
        /// Subscribers to which the broadcast was not delivered yet.
        var pending: Set<[UInt8]>
    }

    private struct Channel {
        var storage: BroadcastChannel.Storage
        var subscribers: Set<[UInt8]> = []
        var stored: Stored?
    }

    private struct State {
        /// Channels, by app and then by ID, and the IDs in the order of their creation.
        var channels: [[UInt8]: [[UInt8]: Channel]] = [:]
        var order: [[UInt8]: [[UInt8]]] = [:]
        var subscriptions = 0
        var random: UInt64
    }

    /// The counts for the control socket.
    struct Counts: Sendable {
        var channels = 0
        var subscriptions = 0
        var stored = 0
    }

    /// The result of a request that was performed.
    struct Result: Sendable {
        var response: Response
        /// The ID of the created channel; empty if the request created none.
        var channel: [UInt8] = []
        var body: [UInt8] = []
    }

    private let state: Mutex<State>
    private let devices: DeviceStore?

    /// - Parameter devices: The devices that may subscribe; nil if there are none.
    init(seed: UInt64 = 0, devices: DeviceStore? = nil) {
        self.devices = devices
        state = Mutex(State(random: seed ^ 0x6368_616e_6e65_6c73))
    }

    /// Removes all channels and subscriptions.
    func reset() {
        state.withLock { state in
            state.channels = [:]
            state.order = [:]
            state.subscriptions = 0
        }
    }

    // MARK: Requests

    /// Performs a request whose header fields are valid.
    func perform(
        _ request: ChannelRequest, body: [UInt8], identifier: NotificationIDText,
        microseconds: UInt64
    ) -> Result {
        do throws(ChannelRequest.Refusal) {
            let storage =
                request.operation == .create ? try ChannelConfiguration.storage(body) : nil
            return try state.withLock { (state) throws(ChannelRequest.Refusal) in
                switch request.operation {
                case .create: try create(request.app, storage ?? .none, &state)
                case .list: list(request.app, state)
                case .read:
                    try read(request, state)
                case .delete: try delete(request, &state)
                case .broadcast: try broadcast(request, identifier, microseconds, &state)
                }
            }
        } catch {
            return Result(response: .refused(error.reason))
        }
    }

    private func create(
        _ app: [UInt8], _ storage: BroadcastChannel.Storage, _ state: inout State
    ) throws(ChannelRequest.Refusal) -> Result {
        guard state.channels[app, default: [:]].count < BroadcastChannel.countMax else {
            throw .init(.cannotCreateChannelConfig)
        }
        let identifier = Self.newID(&state.random)
        assert(state.channels[app]?[identifier] == nil, "an ID is never used again")
        state.channels[app, default: [:]][identifier] = Channel(storage: storage)
        state.order[app, default: []].append(identifier)
        assert(
            state.order[app]?.count == state.channels[app]?.count, "each channel is listed once")
        return Result(response: Response(status: 201, reason: nil), channel: identifier)
    }

    private func list(_ app: [UInt8], _ state: State) -> Result {
        var body = Array("{\"channels\":[".utf8)
        for (index, channel) in state.order[app, default: []].enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            body += [UInt8(ascii: "\"")] + channel + [UInt8(ascii: "\"")]
        }
        return Result(response: .accepted, body: body + Array("]}".utf8))
    }

    private func read(
        _ request: ChannelRequest, _ state: State
    ) throws(ChannelRequest.Refusal) -> Result {
        let channel = try find(request, state)
        let body =
            "{\"message-storage-policy\":\(channel.storage.policy),\"push-type\":\"\(BroadcastChannel.pushType)\"}"
        return Result(response: .accepted, body: Array(body.utf8))
    }

    private func delete(
        _ request: ChannelRequest, _ state: inout State
    ) throws(ChannelRequest.Refusal) -> Result {
        let channel = try find(request, state)
        state.subscriptions -= channel.subscribers.count
        assert(state.subscriptions >= 0, "a subscription is counted once")
        state.channels[request.app]?[request.channel] = nil
        state.order[request.app]?.removeAll { $0 == request.channel }
        assert(
            state.order[request.app]?.count == state.channels[request.app]?.count,
            "a deleted channel is no longer listed")
        return Result(response: Response(status: 204, reason: nil))
    }

    private func broadcast(
        _ request: ChannelRequest, _ identifier: NotificationIDText, _ microseconds: UInt64,
        _ state: inout State
    ) throws(ChannelRequest.Refusal) -> Result {
        var channel = try find(request, state)
        // A channel with the policy "No Message Stored" stores nothing, so a broadcast to it must
        // have no expiration.
        guard channel.storage == .newest || request.expirationUnixSeconds == 0 else {
            throw .init(.badExpirationDate)
        }
        let notification = KeptNotification(
            envelope: Envelope(
                topic: request.app, collapseIdentifier: nil,
                expirationUnixSeconds: request.expirationUnixSeconds, priority: request.priority),
            identifier: identifier, takenMicroseconds: microseconds)
        let away =
            devices?.deliver(
                notification, to: channel.subscribers, from: "broadcast",
                microseconds: microseconds) ?? channel.subscribers
        if channel.storage == .newest, request.expirationUnixSeconds > 0 {
            let limit = microseconds + BroadcastChannel.storageSecondsMax * 1_000_000
            let (expiration, isFar) = request.expirationUnixSeconds.multipliedReportingOverflow(
                by: 1_000_000)
            channel.stored = Stored(
                notification: notification,
                untilMicroseconds: isFar ? limit : min(limit, expiration), pending: away)
            assert(away.isSubset(of: channel.subscribers), "only subscribers wait for it")
            state.channels[request.app]?[request.channel] = channel
        }
        return Result(response: .accepted)
    }

    private func find(
        _ request: ChannelRequest, _ state: State
    ) throws(ChannelRequest.Refusal) -> Channel {
        guard let channel = state.channels[request.app]?[request.channel] else {
            throw .init(.channelNotRegistered)
        }
        return channel
    }

    /// Returns a new ID: base64 of 16 random bytes.
    private static func newID(_ random: inout UInt64) -> [UInt8] {
        random &+= 2
        let (high, low) = (splitmix64(random), splitmix64(random &+ 1))
        let bytes = (0..<16).map { (index: Int) -> UInt8 in
            let word = index < 8 ? high : low
            return UInt8(truncatingIfNeeded: word >> UInt64(index % 8 * 8))
        }
        let identifier = base64(bytes)
        assert(BroadcastChannel.isID(identifier), "an ID is one that clients accept")
        return identifier
    }

    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = Array(bytes[start..<min(start + 3, bytes.count)])
            let padded = group + [UInt8](repeating: 0, count: 3 - group.count)
            let bits = Int(padded[0]) << 16 | Int(padded[1]) << 8 | Int(padded[2])
            for digit in 0..<4 {
                text.append(
                    digit <= group.count
                        ? alphabet[bits >> (18 - 6 * digit) & 63] : UInt8(ascii: "="))
            }
        }
        return text
    }

    // MARK: Devices

    /// Subscribes a device to a channel, or ends its subscription. Returns nil, or the reason why
    /// this is impossible.
    func setSubscribed(_ token: [UInt8], to channel: [UInt8], _ isSubscribed: Bool) -> String? {
        state.withLock { state in
            guard let app = state.channels.first(where: { $0.value[channel] != nil })?.key else {
                return "no such channel: copy the ID from the response that created the channel"
            }
            if isSubscribed {
                guard state.channels[app]?[channel]?.subscribers.contains(token) == false else {
                    return nil
                }
                guard state.subscriptions < Self.subscriptionsLimit else {
                    return
                        "there are already \(Self.subscriptionsLimit) subscriptions: unsubscribe some "
                        + "devices first"
                }
                state.channels[app]?[channel]?.subscribers.insert(token)
                // A later subscriber gets the stored broadcast when it comes online, as all others.
                state.channels[app]?[channel]?.stored?.pending.insert(token)
                state.subscriptions += 1
            } else if state.channels[app]?[channel]?.subscribers.remove(token) != nil {
                state.channels[app]?[channel]?.stored?.pending.remove(token)
                state.subscriptions -= 1
                assert(state.subscriptions >= 0, "a subscription is counted once")
            }
            return nil
        }
    }

    /// Delivers the stored broadcasts to a device that came online, and returns their number.
    func cameOnline(_ token: [UInt8], microseconds: UInt64) -> Int {
        state.withLock { state in
            var count = 0
            for (app, channels) in state.channels {
                for (identifier, channel) in channels {
                    guard let stored = channel.stored, stored.pending.contains(token) else {
                        continue
                    }
                    state.channels[app]?[identifier]?.stored?.pending.remove(token)
                    guard microseconds < stored.untilMicroseconds else { continue }
                    let away = devices?.deliver(
                        stored.notification, to: [token], from: "channel",
                        microseconds: microseconds)
                    if away?.isEmpty == true { count += 1 }
                }
            }
            return count
        }
    }

    /// Counts of channels, subscriptions and stored broadcasts.
    func counts(microseconds: UInt64) -> Counts {
        state.withLock { state in
            let channels = state.channels.values.flatMap(\.values)
            assert(
                channels.reduce(0) { $0 + $1.subscribers.count } == state.subscriptions,
                "each subscription is counted once")
            return Counts(
                channels: channels.count, subscriptions: state.subscriptions,
                stored: channels.count {
                    $0.stored.map { microseconds < $0.untilMicroseconds } ?? false
                })
        }
    }
}
