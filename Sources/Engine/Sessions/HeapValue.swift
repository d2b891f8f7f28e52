/// A noncopyable value in a separate memory allocation. It never moves and is used in place, even
/// if the handle is optional.
///
/// This type is only a handle: copies refer to the same value. The owner creates the value, keeps
/// the only handle and destroys it.
@safe struct HeapValue<Value: ~Copyable> {
    // SAFETY: memory of one value, initialized from `init` to `destroy`; no handle is used after
    // that.
    private let pointer: UnsafeMutablePointer<Value>

    init(_ value: consuming Value) {
        // SAFETY: room for one value, which is moved there at once.
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: value)
    }

    /// The value, in place.
    var value: Value {
        // SAFETY: a handle is only used before `destroy`.
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(pointer) }
        @inline(__always)
        nonmutating unsafeMutableAddress { unsafe pointer }
    }

    /// Destroys the value and frees its memory.
    func destroy() {
        // SAFETY: called once, by the owner, which drops the handle. An optimized
        // `deinitialize(count:)` does not end noncopyable values (Swift 6.3).
        _ = unsafe pointer.move()
        unsafe pointer.deallocate()
    }
}
