/// A reusable buffer for reading a file in parts, which holds the current part.
@safe package struct ReadBuffer: ~Copyable {
    // SAFETY: `init` allocates `capacity` bytes, and `deinit` frees them; no other code keeps their
    // address.
    private let memory: UnsafeMutableRawBufferPointer
    /// The buffer's size in bytes.
    package let capacity: Int
    /// The byte count of the current part.
    package private(set) var count = 0

    /// Creates an empty buffer of the given size.
    package init(byteCount: Int) {
        assert(byteCount > 0, "a buffer without room looks like the end of a file")
        capacity = byteCount
        // SAFETY: `count` is 0, so no byte is read before `fill` writes it.
        unsafe memory = .allocate(byteCount: byteCount, alignment: 4_096)
    }

    // SAFETY: allocated in `init` and accessible only through this value.
    deinit { unsafe memory.deallocate() }

    /// The bytes of the current part.
    package var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // SAFETY: `fill` initialized `count` bytes, which stay valid until its next call.
            let span = unsafe RawSpan(_unsafeStart: memory.baseAddress!, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Replaces the current part with the next one.
    ///
    /// - Parameters:
    ///   - limit: Maximum number of bytes to read.
    ///   - read: Writes to the beginning of the given room and returns the byte count; 0 at the
    ///     end.
    /// - Returns: The byte count of the new part.
    @discardableResult
    package mutating func fill<Failure>(
        limit: Int = .max,
        _ read: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        // SAFETY: the range is at most `capacity` and traps below 0. `read` gets the memory only
        // for the call, and the count that it returns is checked against the room.
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<min(limit, capacity)])
        count = 0
        let found = unsafe try read(room)
        precondition(found >= 0 && found <= room.count, "so many bytes were not asked for")
        count = found
        return found
    }
}
