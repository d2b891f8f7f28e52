internal import Glibc

/// An owned table of 64-bit words whose size is a power of two; an index is taken modulo the size.
@safe public struct WordTable: ~Copyable {
    // SAFETY: `mask + 1` words allocated by calloc, freed in `deinit` and accessible only through
    // this value.
    @usableFromInline let words: UnsafeMutablePointer<UInt64>
    @usableFromInline let mask: Int

    /// Creates a table of zero words.
    public init(count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "a power of two")
        // SAFETY: calloc checks the product and aligns for a word, and zero bits are a valid word.
        guard let memory = unsafe calloc(count, MemoryLayout<UInt64>.size) else {
            preconditionFailure("there is no memory")
        }
        unsafe words = memory.bindMemory(to: UInt64.self, capacity: count)
        mask = count - 1
    }

    /// Creates a table with all bits set.
    public init(full count: Int) {
        self.init(count: count)
        for index in 0..<count { self[index] = ~0 }
    }

    // SAFETY: allocated by calloc, of a trivial type, and accessible only through this value.
    deinit { unsafe free(words) }

    /// The number of words.
    @inlinable public var count: Int { mask + 1 }

    /// Accesses the word at an index modulo the count.
    @inlinable
    public subscript(index: Int) -> UInt64 {
        // SAFETY: the mask keeps the index within bounds, and the memory lives as long as self.
        @_transparent unsafeAddress { unsafe UnsafePointer(words + (index & mask)) }
        @_transparent unsafeMutableAddress { unsafe words + (index & mask) }
    }
}
