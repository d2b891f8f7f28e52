/// Number of bytes of DATA that we may still send (RFC 9113 section 6.9.1).
struct FlowControlWindow: Sendable {
    /// Maximum of a window: "A sender MUST NOT allow a flow-control window to exceed 2^31-1 bytes."
    static let limit = 0x7fff_ffff

    /// Bytes that may be sent; negative for a stream after the initial size was lowered (section
    /// 6.9.2).
    private(set) var available: Int

    init(available: Int) { self.available = available }

    mutating func debit(_ count: Int) {
        assert(
            count == 0 || count > 0 && count <= available,
            "no more bytes are sent than the window allows")
        available -= count
    }

    /// Adds an increment; returns false if the window becomes too large.
    mutating func credit(_ increment: Int) -> Bool {
        assert(increment > 0, "a window grows by something")
        available += increment
        return available <= Self.limit
    }
}

/// Window for DATA from the server, and received bytes whose credit was not returned yet.
///
/// Credit is returned once half of the window is used, so that WINDOW_UPDATE is rare and the server
/// never has to stop. Received bytes are not checked against the window. At any time, at most half
/// a window and a frame of 16,384 bytes wait for their credit; together they are less than any
/// window here. So a server that exceeds the window only uses credit that it is about to receive.
struct ReceiveWindow: Sendable {
    let size: Int
    private(set) var used = 0

    init(size: Int) { self.size = size }

    /// Counts `count` bytes of DATA, including padding.
    mutating func take(_ count: Int) { used += count }

    /// Returns the increment to announce now; nil if it is too small.
    mutating func takeIncrement() -> UInt32? {
        guard used >= (size + 1) / 2 else { return nil }
        defer { used = 0 }
        return UInt32(used)
    }
}
