internal import CBroadsideLiburing
import Glibc

/// An io_uring with its provided buffers, owned by one thread.
///
/// Operations queue up and go to the kernel together at the next `submitAndWait`, or earlier where
/// the submission queue is full. Memory that an operation names (a send's bytes, a read's target)
/// belongs to the kernel from the call until its completion was reaped; addresses and timeouts are
/// copied.
///
///     queue operations -> submitAndWait -> reap -> act on each completion -+
///            ^                                                             |
///            +-------------------------------------------------------------+
///
/// The ring is made with SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1): create, use and drop it on
/// one thread; the kernel completes operations only while that thread waits here.
@safe public struct Ring: ~Copyable {
    // SAFETY: allocated and set up in `init`, ended and freed in `deinit`; the ring can't be
    // copied, and is used by one thread.
    private let ring: UnsafeMutablePointer<io_uring>
    // SAFETY: allocated in `init`, `slotSize` bytes for each submission queue entry; freed in
    // `deinit`.
    /// One slot a submission queue entry, for what the kernel reads when it takes the entry.
    private let scratch: UnsafeMutableRawPointer
    let buffers: BufferRing?
    // SAFETY: `buffers`' memory, `bufferCount` times `bufferSize` bytes; nil if there are none.
    @usableFromInline let bufferMemory: UnsafeMutableRawPointer?
    /// How many buffers multishot receives share.
    public let bufferCount: Int
    /// Bytes a buffer; one completion carries at most that many.
    public let bufferSize: Int
    /// Buffers that were reaped with a completion and not given back yet.
    var lentBufferCount = 0

    /// Bytes of a scratch slot: the larger of a `sockaddr_in6` and a timespec, rounded up.
    private static let slotSize = 32

    /// Makes the ring and registers its buffers.
    ///
    /// - Parameters:
    ///   - entries: Submission queue entries, rounded up to a power of two by the kernel. The
    ///     completion queue gets four times as many.
    ///   - bufferCount: A power of two up to 32,768, or 0 for a ring that receives nothing.
    ///   - bufferSize: Bytes a buffer.
    public init(entries: UInt32, bufferCount: Int, bufferSize: Int) throws(RingError) {
        precondition(entries > 0 && entries <= 32_768, "1 to 32,768 entries")
        precondition(SocketAddress.maximumByteCount <= Self.slotSize)
        let ring = UnsafeMutablePointer<io_uring>.allocate(capacity: 1)
        // SAFETY: `ring` is set to zeros, which io_uring_queue_init_params fills; an error behind
        // it ends and frees it before it is thrown. The kernel writes the number of entries into
        // `parameters`.
        unsafe ring.initialize(to: io_uring())
        var parameters = io_uring_params()
        // SUBMIT_ALL: one bad entry does not hold back those behind it.
        parameters.flags =
            IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL
            | IORING_SETUP_CQSIZE
        parameters.cq_entries = entries * 4
        let result = unsafe io_uring_queue_init_params(entries, ring, &parameters)
        guard result == 0 else {
            unsafe ring.deallocate()
            throw RingError(.setUp, code: -result)
        }
        // Saves a descriptor look-up a system call; a kernel without it works as well.
        _ = unsafe io_uring_register_ring_fd(ring)
        do {
            unsafe buffers =
                bufferCount == 0
                ? nil
                : try BufferRing(registeringWith: ring, count: bufferCount, size: bufferSize)
        } catch {
            unsafe io_uring_queue_exit(ring)
            unsafe ring.deallocate()
            throw error
        }
        unsafe self.ring = ring
        unsafe scratch = .allocate(
            byteCount: Int(parameters.sq_entries) * Self.slotSize, alignment: 16)
        unsafe bufferMemory = unsafe buffers?.memory
        self.bufferCount = bufferCount
        self.bufferSize = bufferSize
    }

    deinit {
        // Nothing may be in flight when the buffers go: ask the kernel to cancel all of it and wait.
        var everything = io_uring_sync_cancel_reg()
        everything.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL
        everything.timeout.tv_sec = 1
        // SAFETY: the ring is this value's alone. Behind io_uring_queue_exit the kernel fills no
        // buffer: it does so only while this thread waits in the ring.
        _ = unsafe io_uring_register_sync_cancel(ring, &everything)
        unsafe io_uring_queue_exit(ring)
        unsafe ring.deallocate()
        unsafe scratch.deallocate()
        buffers?.deallocate()
    }

    // MARK: Submitting and waiting

