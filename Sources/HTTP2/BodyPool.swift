/// Bodies of responses that come in more than one frame, each cut to what is kept.
///
/// APNs answers with one short DATA frame, which never gets here. The pool starts empty and doubles
/// up to one place a stream, so that whatever a server interleaves, no body is mixed up or lost.
@safe struct BodyPool: ~Copyable {
    /// What is kept of a body, in bytes. The largest that APNs documents has under 100.
    static let keptCount = 512
    /// Stands for no place.
    static let none = UInt16.max

    // SAFETY: `grow` allocates both, `capacity` places of `keptCount` bytes and `capacity` numbers,
    // and frees those before; `deinit` frees the last. Each stream holds at most one place and
    // gives it back once.
    private var storage: UnsafeMutableRawPointer?
    private var free: UnsafeMutablePointer<UInt16>?
    private var freeCount = 0
    private var capacity = 0

    init() {
        // SAFETY: nothing is allocated yet, and no place is handed out before `grow`.
        unsafe storage = nil
        unsafe free = nil
    }

    deinit {
        // SAFETY: reached only through this value; bytes and numbers need no deinitialisation.
        unsafe storage?.deallocate()
        unsafe free?.deallocate()
    }

    /// The places that there are, taken or not.
    var slotCount: Int { capacity }

    /// A place for a body. At most one a stream may be taken at a time.
    mutating func takeSlot() -> UInt16 {
        if freeCount == 0 { grow() }
        assert(freeCount > 0 && freeCount <= capacity, "a place is free")
        freeCount -= 1
        // SAFETY: `free` has `capacity` elements, and 0..<freeCount of them are set; `grow` made
        // some.
        return unsafe free.unsafelyUnwrapped[freeCount]
    }

    /// Gives a place back that was taken.
    mutating func giveBack(_ slot: UInt16) {
        assert(freeCount < capacity && Int(slot) < capacity, "each place is given back once")
        // SAFETY: each place is taken once before it is given back, so there is room for it.
        unsafe free.unsafelyUnwrapped[freeCount] = slot
        freeCount += 1
    }

    /// The `keptCount` bytes of `slot`, until the next call that may grow the pool.
    func bytes(of slot: UInt16) -> UnsafeMutableRawPointer {
        // SAFETY: a place is one that `takeSlot` returned, below `capacity`.
        unsafe storage.unsafelyUnwrapped + Int(slot) * Self.keptCount
    }

    private mutating func grow() {
        let newCapacity = max(16, capacity * 2)
        precondition(newCapacity < Int(Self.none), "there are fewer streams than places")
        let newStorage = UnsafeMutableRawPointer.allocate(
            byteCount: newCapacity * Self.keptCount, alignment: 16)
        // SAFETY: the new memory is at least twice as large as the old, which is in use as a whole:
        // every place is taken, that is why the pool grows. The numbers in `free` all become new
        // ones.
        if let storage = unsafe storage {
            unsafe newStorage.copyMemory(from: storage, byteCount: capacity * Self.keptCount)
            unsafe storage.deallocate()
            unsafe free?.deallocate()
        }
        unsafe storage = newStorage
        let newFree = UnsafeMutablePointer<UInt16>.allocate(capacity: newCapacity)
        for slot in capacity..<newCapacity {
            // Counts up from the first element to the last that is free now.
            unsafe (newFree + freeCount).initialize(to: UInt16(slot))
            freeCount += 1
        }
        unsafe free = newFree
        capacity = newCapacity
    }
}
