/// What a scenario has the legacy gateway do: `gateway` of `docs/scenarios.md`.
struct GatewayScript: Sendable, Equatable {
    /// How a connection ends behind an error packet.
    enum End: String, Sendable, CaseIterable {
        /// In order: what still comes is read, then FIN.
        case fin
        /// By RST: a packet that the provider has not read by then may be lost.
        case rst
    }

    /// From a bad notification to its error packet; reading and discarding go on meanwhile.
    var errorDelayNanoseconds: UInt64 = 20_000_000
    var end = End.fin
    /// After each so many accepted notifications of a connection: status 10, the last one named.
    var shutdownEvery: UInt64?
    /// Statuses by token, bytes.
    var statuses: [[UInt8]: UInt8] = [:]

    /// How many tokens may have a status of their own.
    static let statusLimit = 10_000
}
