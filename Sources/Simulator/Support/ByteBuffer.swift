internal import Glibc

/// Bytes that wait, in memory of their own that grows up to what its owner allows.
@safe struct ByteBuffer: ~Copyable {
    private(set) var base: UnsafeMutableRawPointer
    private(set) var capacity: Int
    /// How many bytes wait.
    var count = 0

    init(capacity: Int) {
        self.capacity = max(capacity, 64)
        unsafe base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    deinit { unsafe base.deallocate() }

    /// Makes room for `room` more bytes.
    mutating func reserve(_ room: Int) {
        guard capacity - count < room else { return }
        let grown = max(capacity * 2, count + room)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
        // SAFETY: `count` never exceeds `capacity`, and the new memory is larger.
        unsafe memory.copyMemory(from: base, byteCount: count)
        unsafe base.deallocate()
        unsafe base = unsafe memory
        capacity = grown
    }

    /// The room behind the bytes that wait.
    var free: UnsafeMutableRawBufferPointer {
        // SAFETY: a view of this buffer's own memory: of no use once it grows or is gone.
        unsafe UnsafeMutableRawBufferPointer(start: base + count, count: capacity - count)
    }

    /// The bytes that wait.
    var bytes: UnsafeRawBufferPointer {
        // SAFETY: a view like `free`; the first `count` bytes were written.
        unsafe UnsafeRawBufferPointer(start: base, count: count)
    }

    /// Copies bytes in.
    @inline(__always)
    mutating func append(_ octets: UnsafeRawBufferPointer) {
        guard let source = octets.baseAddress else { return }
        reserve(octets.count)
        // SAFETY: `reserve` made the room; `octets` lie outside of this buffer.
        unsafe (base + count).copyMemory(from: source, byteCount: octets.count)
        count += octets.count
    }

    /// Copies constant bytes in.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        unsafe append(
            UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Copies one byte in.
    @inline(__always)
    mutating func append(_ octet: UInt8) {
        reserve(1)
        // SAFETY: `reserve` made the room.
        unsafe base.storeBytes(of: octet, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    /// Drops bytes from the front.
    mutating func removeFirst(_ dropped: Int) {
        precondition(dropped <= count)
        count -= dropped
        if count > 0, dropped > 0 { unsafe _ = memmove(base, base + dropped, count) }
    }
}