    /// Operations that are queued and not submitted yet.
    var queuedCount: Int {
        // SAFETY: `ring` is set up, and only this thread queues.
        unsafe Int(io_uring_sq_ready(ring))
    }

    /// Operations that can be queued before something has to be submitted.
    var freeCount: Int {
        // SAFETY: as for `queuedCount`.
        unsafe Int(io_uring_sq_space_left(ring))
    }

    /// A free submission queue entry and its scratch slot; submits where the queue is full.
    mutating func entry() -> UnsafeMutablePointer<io_uring_sqe> {
        makeRoom(for: 1)
        // SAFETY: `ring` is set up, and there is room in it; an entry of liburing's is free until the
        // next submission.
        return unsafe io_uring_get_sqe(ring)!
    }

    /// Submits what is queued if not so many entries are free.
    mutating func makeRoom(for count: Int) {
        assert(count > 0, "room is made for something")
        var attempts = 0
        // SAFETY: `ring` is set up.
        while freeCount < count {
            let result = unsafe io_uring_submit(ring)
            attempts += 1
            // EAGAIN and EBUSY pass when the kernel has memory, or room for completions, again.
            precondition(
                (result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY)
                    && attempts < 100_000, "the kernel takes no submissions")
            if result < 0 { unsafe _ = io_uring_get_events(ring) }
        }
    }

    /// The scratch slot that lives as long as the entry does: until it was submitted
    /// (IORING_FEAT_SUBMIT_STABLE).
    func slot(of entry: UnsafeMutablePointer<io_uring_sqe>) -> UnsafeMutableRawPointer {
        // SAFETY: the entry is one of the queue's, so that its index is below the number of slots.
        unsafe scratch + (entry - ring.pointee.sq.sqes) * Self.slotSize
    }

    /// Submits all that is queued, then waits for completions.
    ///
    /// Returns early when a signal interrupts it and when the time is up; neither is an error.
    ///
    /// - Parameters:
    ///   - count: Completions to wait for; 0 only submits and lets the kernel post what is ready.
    ///   - timeoutNanoseconds: The longest wait; nil waits for ever.
    public mutating func submitAndWait(
        atLeast count: UInt32, timeoutNanoseconds: UInt64? = nil
    ) throws(RingError) {
        let result: Int32
        if count == 0 {
            // SAFETY: `ring` is set up. The time and `first` are locals that the kernel and
            // liburing use in the call only.
            result = unsafe io_uring_submit_and_get_events(ring)
        } else if let timeoutNanoseconds {
            var limit = Self.timespec(timeoutNanoseconds)
            var first: UnsafeMutablePointer<io_uring_cqe>?
            result = unsafe io_uring_submit_and_wait_timeout(ring, &first, count, &limit, nil)
        } else {
            result = unsafe io_uring_submit_and_wait(ring, count)
        }
        guard result < 0 else { return }
        switch -result {
        case EINTR, ETIME, EAGAIN, EBUSY: return
        default: throw RingError(.submit, code: -result)
        }
    }

    /// Moves completions out of the queue, as many as the batch holds; returns how many. The
    /// batch's previous content is overwritten.
    @discardableResult
    public mutating func reap(into batch: inout CompletionBatch) -> Int {
        // SAFETY: `io_uring_cq_ready` loads the tail with acquire, so that so many entries from the
        // head on are written; only this thread moves the head. The mask keeps indexes within the
        // queue, and `ready` is at most the batch's capacity.
        let ready = unsafe min(Int(io_uring_cq_ready(ring)), batch.capacity)
        let queue = unsafe ring.pointee.cq
        let mask = unsafe queue.ring_mask
        let head = unsafe queue.khead.pointee
        for position in 0..<ready {
            let index = Int((head &+ UInt32(truncatingIfNeeded: position)) & mask)
            let from = unsafe queue.cqes + index
            let completion = unsafe Completion(
                userData: from.pointee.user_data, result: from.pointee.res,
                flags: from.pointee.flags)
            if completion.bufferID != nil { lentBufferCount += 1 }
            unsafe (batch.storage + position).initialize(to: completion)
        }
        assert(lentBufferCount <= bufferCount, "the kernel lends each buffer once")
        unsafe io_uring_cq_advance(ring, UInt32(ready))
        batch.count = ready
        return ready
    }

    static func timespec(_ nanoseconds: UInt64) -> __kernel_timespec {
        __kernel_timespec(
            tv_sec: Int64(nanoseconds / 1_000_000_000), tv_nsec: Int64(nanoseconds % 1_000_000_000))
    }
}
