/// Protocol that carries a campaign.
public enum WireProtocol: String, Sendable, CaseIterable {
    /// The provider API.
    case http2
    /// The legacy gateway's binary protocol.
    case binary
}
