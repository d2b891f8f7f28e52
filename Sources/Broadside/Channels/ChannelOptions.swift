public import BroadsideAPNs

/// Options of `broadside channel`.
public struct ChannelOptions: Sendable {
    /// Operation on channels.
    public enum Action: String, Sendable, CaseIterable {
        /// Create a channel.
        case create
        /// Read a channel.
        case read
        /// List all channels.
        case list
        /// Delete a channel.
        case delete
    }

    /// Operation to perform.
    public var action = Action.list
    /// Storage policy of a new channel: which broadcasts APNs stores for offline subscribers.
    public var storage = BroadcastChannel.Storage.none
    /// Options for app, channel, credential and output. A delete must be confirmed.
    public var request = ChannelRequestOptions()

    /// Creates options with their defaults.
    public init() {}
}
