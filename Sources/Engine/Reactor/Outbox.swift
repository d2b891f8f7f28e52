/// The sealed bytes that a connection sends, in one buffer that never moves.
///
///     0 ..... sent ..... sealed ..... capacity
///      gone       waits         room
///
/// Bytes are added behind those that wait, also while the driver sends some of them. Once all have left the
/// buffer begins again.
@safe struct Outbox: ~Copyable {
    // SAFETY: `capacity` bytes, freed with the slot, after the driver's ring has ended; the first
    // `sealedCount` are set, and `sentCount <= sealedCount <= capacity`. What is set does not change while
    // `isSending`.
    private let memory: UnsafeMutableRawPointer
    let capacity: Int
    private(set) var sealedCount = 0
    private var sentCount = 0
    /// Whether the driver sends a part of them.
    private(set) var isSending = false
    /// Since when the buffer is not empty, monotonic nanoseconds; nil while it is.
    private(set) var waitingSince: UInt64?
    /// When the driver was given bytes last, or had sent all of them, monotonic nanoseconds: of a
    /// request that was written later no byte has left the buffer.
    private(set) var handedOver: UInt64 = 0

    init(capacity: Int) {
        self.capacity = capacity
        // SAFETY: `sealedCount` says that nothing of it is set.
        unsafe memory = .allocate(byteCount: capacity, alignment: 64)
    }

    // SAFETY: allocated in `init`; slots end with their machine, which outlives the driver.
    deinit {
        unsafe memory.deallocate()
    }

    /// A new connection uses the buffer.
    mutating func begin(now: UInt64) {
        precondition(!isSending)
        clear()
        handedOver = now
    }

    /// The connection is gone, and so is what the driver had of it.
    mutating func end() { isSending = false }

    /// Gives up what waits.
    mutating func clear() {
        sealedCount = 0
        sentCount = 0
        waitingSince = nil
    }

    /// Bytes that may still be sealed behind those that wait.
    var room: Int { capacity - sealedCount }

    /// True if nothing waits, and nothing is being sent.
    var isEmpty: Bool { sealedCount == 0 }

    /// True if all bytes have left, though the driver may not have said so.
    var isDrained: Bool { sealedCount == sentCount }

    /// Where the next bytes are sealed.
    var tail: UnsafeMutableRawBufferPointer {
        // SAFETY: the driver looks at bytes before `sealedCount` alone. Who writes here is done with it
        // before the next call of a method.
        unsafe UnsafeMutableRawBufferPointer(start: memory + sealedCount, count: room)
    }

    /// So many bytes were sealed at `tail`.
    mutating func append(_ count: Int) {
        precondition(count >= 0 && count <= room)
        sealedCount += count
    }

    /// Gives the bytes that wait to the driver, unless it is still sending others.
    mutating func takeWaiting(now: UInt64) -> UnsafeRawBufferPointer? {
        if waitingSince == nil { waitingSince = now }
        guard !isSending else { return nil }
        assert(sentCount < sealedCount, "there is something to send")
        isSending = true
        handedOver = now
        // SAFETY: bytes that were sealed and not sent; they stay as they are while `isSending`.
        return unsafe UnsafeRawBufferPointer(
            start: memory + sentCount, count: sealedCount - sentCount)
    }

    /// The driver sends nothing any more.
    mutating func sendStopped() { isSending = false }

    /// So many of the bytes that the driver was given have left.
    ///
    /// - Returns: Since when some were waiting, if these were the last ones.
    mutating func recordSent(_ count: Int, now: UInt64) -> UInt64? {
        precondition(count > 0 && count <= sealedCount - sentCount)
        sentCount += count
        guard sentCount == sealedCount else { return nil }
        let since = waitingSince
        clear()
        handedOver = now
        return since
    }

    /// What does not hold although it always has to; nil if all is well.
    var brokenInvariant: String? {
        guard sentCount >= 0, sentCount <= sealedCount, sealedCount <= capacity else {
            return "\(sentCount) of \(sealedCount) bytes sent, room for \(capacity)"
        }
        if let waitingSince, sealedCount == 0 { return "nothing waits, since \(waitingSince)" }
        return nil
    }
}
