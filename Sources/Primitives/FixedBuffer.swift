internal import Glibc

/// An owned buffer with a fixed number of elements and bounds-checked access.
@safe public struct FixedBuffer<Element>: ~Copyable {
    /// The number of elements.
    public let count: Int
    // SAFETY: allocated by calloc for `count` elements, all initialized when `init` returns; freed
    // in `deinit` and accessible only through this value.
    @usableFromInline let start: UnsafeMutablePointer<Element>

    /// Creates a buffer whose elements all have the same value.
    public init(repeating value: Element, count: Int) {
        self.init(Array(repeating: value, count: count))
    }

    /// Creates a buffer from an array's elements.
    public init(_ elements: [Element]) {
        // SAFETY: all elements are initialized before the memory is accessible.
        unsafe self.init(zeroed: elements.count)
        for index in 0..<count { unsafe (start + index).initialize(to: elements[index]) }
    }

    /// Creates a buffer of zero bits, which must be a valid value of the type. Pages of a large
    /// buffer are not touched until an element is used.
    @unsafe public init(zeroed count: Int) {
        precondition(count >= 0, "not a count")
        precondition(MemoryLayout<Element>.alignment <= 16, "calloc aligns to 16 bytes")
        // SAFETY: calloc checks the product and aligns for any element of at most 16 bytes; the
        // caller guarantees that zero bits are a valid element.
        guard let memory = unsafe calloc(max(count, 1), MemoryLayout<Element>.stride) else {
            preconditionFailure("there is no memory")
        }
        unsafe start = memory.bindMemory(to: Element.self, capacity: count)
        self.count = count
    }

    deinit {
        // SAFETY: allocated by calloc, all elements are initialized, and no other access is
        // possible.
        unsafe start.deinitialize(count: count)
        unsafe free(start)
    }

    /// Accesses the element at an index; traps if it is out of bounds.
    @inlinable
    public subscript(index: Int) -> Element {
        // SAFETY: the index was checked, all elements are initialized, and the memory lives as long
        // as self.
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
    /// The buffer's bytes.
    @inlinable
    public var bytes: RawSpan {
        @_transparent @_lifetime(borrow self) get {
            // SAFETY: `count` bytes are initialized, and the memory lives as long as self.
            let span = unsafe RawSpan(_unsafeStart: start, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }
}

// SAFETY: the buffer is reachable only through this value, which can't be copied.
extension FixedBuffer: @unchecked Sendable where Element: Sendable {}
