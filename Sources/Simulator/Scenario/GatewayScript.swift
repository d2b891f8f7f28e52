/// The behaviour of the legacy gateway in a scenario: `gateway` in `docs/scenarios.md`.
struct GatewayScript: Sendable, Equatable {
    /// The manner in which a connection ends after an error packet.
    enum End: String, Sendable, CaseIterable {
        /// Orderly: the remaining input is read, then FIN is sent.
        case fin
        /// Abrupt: RST is sent, and the provider may lose a packet that it has not yet read.
        case rst
    }

    /// Delay from a bad notification to its error packet, during which input is read and discarded.
    var errorDelayNanoseconds: UInt64 = 20_000_000
    var end = End.fin
    /// Number of accepted notifications on a connection after which it ends with status 10 and the
    /// identifier of the last one.
    var shutdownEvery: UInt64?
    /// Explicit statuses by token bytes.
    var statuses: [[UInt8]: UInt8] = [:]

    /// Maximum number of tokens with an explicit status.
    static let statusLimit = 10_000
}
