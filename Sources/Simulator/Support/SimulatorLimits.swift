/// Limits of the simulator that no option moves.
enum SimulatorLimits {
    /// Connections a thread; more are closed as soon as they are accepted.
    static let connectionsPerThread = 4096
    /// SETTINGS_MAX_HEADER_LIST_SIZE, as APNs announces it.
    static let headerListSize = 8000
    /// Bytes of one header block on the wire, all its frames together.
    static let headerBlockCount = 16_384
    /// Answers in bytes that a client may leave unread, beside those of its open streams.
    static let unreadOutputCount = 1 << 20
    /// The largest frame that is taken, SETTINGS_MAX_FRAME_SIZE.
    static let frameSize = 16_384
    /// Verified provider tokens that a thread remembers.
    static let cachedTokens = 64
    /// For how long a connection may go without a request: about an hour was seen in the field.
    static let idleNanoseconds: UInt64 = 3_600_000_000_000
    /// How long a TLS handshake may take.
    static let handshakeNanoseconds: UInt64 = 15_000_000_000
    /// For how long answers that wait are still given once the endpoint is told to stop.
    static let stopNanoseconds: UInt64 = 1_000_000_000
    /// Bytes that a connection holds back unread; the kernel holds the rest.
    static let heldInputCount = 1 << 18
    /// Device tokens that `--issue-tokens` makes at most.
    static let issuedTokens = 10_000_000
}
