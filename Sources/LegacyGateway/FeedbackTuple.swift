/// A record of the feedback service: the app is no longer on a device.
///
///     time 4 (Unix seconds) | token length 2 | token
///
/// Source: Apple, "Binary Provider API", section on the feedback service (archived).
public struct FeedbackTuple: Sendable, Equatable {
    /// Time at which APNs found that the app no longer exists on the device.
    public var unixSeconds: UInt32
    /// The token as bytes, not as digits.
    public var token: [UInt8]

    /// Creates a tuple.
    public init(unixSeconds: UInt32, token: [UInt8]) {
        self.unixSeconds = unixSeconds
        self.token = token
    }

    /// The bytes on the wire.
    public var encoded: [UInt8] {
        assert((1...BinaryCommand.tokenLimit).contains(token.count), "no reader accepts this")
        return BinaryNotification.bigEndian(unixSeconds)
            + [UInt8(token.count >> 8), UInt8(token.count & 0xff)] + token
    }
}

/// Parses tuples from a stream, in pieces of any size.
public struct FeedbackReader: Sendable {
    /// Error for bytes that cannot be a tuple.
    public struct Problem: Error, Sendable, Equatable {
        /// Invalid length of the token in the tuple: 0, or more than any token has.
        public var tokenCount: Int

        /// Creates an error for a token of `tokenCount` bytes.
        init(tokenCount: Int) {
            self.tokenCount = tokenCount
        }
    }

    private var pending: [UInt8] = []
    private var offset = 0

    /// Creates a reader at the start of a stream.
    public init() {}

    /// Appends received bytes.
    public mutating func append(_ bytes: some Sequence<UInt8>) {
        if offset > 0 {
            pending.removeFirst(offset)
            offset = 0
        }
        pending.append(contentsOf: bytes)
    }

    /// Number of received bytes that are not yet part of a returned tuple.
    public var pendingCount: Int {
        assert(offset <= pending.count)
        return pending.count - offset
    }

    /// Returns the next complete tuple; nil if more bytes are needed.
    public mutating func next() throws(Problem) -> FeedbackTuple? {
        guard pendingCount >= 6 else { return nil }
        let count = Int(pending[offset + 4]) << 8 | Int(pending[offset + 5])
        guard (1...BinaryCommand.tokenLimit).contains(count) else {
            throw Problem(tokenCount: count)
        }
        guard pendingCount >= 6 + count else { return nil }
        let seconds = pending[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        let token = Array(pending[(offset + 6)..<(offset + 6 + count)])
        offset += 6 + count
        return FeedbackTuple(unixSeconds: seconds, token: token)
    }
}
