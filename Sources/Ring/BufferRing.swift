internal import CBroadsideLiburing
import Glibc

/// Provided buffers for multishot receives, registered with the kernel as one group.
///
/// It has two areas: the ring of 16-byte descriptors that the kernel reads, page-aligned as
/// io_uring_register_buf_ring(3) requires, and the buffers themselves.
@safe struct BufferRing {
    /// Number of the buffer group; arbitrary, because a ring has only one.
    static let group: UInt16 = 0

    // SAFETY: `init` allocates both areas, for `count` descriptors and for `count` buffers of
    // `size` bytes. The `Ring` that registered them frees them with `deallocate`.
    let descriptors: UnsafeMutablePointer<io_uring_buf_ring>
    let memory: UnsafeMutableRawPointer
    let count: Int
    let size: Int

    /// Allocates and registers the buffers; frees them if the kernel refuses.
    init(
        registeringWith ring: UnsafeMutablePointer<io_uring>, count: Int, size: Int
    ) throws(RingError) {
        precondition(count > 0 && count <= 32_768 && count & (count - 1) == 0, "a power of two")
        precondition(size > 0 && size <= Int(Int32.max), "a size in bytes")
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let raw = UnsafeMutableRawPointer.allocate(
            byteCount: count * MemoryLayout<io_uring_buf>.stride, alignment: page)
        // SAFETY: the allocated array is a ring of `count` descriptors. The kernel knows both areas
        // only if it accepted the registration; otherwise they are freed.
        unsafe descriptors = unsafe raw.assumingMemoryBound(to: io_uring_buf_ring.self)
        unsafe memory = .allocate(byteCount: count * size, alignment: page)
        self.count = count
        self.size = size

        var registration = io_uring_buf_reg()
        registration.ring_addr = UInt64(UInt(bitPattern: raw))
        registration.ring_entries = UInt32(count)
        registration.bgid = Self.group
        let result = unsafe io_uring_register_buf_ring(ring, &registration, 0)
        guard result == 0 else {
            unsafe memory.deallocate()
            unsafe raw.deallocate()
            throw RingError(.registerBuffers, code: -result)
        }
        unsafe io_uring_buf_ring_init(descriptors)
        for identifier in 0..<count { add(UInt16(identifier), offset: identifier) }
        unsafe io_uring_buf_ring_advance(descriptors, Int32(count))
    }

    /// Frees the buffers after the ring has ended and the kernel no longer writes to them.
    func deallocate() {
        // SAFETY: called once, by `Ring.deinit`, after io_uring_queue_exit: the kernel fills
        // buffers only while the ring's thread waits in it.
        unsafe memory.deallocate()
        unsafe UnsafeMutableRawPointer(descriptors).deallocate()
    }

    private func add(_ identifier: UInt16, offset: Int) {
        assert(Int(identifier) < count, "only the ring's own buffers are lent")
        // SAFETY: `identifier` is below `count` in both callers; liburing masks the index of the
        // descriptor.
        unsafe io_uring_buf_ring_add(
            descriptors, memory + Int(identifier) * size, UInt32(size), identifier,
            io_uring_buf_ring_mask(UInt32(count)), Int32(offset))
    }

    /// Returns one buffer to the kernel, which may fill it again.
    func giveBack(_ identifier: UInt16) {
        add(identifier, offset: 0)
        // SAFETY: `descriptors` lives until `deallocate`, and `add` has set the one that the kernel
        // sees now.
        unsafe io_uring_buf_ring_advance(descriptors, 1)
    }
}
