package import BroadsideSupport

/// Window that moves along a list. Bytes that the caller has not consumed stay in the window, and
/// more bytes are added after them.
@safe package struct ListWindow: ~Copyable {
    /// Number of bytes that are read from the list at a time.
    static let byteCount = 1 << 20
    /// Maximum number of bytes that are kept for one long row. It is above the maximum length of a
    /// row.
    static let maximumByteCount = 2 << 20

    private let list: TokenList
    /// Whether the window has the original bytes of the list, without replaced line ends.
    private let isOriginal: Bool
    // SAFETY: `init` and `consume` allocate it, `consume` frees the one before, `deinit` the last;
    // the first `filled` bytes are set.
    private var memory: UnsafeMutableRawBufferPointer
    private var filled = 0
    /// Offset of the window in the list.
    private(set) var offset: UInt64 = 0
    /// Whether the list ends with the window.
    package private(set) var isLast = false

    package init(_ list: TokenList, isOriginal: Bool = false) throws(BroadsideError) {
        self.list = list
        self.isOriginal = isOriginal
        // SAFETY: no byte is read before `fill` has set it: `filled` is 0.
        unsafe memory = .allocate(byteCount: Self.byteCount, alignment: 4_096)
    }

    deinit {
        // SAFETY: the window can't be copied, and users of its `bytes` use them until `consume` or
        // `fill` only.
        unsafe memory.deallocate()
    }

    /// Bytes in the window, valid until `consume` or `fill`.
    package var bytes: UnsafeMutableRawBufferPointer {
        // SAFETY: `filled` is at most the memory's size; the caller uses the bytes until the next
        // call only.
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<filled])
    }

    /// Returns the window's first bytes.
    @_lifetime(borrow self)
    package func first(_ count: Int) -> RawSpan {
        precondition(count <= filled)
        // SAFETY: `count` bytes are set, and they are unchanged until the window moves.
        let span = unsafe RawSpan(_unsafeStart: memory.baseAddress!, byteCount: count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Returns the contents of the window, with line feeds as line ends.
    package func withLineFeeds() throws(BroadsideError) -> [UInt8] {
        // SAFETY: `filled` bytes are set, and they are copied.
        var text = unsafe [UInt8](bytes)
        try list.replaceLineEnds(in: &text, next: offset + UInt64(filled))
        return text
    }

    /// Reads until the window is full or the list ends; false if nothing is left.
    package mutating func fill() throws(BroadsideError) -> Bool {
        if isLast { return false }
        // SAFETY: `read` returns how many bytes it has set from the start of the room that it is
        // given.
        while unsafe filled < memory.count {
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[filled...])
            let byteOffset = offset + UInt64(filled)
            let count =
                isOriginal
                ? unsafe try list.readOriginal(at: byteOffset, into: room)
                : unsafe try list.read(at: byteOffset, into: room)
            if count == 0 {
                isLast = true
                return filled > 0
            }
            filled += count
            assert(unsafe filled <= memory.count, "so many bytes were not asked for")
        }
        return true
    }

    /// Removes the first `count` bytes from the window.
    package mutating func consume(_ count: Int) {
        precondition(count <= filled)
        assert(count >= 0, "nothing is put back")
        let rest = filled - count
        // SAFETY: the window is full, so that all bytes that are copied are set, and the new memory
        // has room for twice as many; spans of the old one borrow this value.
        if count == 0, unsafe rest == memory.count {
            precondition(
                unsafe memory.count < Self.maximumByteCount, "the window has a largest size")
            let larger = unsafe UnsafeMutableRawBufferPointer.allocate(
                byteCount: memory.count * 2, alignment: 4_096)
            unsafe larger.copyMemory(from: UnsafeRawBufferPointer(memory))
            unsafe memory.deallocate()
            unsafe memory = larger
        } else if rest > 0, count > 0 {
            // SAFETY: both ranges are within the window; `copyMemory` allows them to overlap.
            let start = unsafe memory.baseAddress.unsafelyUnwrapped
            unsafe start.copyMemory(from: start + count, byteCount: rest)
        }
        filled = rest
        offset += UInt64(count)
    }
}
