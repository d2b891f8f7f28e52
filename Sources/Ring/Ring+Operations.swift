internal import CBroadsideLiburing
import Glibc

/// Operations for the kernel. Each call queues one operation, which completes with its `userData`;
/// no call blocks.
extension Ring {
    /// Fills a free submission queue entry and sets its user data.
    @safe @inline(__always)
    private mutating func queue(
        _ userData: UInt64, _ prepare: (UnsafeMutablePointer<io_uring_sqe>) -> Void
    ) {
        // SAFETY: the entry is this thread's until the next submission, and no `prepare` submits;
        // liburing's io_uring_prep_ functions set its other fields.
        let entry = unsafe entry()
        unsafe prepare(entry)
        unsafe entry.pointee.user_data = userData
    }

    // MARK: Sockets

    /// Connects a socket. Result: 0, or a negative errno such as -ECONNREFUSED.
    public mutating func connect(_ descriptor: Int32, to address: SocketAddress, userData: UInt64) {
        assert(descriptor >= 0, "the kernel gets an open file")
        // SAFETY: the entry belongs to this thread until the next submission, and its slot has 32
        // bytes, more than the address; the kernel copies the address when it takes the entry,
        // before the slot is reused.
        let entry = unsafe entry()
        let slot = unsafe slot(of: entry)
        let count = unsafe address.write(to: slot)
        unsafe io_uring_prep_connect(
            entry, descriptor, UnsafePointer(slot.assumingMemoryBound(to: sockaddr.self)), count)
        unsafe entry.pointee.user_data = userData
    }

    /// Accepts connections until cancelled. Result: a new descriptor, closed on exec.
    public mutating func acceptMultishot(_ descriptor: Int32, userData: UInt64) {
        assert(descriptor >= 0, "the kernel gets an open file")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
            unsafe io_uring_prep_multishot_accept(
                entry, descriptor, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
        }
    }

