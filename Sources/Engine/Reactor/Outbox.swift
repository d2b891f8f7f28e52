/// Encrypted bytes of a connection that wait to be sent, in one buffer that never moves.
///
///     0 ..... sent ..... sealed ..... capacity
///      gone       waits         room
///
/// New bytes are appended after the waiting bytes, even while the driver sends some of the waiting
/// bytes. When all bytes are sent, the buffer is filled from its start again.
@safe struct Outbox: ~Copyable {
    // SAFETY: `capacity` bytes, freed with the slot, after the driver's ring has ended; the first
    // `sealedCount` are set, and `sentCount <= sealedCount <= capacity`. Set bytes do not change
    // while `isSending`.
    private let memory: UnsafeMutableRawPointer
    let capacity: Int
    private(set) var sealedCount = 0
    private var sentCount = 0
    /// Whether the driver is sending part of the bytes.
    private(set) var isSending = false
    /// Time since which bytes have been in the buffer, monotonic nanoseconds; nil if it is empty.
    private(set) var waitingSince: UInt64?
    /// Number of the first request of which the driver got no byte. Numbers increase in the order
    /// in which requests are added.
    private(set) var firstUnsent: UInt32 = 0
    /// Value of `firstUnsent` before the latest send began.
    private var firstUnsentBefore: UInt32 = 0
    /// Time at which a send failed, monotonic nanoseconds; nil if none did. Nothing is sent after
    /// that.
    private(set) var failedAt: UInt64?

    init(capacity: Int) {
        self.capacity = capacity
        // SAFETY: `sealedCount` is 0, so that no byte counts as set.
        unsafe memory = .allocate(byteCount: capacity, alignment: 64)
    }

    // SAFETY: allocated in `init`; slots end with their state machine, which outlives the driver.
    deinit {
        unsafe memory.deallocate()
    }

    /// Prepares the buffer for a new connection.
    mutating func begin() {
        precondition(!isSending)
        clear()
        firstUnsent = 0
        failedAt = nil
    }

    /// Ends a connection's use of the buffer. The driver must not be using any of the bytes.
    mutating func end() { isSending = false }

    /// Drops all bytes that wait to be sent.
    mutating func clear() {
        sealedCount = 0
        sentCount = 0
        waitingSince = nil
    }

    /// Records that a send failed. None of its bytes and of those that wait was or will be sent.
    mutating func fail(now: UInt64) {
        clear()
        firstUnsent = firstUnsentBefore
        failedAt = now
    }

    /// Number of bytes that may still be appended.
    var room: Int { capacity - sealedCount }

    /// Whether the buffer is empty: no bytes wait, and none are being sent.
    var isEmpty: Bool { sealedCount == 0 }

    /// Whether all bytes are sent, even if the driver has not reported the end of the send.
    var isDrained: Bool { sealedCount == sentCount }

    /// The free memory for the next encrypted bytes.
    var tail: UnsafeMutableRawBufferPointer {
        // SAFETY: the driver reads only bytes before `sealedCount`. The caller finishes writing
        // here before the next call of a method.
        unsafe UnsafeMutableRawBufferPointer(start: memory + sealedCount, count: room)
    }

    /// Adds bytes that were encrypted into `tail`.
    mutating func append(_ count: Int) {
        precondition(count >= 0 && count <= room)
        sealedCount += count
    }

    /// Hands the waiting bytes to the driver, unless the driver is still sending earlier bytes.
    ///
    /// - Parameter nextRequest: Number of the next request that will be added.
    mutating func takeWaiting(now: UInt64, nextRequest: UInt32) -> UnsafeRawBufferPointer? {
        if waitingSince == nil { waitingSince = now }
        guard !isSending else { return nil }
        assert(sentCount < sealedCount, "there is something to send")
        isSending = true
        firstUnsentBefore = firstUnsent
        firstUnsent = nextRequest
        // SAFETY: sealed and unsent bytes, which do not change while `isSending`.
        return unsafe UnsafeRawBufferPointer(
            start: memory + sentCount, count: sealedCount - sentCount)
    }

    /// Records that the driver has stopped sending.
    mutating func sendStopped() {
        assert(isSending, "the driver reports bytes that it got")
        isSending = false
    }

    /// Records that the driver sent `count` bytes.
    ///
    /// - Returns: The time since which the buffer had contained bytes, if it is now empty;
    ///   otherwise nil.
    mutating func recordSent(_ count: Int, now: UInt64) -> UInt64? {
        precondition(count > 0 && count <= sealedCount - sentCount)
        sentCount += count
        guard sentCount == sealedCount else { return nil }
        let since = waitingSince
        clear()
        return since
    }

    /// Description of a violated invariant; nil if there is none.
    var brokenInvariant: String? {
        guard sentCount >= 0, sentCount <= sealedCount, sealedCount <= capacity else {
            return "\(sentCount) of \(sealedCount) bytes sent, room for \(capacity)"
        }
        if let waitingSince, sealedCount == 0 { return "nothing waits, since \(waitingSince)" }
        return nil
    }
}
