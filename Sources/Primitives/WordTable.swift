internal import Glibc

/// Words in memory of its own, as many as a power of two; an index counts modulo that.
@safe public struct WordTable: ~Copyable {
    // SAFETY: calloc's, `mask + 1` words, freed in `deinit`, and reached only through this value.
    @usableFromInline let words: UnsafeMutablePointer<UInt64>
    @usableFromInline let mask: Int

    /// All words are zero.
    public init(count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "a power of two")
        // SAFETY: calloc checks the product and aligns for a word, and zeros are one.
        guard let memory = unsafe calloc(count, MemoryLayout<UInt64>.size) else {
            preconditionFailure("there is no memory")
        }
        unsafe words = memory.bindMemory(to: UInt64.self, capacity: count)
        mask = count - 1
    }

    /// All bits are set.
    public init(full count: Int) {
        self.init(count: count)
        for index in 0..<count { self[index] = ~0 }
    }

    // SAFETY: calloc's, of trivial type, and reached only through this value.
    deinit { unsafe free(words) }

    /// How many words there are.
    @inlinable public var count: Int { mask + 1 }

    /// The word at an index modulo the count.
    @inlinable
    public subscript(index: Int) -> UInt64 {
        // SAFETY: the mask keeps the index inside, and the memory lives as long as self.
        @_transparent unsafeAddress { unsafe UnsafePointer(words + (index & mask)) }
        @_transparent unsafeMutableAddress { unsafe words + (index & mask) }
    }
}
