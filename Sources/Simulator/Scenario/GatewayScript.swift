/// Behavior of the legacy gateway in a scenario; see `gateway` in `docs/scenarios.md`.
struct GatewayScript: Sendable, Equatable {
    /// How a connection ends after an error packet.
    enum End: String, Sendable, CaseIterable {
        /// Orderly: all input is read, then FIN is sent.
        case fin
        /// Abrupt: RST is sent. The provider may lose a packet that it has not read yet.
        case rst
    }

    /// The delay from a bad notification to its error packet. Input is read and discarded
    /// meanwhile.
    var errorDelayNanoseconds: UInt64 = 20_000_000
    var end = End.fin
    /// Number of accepted notifications after which a connection ends. It ends with status 10 and
    /// the identifier of the last notification.
    var shutdownEvery: UInt64?
    /// Statuses that the scenario sets for tokens; the keys are bytes of tokens.
    var statuses: [[UInt8]: UInt8] = [:]

    /// Maximum number of tokens with an explicit status.
    static let statusLimit = 10_000
}
