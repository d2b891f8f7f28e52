/// Memory of a fixed size that belongs to one value and goes with it.
///
/// It is not set to anything at first. Which bytes are set is what its owner keeps track of, so that
/// whoever takes an address or bytes from here says why that is safe.
@safe package struct OwnedMemory: ~Copyable {
    // SAFETY: `byteCount` bytes of this value's own, freed in `deinit`. It can't be copied, so that
    // an address is good for as long as its owner has it.
    package let start: UnsafeMutableRawPointer
    /// How many bytes it has.
    package let byteCount: Int

    /// - Parameter byteCount: How many bytes it has, aligned for any type and to a cache line.
    package init(byteCount: Int) {
        precondition(byteCount >= 0, "not a count")
        self.byteCount = byteCount
        // SAFETY: fresh memory; nothing is read here.
        unsafe start = .allocate(byteCount: byteCount, alignment: 64)
    }

    // SAFETY: allocated in `init`, and freed once: this value can't be copied.
    deinit { unsafe start.deallocate() }

    /// All of it.
    package var all: UnsafeMutableRawBufferPointer {
        // SAFETY: as many bytes as there are.
        @inline(__always) get {
            unsafe UnsafeMutableRawBufferPointer(start: start, count: byteCount)
        }
    }

    /// A part of it; traps outside.
    package subscript(range: Range<Int>) -> UnsafeMutableRawBufferPointer {
        // SAFETY: the range was checked.
        @inline(__always) get {
            precondition(range.lowerBound >= 0 && range.upperBound <= byteCount)
            return unsafe UnsafeMutableRawBufferPointer(
                start: start + range.lowerBound, count: range.count)
        }
    }

    /// The same, to its end.
    package subscript(range: PartialRangeFrom<Int>) -> UnsafeMutableRawBufferPointer {
        // SAFETY: the other subscript checks the range.
        @inline(__always) get { unsafe self[range.lowerBound..<byteCount] }
    }

    /// Bytes that were set, for as long as their owner leaves them alone.
    ///
    /// - Parameter range: Bytes that the caller knows to be set; traps outside of the memory.
    @inline(__always) @_lifetime(borrow self)
    @unsafe package func bytes(_ range: Range<Int>) -> RawSpan {
        // SAFETY: the subscript checks the range; the caller vouches for the bytes.
        let span = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(self[range]))
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Copies bytes to another place, whether both overlap or not.
    ///
    /// - Parameters:
    ///   - range: Where they are.
    ///   - place: Where they go.
    package mutating func move(_ range: Range<Int>, to place: Int) {
        // SAFETY: both ranges are checked, and `copyMemory` lets them overlap.
        unsafe self[place..<(place + range.count)].copyMemory(
            from: UnsafeRawBufferPointer(self[range]))
    }
}
