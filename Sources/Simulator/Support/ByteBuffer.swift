internal import Glibc

/// Bytes that wait, in memory of their own that grows up to what its owner allows.
@safe struct ByteBuffer: ~Copyable {
    // SAFETY: `capacity` bytes of this buffer's own, of which the first `count` are set; freed when
    // they grow and in `deinit`.
    private var base: UnsafeMutableRawPointer
    private(set) var capacity: Int
    /// How many bytes wait.
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(capacity, 64)
        // SAFETY: `count` says that nothing of it is set.
        unsafe base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    // SAFETY: reached only through this value.
    deinit { unsafe base.deallocate() }

    /// Makes room for `room` more bytes.
    mutating func reserve(_ room: Int) {
        assert(room >= 0 && count <= capacity, "bytes are in their buffer")
        guard capacity - count < room else { return }
        let grown = max(capacity * 2, count + room)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
        // SAFETY: `count` never exceeds `capacity`, and the new memory is larger.
        unsafe memory.copyMemory(from: base, byteCount: count)
        unsafe base.deallocate()
        unsafe base = unsafe memory
        capacity = grown
    }

    /// The bytes that wait.
    var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // SAFETY: the first `count` bytes were written, and stay while the buffer is borrowed.
            let bytes = unsafe RawSpan(_unsafeStart: base, byteCount: count)
            return unsafe _overrideLifetime(bytes, borrowing: self)
        }
    }

    /// The same for the kernel, which reads them on: the caller leaves the buffer alone until then.
    var unsafeBytes: UnsafeRawBufferPointer {
        // SAFETY: `count` bytes are set; the caller keeps the buffer, and leaves it alone meanwhile.
        unsafe UnsafeRawBufferPointer(start: base, count: count)
    }

    /// Appends what the closure writes: it has room for `room` bytes, or for all that is free.
    mutating func append<Result>(
        room: Int, _ body: (inout OutputRawSpan) -> Result
    ) -> Result {
        reserve(room)
        // SAFETY: the memory behind `count` is nobody else's, and the buffer is ours for the call.
        let free = unsafe UnsafeMutableRawBufferPointer(
            start: base + count, count: capacity - count)
        var output = unsafe OutputRawSpan(buffer: free, initializedCount: 0)
        let result = body(&output)
        count += unsafe output.finalize(for: free)
        assert(count <= capacity, "bytes are in their buffer")
        return result
    }

    /// Copies bytes in.
    @inline(__always)
    mutating func append(_ bytes: RawSpan) {
        reserve(bytes.byteCount)
        // SAFETY: `reserve` made the room; `bytes` lie outside of this buffer.
        unsafe bytes.withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(start: base + count, count: $0.count)
                .copyMemory(from: $0)
        }
        count += bytes.byteCount
    }

    /// Copies constant bytes in.
    @inline(__always)
    mutating func append(_ text: StaticString) { append(text.rawBytes) }

    /// Copies one byte in.
    @inline(__always)
    mutating func append(_ byte: UInt8) { append(copying: byte) }

    /// Copies an integer in, in network order.
    @inline(__always)
    mutating func append(bigEndian value: UInt32) { append(copying: value.bigEndian) }

    /// Copies an integer in, in network order.
    @inline(__always)
    mutating func append(bigEndian value: UInt16) { append(copying: value.bigEndian) }

    /// Copies bytes of a fixed count in.
    @inline(__always)
    mutating func append<let byteCount: Int>(_ bytes: InlineArray<byteCount, UInt8>) {
        append(copying: bytes)
    }

    /// Copies decimal digits in.
    mutating func append(decimal value: UInt64) {
        var divisor: UInt64 = 1
        while value / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(truncatingIfNeeded: value / divisor % 10) + 0x30)
            divisor /= 10
        }
    }

    /// Copies a value's bytes in, of which none is padding.
    @inline(__always)
    private mutating func append<Value: BitwiseCopyable>(copying value: Value) {
        reserve(MemoryLayout<Value>.size)
        // SAFETY: `reserve` made the room.
        unsafe base.storeBytes(of: value, toByteOffset: count, as: Value.self)
        count += MemoryLayout<Value>.size
    }

    /// Writes an integer in network order over four bytes that wait.
    @inline(__always)
    mutating func overwrite(at offset: Int, bigEndian value: UInt32) {
        precondition(offset >= 0 && offset + 4 <= count)
        // SAFETY: checked above to lie within the bytes that wait.
        unsafe base.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
    }

    /// Drops bytes from the front.
    mutating func removeFirst(_ dropped: Int) {
        precondition(dropped >= 0 && dropped <= count)
        count -= dropped
        // SAFETY: `dropped + count` bytes were set; memmove(3) lets ranges overlap.
        if count > 0, dropped > 0 { unsafe _ = memmove(base, base + dropped, count) }
    }

    /// Drops bytes from the end.
    mutating func removeLast(_ dropped: Int) {
        precondition(dropped >= 0 && dropped <= count)
        count -= dropped
    }

    /// Drops all bytes.
    mutating func removeAll() { count = 0 }
}
