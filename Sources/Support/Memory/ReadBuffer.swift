/// Memory that is read into, a piece after the other, and the bytes of the piece that it holds.
@safe package struct ReadBuffer: ~Copyable {
    // SAFETY: `init` allocates `capacity` bytes, and `deinit` frees them; nothing else keeps their
    // address.
    private let memory: UnsafeMutableRawBufferPointer
    /// How many bytes it has room for.
    package let capacity: Int
    /// How many bytes it holds.
    package private(set) var count = 0

    /// Empty, with room for so many bytes.
    package init(byteCount: Int) {
        assert(byteCount > 0, "a buffer without room looks like the end of a file")
        capacity = byteCount
        // SAFETY: no byte is read before `fill` has set it: `count` is 0.
        unsafe memory = .allocate(byteCount: byteCount, alignment: 4_096)
    }

    // SAFETY: allocated in `init`, and reached only through this value.
    deinit { unsafe memory.deallocate() }

    /// The bytes that it holds.
    package var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // SAFETY: `fill` has set so many, and they stay until its next call.
            let span = unsafe RawSpan(_unsafeStart: memory.baseAddress!, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Has a piece read in place of what is here.
    ///
    /// - Parameters:
    ///   - limit: The most bytes that are wanted.
    ///   - read: Sets bytes from the beginning of the room that it is given, and says how many; 0 at
    ///     the end.
    /// - Returns: How many bytes there are now.
    @discardableResult
    package mutating func fill<Failure>(
        limit: Int = .max,
        _ read: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        // SAFETY: the range is at most `capacity`, and traps below 0. `read` gets the memory for
        // the call only; how many bytes it has set is checked to be no more than there is room for.
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<min(limit, capacity)])
        count = 0
        let found = unsafe try read(room)
        precondition(found >= 0 && found <= room.count, "so many bytes were not asked for")
        count = found
        return found
    }
}
