/// A value that cannot be copied, in memory of its own: it never moves, and is used where it lies even
/// if it is optional.
///
/// A handle: copies of it name the same value. Its owner makes it, alone knows it, and destroys it.
@safe struct HeapValue<Value: ~Copyable> {
    // SAFETY: one value's memory, initialized from `init` to `destroy`, after which nobody has a
    // handle.
    private let pointer: UnsafeMutablePointer<Value>

    init(_ value: consuming Value) {
        // SAFETY: room for one value, which is moved there at once.
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: value)
    }

    /// The value, where it lies.
    var value: Value {
        // SAFETY: a handle is used before `destroy` only.
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(pointer) }
        @inline(__always)
        nonmutating unsafeMutableAddress { unsafe pointer }
    }

    /// Ends the value.
    func destroy() {
        // SAFETY: called once, by the owner, who forgets the handle. `deinitialize(count:)` ends
        // nothing that cannot be copied once it is optimized (Swift 6.3).
        _ = unsafe pointer.move()
        unsafe pointer.deallocate()
    }
}
