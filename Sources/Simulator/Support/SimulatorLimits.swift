/// Fixed limits of the simulator.
enum SimulatorLimits {
    /// Maximum number of connections per thread. Further connections are closed as soon as they are
    /// accepted.
    static let connectionsPerThread = 4096
    /// SETTINGS_MAX_HEADER_LIST_SIZE, as announced by APNs.
    static let headerListSize = 8000
    /// Maximum size of a header block on the wire, bytes: the sum over all its frames.
    static let headerBlockCount = 16_384
    /// Maximum size of responses that a client may leave unread, bytes. Responses to its open
    /// streams are not included.
    static let unreadOutputCount = 1 << 20
    /// Maximum size of an accepted frame, SETTINGS_MAX_FRAME_SIZE.
    static let frameSize = 16_384
    /// Maximum number of verified provider tokens cached per thread.
    static let cachedTokens = 64
    /// Maximum time for which a connection may have no requests, nanoseconds. About an hour was
    /// observed in practice.
    static let idleNanoseconds: UInt64 = 3_600_000_000_000
    /// Maximum duration of a TLS handshake, nanoseconds.
    static let handshakeNanoseconds: UInt64 = 15_000_000_000
    /// Time for which pending responses are still sent after the endpoint was stopped, nanoseconds.
    static let stopNanoseconds: UInt64 = 1_000_000_000
    /// Time for which pending responses are still sent to a client that opened too many streams,
    /// nanoseconds.
    static let violationNanoseconds: UInt64 = 60_000_000_000
    /// Maximum number of bytes whose processing a connection defers. The kernel buffers all others.
    static let heldInputCount = 1 << 18
    /// Maximum number of host names in the server's certificate besides localhost.
    static let serverNames = 64
    /// Maximum number of requests kept for the command `received`.
    static let keptRequests = 1_000_000
    /// Maximum number of device tokens that `--issue-tokens` creates.
    static let issuedTokens = 10_000_000
    /// Time for which a thread accepts no connection if no more files can be opened, nanoseconds.
    static let acceptPauseNanoseconds: UInt64 = 100_000_000
}