    /// Receives into provided buffers until the peer closes, an error occurs, or no buffer is free.
    ///
    /// Result: number of bytes in the buffer `bufferID`; 0 when the peer closed; -ENOBUFS when no
    /// buffer was free. After a completion without `hasMore`, the receive must be armed again.
    public mutating func receiveMultishot(_ descriptor: Int32, userData: UInt64) {
        assert(descriptor >= 0, "the kernel gets an open file")
        precondition(bufferCount > 0, "this ring has no buffers")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); the kernel receives into the
            // ring's own buffers, which live as long as the ring.
            unsafe io_uring_prep_recv_multishot(entry, descriptor, nil, 0, 0)
            unsafe entry.pointee.flags |= UInt8(1 << IOSQE_BUFFER_SELECT_BIT)
            unsafe entry.pointee.buf_group = BufferRing.group
        }
    }

    /// Sends bytes that stay unchanged until the completion. Result: number of bytes sent, possibly
    /// fewer than requested; the caller sends the rest. Never raises SIGPIPE.
    ///
    /// - Parameter waitForAll: Whether the kernel continues after a short send (MSG_WAITALL). If
    ///   so, a short result means an error or a cancellation.
    public mutating func send(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, waitForAll: Bool = true,
        userData: UInt64
    ) {
        assert(descriptor >= 0, "the kernel gets an open file")
        let flags = MSG_NOSIGNAL | (waitForAll ? MSG_WAITALL : 0)
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); the caller keeps the bytes
            // unchanged until the completion.
            unsafe io_uring_prep_send(
                entry, descriptor, bytes.baseAddress, bytes.count, Int32(flags))
        }
    }

    /// Shuts down one direction or both: `SHUT_WR`, `SHUT_RDWR`. Result: 0 or a negative errno.
    mutating func shutdown(_ descriptor: Int32, how: Int32, userData: UInt64) {
        // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
        queue(userData) { unsafe io_uring_prep_shutdown($0, descriptor, how) }
    }

    /// Closes a descriptor. Operations in flight keep the file open until they end, so cancel them
    /// first. Result: 0 or a negative errno; the descriptor is closed in either case.
    public mutating func close(_ descriptor: Int32, userData: UInt64) {
        // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
        queue(userData) { unsafe io_uring_prep_close($0, descriptor) }
    }

    // MARK: Files

    /// Writes bytes, which must stay unchanged until the completion. Result: number of bytes
    /// written, possibly fewer than requested.
    ///
    /// - Parameter offset: Bytes from the file's start; `UInt64.max` writes at the file's own
    ///   position, as an eventfd or pipe requires.
    public mutating func write(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, userData: UInt64
    ) {
        precondition(bytes.count <= Int(Int32.max), "one write is shorter than 2 GiB")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); the caller keeps the bytes
            // unchanged until the completion, and their count was checked to fit into 32 bits.
            unsafe io_uring_prep_write(
                entry, descriptor, bytes.baseAddress, UInt32(bytes.count), offset)
        }
    }

    /// Reads into memory, which must stay reserved until the completion. Result: number of bytes; 0
    /// at the end of the file.
    ///
    /// - Parameter offset: Bytes from the file's start; `UInt64.max` reads at the file's own
    ///   position, as an eventfd or pipe requires.
    public mutating func read(
        _ descriptor: Int32, into memory: UnsafeMutableRawBufferPointer, at offset: UInt64,
        userData: UInt64
    ) {
        assert(descriptor >= 0, "the kernel gets an open file")
        precondition(memory.count <= Int(Int32.max), "one read is shorter than 2 GiB")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); the caller leaves the memory to
            // the kernel until the completion, and its size was checked to fit into 32 bits.
            unsafe io_uring_prep_read(
                entry, descriptor, memory.baseAddress, UInt32(memory.count), offset)
        }
    }

    /// Makes earlier *completed* writes durable; writes in flight are not included.
    ///
    /// - Parameter dataOnly: Whether to sync only the data and what is needed to read it, without
    ///   times (fdatasync).
    public mutating func fsync(_ descriptor: Int32, dataOnly: Bool, userData: UInt64) {
        assert(descriptor >= 0, "the kernel gets an open file")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
            unsafe io_uring_prep_fsync(entry, descriptor, dataOnly ? IORING_FSYNC_DATASYNC : 0)
        }
    }

    /// Writes bytes to an open file, then reads the file's status, even if the write failed. On a
    /// network file system, the status comes from the server.
    ///
    /// The completion with `userData` reports the status. If the bytes were not written, an
    /// additional completion with `failure` reports that. The `FileStatus` and the bytes must stay
    /// valid until the completion with `userData`. Result: 0 or a negative errno.
    ///
    /// - Parameters:
    ///   - descriptor: The open file.
    ///   - offset: Bytes from the file's start.
    ///   - status: Receives the status.
    ///   - failure: `userData` of the completion that reports that the bytes were not written.
    public mutating func write(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64,
        thenStatusInto status: borrowing FileStatus, userData: UInt64, failure: UInt64
    ) {
        // Both are submitted together; otherwise the second would not wait for the first.
        makeRoom(for: 2)
        queue(failure) { entry in
            // SAFETY: as in `write`; the few bytes fit into 32 bits.
            unsafe io_uring_prep_write(
                entry, descriptor, bytes.baseAddress, UInt32(bytes.count), offset)
            unsafe entry.pointee.flags |= UInt8(
                1 << IOSQE_IO_HARDLINK_BIT | 1 << IOSQE_CQE_SKIP_SUCCESS_BIT)
        }
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); the caller leaves the status to
            // the kernel until the completion, and it has the size of a `struct statx`.
            unsafe ring_prep_file_status(entry, descriptor, status.memory.baseAddress)
        }
    }

    // MARK: Waiting

    /// Completes once, when the descriptor is ready. Result: the poll(2) events that occurred.
    public mutating func poll(_ descriptor: Int32, events: Int16 = 1, userData: UInt64) {
        assert(descriptor >= 0, "the kernel gets an open file")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
            unsafe io_uring_prep_poll_add(entry, descriptor, UInt32(UInt16(bitPattern: events)))
        }
    }

    /// Completes when the time has passed since submission. Result: -ETIME or -ECANCELED.
    mutating func timeout(nanoseconds: UInt64, userData: UInt64) {
        // SAFETY: the entry belongs to this thread until the next submission, and its slot has 32
        // bytes, more than a timespec, aligned to 16; the kernel copies the time when it takes the
        // entry (see `slot`).
        let entry = unsafe entry()
        let slot = unsafe slot(of: entry)
        unsafe slot.storeBytes(of: Self.timespec(nanoseconds), as: __kernel_timespec.self)
        unsafe io_uring_prep_timeout(
            entry, slot.assumingMemoryBound(to: __kernel_timespec.self), 0, 0)
        unsafe entry.pointee.user_data = userData
    }

    /// Cancels one operation by its `userData`; it then completes with -ECANCELED. Result of the
    /// cancellation itself: 0, -ENOENT (not found) or -EALREADY (running).
    public mutating func cancel(_ target: UInt64, userData: UInt64) {
        // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
        queue(userData) { unsafe io_uring_prep_cancel64($0, target, 0) }
    }

    /// Cancels each operation on a descriptor. Result: the number of operations found.
    public mutating func cancelAll(on descriptor: Int32, userData: UInt64) {
        assert(descriptor >= 0, "the kernel gets an open file")
        queue(userData) { entry in
            // SAFETY: only this call uses the entry (see `queue`); it refers to no memory.
            unsafe io_uring_prep_cancel_fd(entry, descriptor, IORING_ASYNC_CANCEL_ALL)
        }
    }

    // MARK: Provided buffers

    /// Bytes that the kernel delivered with a completion of a multishot receive operation; empty if
    /// there are none. The bytes are valid until the buffer is returned.
    @inlinable
    public func unsafeBytes(of completion: Completion) -> UnsafeRawBufferPointer {
        guard let identifier = completion.bufferID, completion.result > 0 else {
            // SAFETY: an empty range refers to no memory.
            return unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        }
        precondition(Int(identifier) < bufferCount && Int(completion.result) <= bufferSize)
        // SAFETY: checked above to be within the buffers' memory, which exists if their count is
        // positive.
        return unsafe UnsafeRawBufferPointer(
            start: bufferMemory! + Int(identifier) * bufferSize, count: Int(completion.result))
    }

    /// Returns the received bytes of a completion as a span that borrows the ring.
    @inlinable
    @_lifetime(borrow self)
    public func bytes(of completion: Completion) -> RawSpan {
        // SAFETY: `unsafeBytes` checks the range. The kernel fills buffers only in calls that
        // change the ring, which can't be made while the span borrows it.
        let bytes = unsafe RawSpan(_unsafeBytes: unsafeBytes(of: completion))
        return unsafe _overrideLifetime(bytes, borrowing: self)
    }

    /// Returns a reaped buffer to the kernel, once per completion with a `bufferID`.
    public mutating func giveBack(_ bufferID: UInt16) {
        precondition(lentBufferCount > 0 && Int(bufferID) < bufferCount, "no such lent buffer")
        lentBufferCount -= 1
        buffers!.giveBack(bufferID)
    }
}
