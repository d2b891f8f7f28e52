internal import Glibc

/// Memory for a fixed number of elements, which it owns; every access is held against the count.
@safe public struct FixedBuffer<Element>: ~Copyable {
    /// How many elements there are.
    public let count: Int
    // SAFETY: calloc's, for `count` elements, all of them set once `init` is over; freed in
    // `deinit`, and reached only through this value.
    @usableFromInline let start: UnsafeMutablePointer<Element>

    /// All elements have the same value.
    public init(repeating value: Element, count: Int) {
        self.init(Array(repeating: value, count: count))
    }

    /// An array's elements.
    public init(_ elements: [Element]) {
        // SAFETY: all elements are set before anything else sees the memory.
        unsafe self.init(zeroed: elements.count)
        for index in 0..<count { unsafe (start + index).initialize(to: elements[index]) }
    }

    /// All bits are zero, which must be a value of the type. Memory that no element ever needed is
    /// never touched, where there is much of it.
    @unsafe public init(zeroed count: Int) {
        precondition(count >= 0, "not a count")
        precondition(MemoryLayout<Element>.alignment <= 16, "calloc aligns to 16 bytes")
        // SAFETY: calloc checks the product, and aligns for any element of at most 16 bytes; the
        // caller vouches that zeros are an element.
        guard let memory = unsafe calloc(max(count, 1), MemoryLayout<Element>.stride) else {
            preconditionFailure("there is no memory")
        }
        unsafe start = memory.bindMemory(to: Element.self, capacity: count)
        self.count = count
    }

    deinit {
        // SAFETY: calloc's, all elements are set, and nothing else reaches them.
        unsafe start.deinitialize(count: count)
        unsafe free(start)
    }

    /// The element at an index; traps outside of the buffer.
    @inlinable
    public subscript(index: Int) -> Element {
        // SAFETY: the index was checked, all elements are set, and the memory lives as long as
        // self.
        @_transparent unsafeAddress {
            precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
            return unsafe UnsafePointer(start + index)
        }
        @_transparent unsafeMutableAddress {
            precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
            return unsafe start + index
        }
    }
}

extension FixedBuffer where Element == UInt8 {
    /// All bytes.
    @inlinable
    public var bytes: RawSpan {
        @_transparent @_lifetime(borrow self) get {
            // SAFETY: `count` bytes are set, and the memory lives as long as self.
            let span = unsafe RawSpan(_unsafeStart: start, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }
}
