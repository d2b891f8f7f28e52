internal import Glibc

/// A byte buffer that grows and has its own memory. Its owner limits the growth.
@safe struct ByteBuffer: ~Copyable {
    // SAFETY: `capacity` bytes owned by this buffer, of which the first `count` are initialized;
    // freed on growth and in `deinit`.
    private var base: UnsafeMutableRawPointer
    private(set) var capacity: Int
    /// Number of buffered bytes.
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(capacity, 64)
        // SAFETY: `count` is 0, so nothing is read before it is written.
        unsafe base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    // SAFETY: the memory is accessible only through this value.
    deinit { unsafe base.deallocate() }

    /// Grows the buffer until `room` more bytes fit.
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

    /// The buffered bytes.
    var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // SAFETY: the first `count` bytes are initialized and stay valid while the buffer is
            // borrowed.
            let bytes = unsafe RawSpan(_unsafeStart: base, byteCount: count)
            return unsafe _overrideLifetime(bytes, borrowing: self)
        }
    }

    /// Returns a copy of some of the buffered bytes.
    func copy(_ range: Range<Int>) -> [UInt8] {
        let bytes = bytes
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        for position in range { copy.append(bytes[position]) }
        return copy
    }

    /// The buffered bytes, for an asynchronous read by the kernel. The caller must not modify the
    /// buffer until the read completes.
    var unsafeBytes: UnsafeRawBufferPointer {
        // SAFETY: `count` bytes are initialized; the caller keeps the buffer alive and unmodified.
        unsafe UnsafeRawBufferPointer(start: base, count: count)
    }

    /// Grows the buffer until at least `room` bytes are free, and appends what the closure writes.
    mutating func append<Result>(
        room: Int, _ body: (inout OutputRawSpan) -> Result
    ) -> Result {
        reserve(room)
        // SAFETY: the memory after `count` is otherwise unused, and the buffer is accessed
        // exclusively during the call.
        let free = unsafe UnsafeMutableRawBufferPointer(
            start: base + count, count: capacity - count)
        var output = unsafe OutputRawSpan(buffer: free, initializedCount: 0)
        let result = body(&output)
        count += unsafe output.finalize(for: free)
        assert(count <= capacity, "bytes are in their buffer")
        return result
    }

    /// Appends bytes.
    @inline(__always)
    mutating func append(_ bytes: RawSpan) {
        reserve(bytes.byteCount)
        // SAFETY: `reserve` made the room; `bytes` are outside this buffer.
        unsafe bytes.withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(start: base + count, count: $0.count)
                .copyMemory(from: $0)
        }
        count += bytes.byteCount
    }

    /// Appends constant bytes.
    @inline(__always)
    mutating func append(_ text: StaticString) { append(text.rawBytes) }

    /// Appends one byte.
    @inline(__always)
    mutating func append(_ byte: UInt8) { append(copying: byte) }

    /// Appends an integer in network byte order.
    @inline(__always)
    mutating func append(bigEndian value: UInt32) { append(copying: value.bigEndian) }

    /// Appends an integer in network byte order.
    @inline(__always)
    mutating func append(bigEndian value: UInt16) { append(copying: value.bigEndian) }

    /// Appends a fixed number of bytes.
    @inline(__always)
    mutating func append<let byteCount: Int>(_ bytes: InlineArray<byteCount, UInt8>) {
        append(copying: bytes)
    }

    /// Appends a number in decimal digits.
    mutating func append(decimal value: UInt64) {
        var divisor: UInt64 = 1
        while value / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(truncatingIfNeeded: value / divisor % 10) + 0x30)
            divisor /= 10
        }
    }

    /// Appends a value's bytes, which must include no padding.
    @inline(__always)
    private mutating func append<Value: BitwiseCopyable>(copying value: Value) {
        reserve(MemoryLayout<Value>.size)
        // SAFETY: `reserve` made the room.
        unsafe base.storeBytes(of: value, toByteOffset: count, as: Value.self)
        count += MemoryLayout<Value>.size
    }

    /// Overwrites four buffered bytes with an integer in network byte order.
    @inline(__always)
    mutating func overwrite(at offset: Int, bigEndian value: UInt32) {
        precondition(offset >= 0 && offset + 4 <= count)
        // SAFETY: the range was checked above to be within the buffered bytes.
        unsafe base.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
    }

    /// Removes bytes from the front.
    mutating func removeFirst(_ dropped: Int) {
        precondition(dropped >= 0 && dropped <= count)
        count -= dropped
        // SAFETY: `dropped + count` bytes are initialized; memmove(3) permits overlapping ranges.
        if count > 0, dropped > 0 { unsafe _ = memmove(base, base + dropped, count) }
    }

    /// Removes bytes from the end.
    mutating func removeLast(_ dropped: Int) {
        precondition(dropped >= 0 && dropped <= count)
        count -= dropped
    }

    /// Removes all bytes.
    mutating func removeAll() { count = 0 }
}
