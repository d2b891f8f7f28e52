package import Support

/// A window that goes along a list: what its user has not consumed comes again with more behind it.
@safe package struct ListWindow: ~Copyable {
    /// Bytes that are read at once.
    static let byteCount = 1 << 20
    /// The most bytes that are held for the sake of one long row: more than a row may have.
    static let maximumByteCount = 2 << 20

    private let list: TokenList
    private var memory = OwnedMemory(byteCount: Self.byteCount)
    /// How many of its bytes are set.
    private var filled = 0
    private var isConsumed = false
    /// Where the window starts in the list.
    private(set) var offset: UInt64 = 0
    /// Whether nothing follows the window.
    package private(set) var isLast = false

    package init(_ list: TokenList) throws(BroadsideError) {
        self.list = list
    }

    /// The bytes in the window; they stay where they are until `consume` or `fill`.
    package var bytes: UnsafeMutableRawBufferPointer {
        // SAFETY: so many bytes are set; the caller uses them until the next call only.
        unsafe memory[0..<filled]
    }

    /// The window's first bytes.
    @_lifetime(borrow self)
    package func first(_ count: Int) -> RawSpan {
        precondition(count <= filled)
        // SAFETY: so many bytes are set, and they stay until the window moves.
        return unsafe memory.bytes(0..<count)
    }

    /// Reads on until the window is full or the list at its end; false where nothing is left.
    package mutating func fill() throws(BroadsideError) -> Bool {
        if isLast { return false }
        // SAFETY: `read` says how many bytes it has set from the beginning of the room that it is
        // given.
        while filled < memory.byteCount {
            let count = unsafe try list.read(
                at: offset + UInt64(filled), into: memory[filled...])
            if count == 0 {
                isLast = true
                return filled > 0
            }
            filled += count
        }
        return true
    }

    /// Goes on behind the first `count` bytes.
    package mutating func consume(_ count: Int) {
        precondition(count <= filled)
        let rest = filled - count
        if count == 0, rest == memory.byteCount {
            precondition(
                memory.byteCount < Self.maximumByteCount, "longer rows pass by in pieces")
            let larger = OwnedMemory(byteCount: memory.byteCount * 2)
            // SAFETY: the window is full, so that all bytes that are copied are set, and the new
            // memory has room for twice as many; spans of the old one borrow this value.
            unsafe larger.all.copyMemory(from: UnsafeRawBufferPointer(memory.all))
            memory = larger
        } else if rest > 0, count > 0 {
            memory.move(count..<filled, to: 0)
        }
        filled = rest
        offset += UInt64(count)
    }
}
