internal import CBroadsideLiburing
import Glibc

/// An io_uring with its provided buffers, owned by one thread.
///
/// Operations are queued and submitted together at the next `submitAndWait`, or earlier if the
/// submission queue is full. An operation may refer to memory: a send's bytes, a read's target.
/// This memory belongs to the kernel from the call until the completion is reaped. Addresses and
/// timeouts are copied.
///
///     queue operations -> submitAndWait -> reap -> act on each completion -+
///            ^                                                             |
///            +-------------------------------------------------------------+
///
/// The ring is created with SINGLE_ISSUER and DEFER_TASKRUN (Linux 6.1). Create, use and release it
/// on one thread; the kernel completes operations only while that thread waits in the ring.
@safe public struct Ring: ~Copyable {
    // SAFETY: allocated and set up in `init`, ended and freed in `deinit`; the ring can't be copied
    // and is used by one thread.
    private let ring: UnsafeMutablePointer<io_uring>
    // SAFETY: allocated in `init`, `slotSize` bytes for each submission queue entry; freed in
    // `deinit`.
    /// One slot per submission queue entry, for data that the kernel reads when it takes the entry.
    private let scratch: UnsafeMutableRawPointer
    let buffers: BufferRing?
    // SAFETY: the memory of `buffers`, `bufferCount` times `bufferSize` bytes; nil if there are
    // none.
    @usableFromInline let bufferMemory: UnsafeMutableRawPointer?
    /// Number of buffers that multishot receives share.
    public let bufferCount: Int
    /// Bytes per buffer, and thus the maximum per completion.
    public let bufferSize: Int
    /// Number of buffers that completions have handed out and that were not returned yet.
    var lentBufferCount = 0

    /// Bytes per scratch slot: the larger of a `sockaddr_in6` and a timespec, rounded up.
    private static let slotSize = 32

    /// Creates the ring and registers its buffers.
    ///
    /// - Parameters:
    ///   - entries: Submission queue entries, rounded up to a power of two by the kernel. The
    ///     completion queue gets four times as many.
    ///   - bufferCount: A power of two up to 32,768, or 0 for a ring that does not receive.
    ///   - bufferSize: Bytes per buffer.
    public init(entries: UInt32, bufferCount: Int, bufferSize: Int) throws(RingError) {
        precondition(entries > 0 && entries <= 32_768, "1 to 32,768 entries")
        precondition(SocketAddress.maximumByteCount <= Self.slotSize)
        let ring = UnsafeMutablePointer<io_uring>.allocate(capacity: 1)
        // SAFETY: `ring` is zeroed, then set up by io_uring_queue_init_params; a later error ends
        // and frees it before it is thrown. The kernel writes the number of entries into
        // `parameters`.
        unsafe ring.initialize(to: io_uring())
        var parameters = io_uring_params()
        // SUBMIT_ALL: an invalid entry does not block the entries after it.
        parameters.flags =
            IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL
            | IORING_SETUP_CQSIZE
        parameters.cq_entries = entries * 4
        let result = unsafe io_uring_queue_init_params(entries, ring, &parameters)
        guard result == 0 else {
            unsafe ring.deallocate()
            throw RingError(.setUp, code: -result)
        }
        // Saves a descriptor lookup per system call. Kernels without this feature work, too.
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
        // No operation may be in flight when the buffers are freed. Therefore, the kernel cancels
        // all operations and waits for their end.
        var everything = io_uring_sync_cancel_reg()
        everything.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL
        everything.timeout.tv_sec = 1
        // SAFETY: only this value uses the ring. After io_uring_queue_exit the kernel fills no
        // buffer: it does so only while this thread waits in the ring.
        _ = unsafe io_uring_register_sync_cancel(ring, &everything)
        unsafe io_uring_queue_exit(ring)
        unsafe ring.deallocate()
        unsafe scratch.deallocate()
        buffers?.deallocate()
    }

    // MARK: Submitting and waiting

    /// Number of queued operations that are not submitted yet.
    var queuedCount: Int {
        // SAFETY: `ring` is set up, and only this thread queues operations.
        unsafe Int(io_uring_sq_ready(ring))
    }

    /// Number of operations that can be queued before a submission is required.
    var freeCount: Int {
        // SAFETY: as for `queuedCount`.
        unsafe Int(io_uring_sq_space_left(ring))
    }

    /// Returns a free submission queue entry; submits if the queue is full.
    mutating func entry() -> UnsafeMutablePointer<io_uring_sqe> {
        makeRoom(for: 1)
        // SAFETY: `ring` is set up and has room; an entry from liburing is free until the next
        // submission.
        return unsafe io_uring_get_sqe(ring)!
    }

    /// Submits queued operations if fewer than `count` entries are free.
    mutating func makeRoom(for count: Int) {
        assert(count > 0, "room is made for something")
        var attempts = 0
        // SAFETY: `ring` is set up.
        while freeCount < count {
            let result = unsafe io_uring_submit(ring)
            attempts += 1
            // EAGAIN and EBUSY end when the kernel again has memory, or space for completions.
            precondition(
                (result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY)
                    && attempts < 100_000, "the kernel takes no submissions")
            if result < 0 { unsafe _ = io_uring_get_events(ring) }
        }
    }

    /// Scratch slot of an entry. It is valid until the entry is submitted
    /// (IORING_FEAT_SUBMIT_STABLE).
    func slot(of entry: UnsafeMutablePointer<io_uring_sqe>) -> UnsafeMutableRawPointer {
        // SAFETY: the entry belongs to the queue, so its index is below the number of slots.
        unsafe scratch + (entry - ring.pointee.sq.sqes) * Self.slotSize
    }

    /// Submits all queued operations, then waits for completions.
    ///
    /// Returns early on a signal and after the timeout; neither is an error.
    ///
    /// - Parameters:
    ///   - count: Completions to wait for; 0 only submits and lets the kernel post ready
    ///     completions.
    ///   - timeoutNanoseconds: Maximum wait; nil for no limit.
    public mutating func submitAndWait(
        atLeast count: UInt32, timeoutNanoseconds: UInt64? = nil
    ) throws(RingError) {
        let result: Int32
        if count == 0 {
            // SAFETY: `ring` is set up. The kernel and liburing use the time and `first`, which are
            // locals, only during the call.
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

    /// Moves completions from the queue to the batch until the batch is full; returns their number.
    /// The batch's previous content is overwritten.
    @discardableResult
    public mutating func reap(into batch: inout CompletionBatch) -> Int {
        // SAFETY: `io_uring_cq_ready` loads the tail with acquire, so that as many entries from the
        // head on are written; only this thread moves the head. The mask keeps indices within the
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
