/// What the feedback service says of one device: the app is gone since then.
///
///     time 4 (Unix seconds) | token length 2 | token
///
/// Source: Apple, "Binary Provider API", section on the feedback service (archived).
public struct FeedbackTuple: Sendable, Equatable {
    /// When APNs found that the app no longer exists on the device.
    public var unixSeconds: UInt32
    /// Bytes, not digits.
    public var token: [UInt8]

    /// A tuple of these parts.
    public init(unixSeconds: UInt32, token: [UInt8]) {
        self.unixSeconds = unixSeconds
        self.token = token
    }

    /// The bytes on the wire.
    public var encoded: [UInt8] {
        BinaryNotification.bigEndian(unixSeconds)
            + [UInt8(token.count >> 8), UInt8(token.count & 0xff)] + token
    }
}

/// Reads tuples from a stream, however it is cut.
public struct FeedbackReader: Sendable {
    /// A tuple cannot be one.
    public struct Problem: Error, Sendable, Equatable {
        /// The bytes that its token would have: none, or more than any token has.
        public var tokenCount: Int

        /// A problem with a token of so many bytes.
        init(tokenCount: Int) {
            self.tokenCount = tokenCount
        }
    }

    private var pending: [UInt8] = []
    private var offset = 0

    /// Nothing was read yet.
    public init() {}

    /// Takes bytes in.
    public mutating func append(_ bytes: some Sequence<UInt8>) {
        if offset > 0 {
            pending.removeFirst(offset)
            offset = 0
        }
        pending.append(contentsOf: bytes)
    }

    /// Bytes of a tuple that is not whole yet.
    public var pendingCount: Int { pending.count - offset }

    /// The next whole tuple; nil where more bytes are needed.
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
