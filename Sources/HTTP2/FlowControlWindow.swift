/// The bytes of DATA that we may still send (RFC 9113 section 6.9.1).
struct FlowControlWindow: Sendable {
    /// "A sender MUST NOT allow a flow-control window to exceed 2^31-1 bytes."
    static let limit = 0x7fff_ffff

    /// May be negative for a stream, after the initial size was lowered (section 6.9.2).
    private(set) var available: Int

    init(available: Int) { self.available = available }

    mutating func debit(_ count: Int) {
        assert(
            count == 0 || count > 0 && count <= available, "no more is sent than the window lets")
        available -= count
    }

    /// Takes an increment; false if the window would get too large.
    mutating func credit(_ increment: Int) -> Bool {
        assert(increment > 0, "a window grows by something")
        available += increment
        return available <= Self.limit
    }
}

/// The bytes of DATA that the server may send, and what it was not yet given back.
///
/// Credit is given back once half of the window is used, so that a WINDOW_UPDATE costs little and the
/// server never has to stop. Half a window and a frame of 16,384 bytes are less than any window here,
/// so there is no overrun to look for: what a server sends too early is within what we would have
/// allowed at once.
struct ReceiveWindow: Sendable {
    let size: Int
    private(set) var used = 0

    init(size: Int) { self.size = size }

    /// Takes `count` bytes of DATA, padding included.
    mutating func take(_ count: Int) { used += count }

    /// The increment to announce now, if it is worth it.
    mutating func takeIncrement() -> UInt32? {
        guard used >= (size + 1) / 2 else { return nil }
        defer { used = 0 }
        return UInt32(used)
    }
}
