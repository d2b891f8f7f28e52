/// The buffers for response bodies that arrive in more than one frame. Each keeps at most
/// `keptCount` bytes of a body.
///
/// APNs sends one short DATA frame, which needs no buffer. The pool starts empty. When it needs
/// more buffers, it doubles their number, up to one buffer per stream. So no body is mixed up or
/// lost, even if a server interleaves the bodies.
@safe struct BodyPool: ~Copyable {
    /// Maximum number of bytes of a body that are kept. The largest body that Apple documents has
    /// fewer than 100 bytes.
    static let keptCount = 512
    /// Number that stands for no slot.
    static let none = UInt16.max

    // SAFETY: `grow` allocates both, `capacity` slots of `keptCount` bytes and `capacity` numbers,
    // and frees the previous ones; `deinit` frees the last. Each stream has at most one slot and
    // returns it once.
    private var storage: UnsafeMutableRawPointer?
    private var free: UnsafeMutablePointer<UInt16>?
    private var freeCount = 0
    private var capacity = 0

    init() {
        // SAFETY: nothing is allocated yet, and no slot is handed out before `grow`.
        unsafe storage = nil
        unsafe free = nil
    }

    deinit {
        // SAFETY: accessed only through this value; bytes and numbers need no deinitialization.
        unsafe storage?.deallocate()
        unsafe free?.deallocate()
    }

    /// Number of slots, taken or free.
    var slotCount: Int { capacity }

    /// Takes a slot for a body; each stream may have at most one.
    mutating func takeSlot() -> UInt16 {
        if freeCount == 0 { grow() }
        assert(freeCount > 0 && freeCount <= capacity, "a place is free")
        freeCount -= 1
        // SAFETY: `free` has `capacity` elements, and 0..<freeCount of them are set; `grow` made
        // some.
        return unsafe free.unsafelyUnwrapped[freeCount]
    }

    /// Returns a slot that was taken.
    mutating func giveBack(_ slot: UInt16) {
        assert(freeCount < capacity && Int(slot) < capacity, "each place is given back once")
        // SAFETY: each slot is taken once before it is returned, so there is room for it.
        unsafe free.unsafelyUnwrapped[freeCount] = slot
        freeCount += 1
    }

    /// The `keptCount` bytes of a slot, valid until the next call that may grow the pool.
    func bytes(of slot: UInt16) -> UnsafeMutableRawPointer {
        // SAFETY: the slot came from `takeSlot` and is below `capacity`.
        unsafe storage.unsafelyUnwrapped + Int(slot) * Self.keptCount
    }

    private mutating func grow() {
        let newCapacity = max(16, capacity * 2)
        precondition(newCapacity < Int(Self.none), "there are fewer streams than places")
        let newStorage = UnsafeMutableRawPointer.allocate(
            byteCount: newCapacity * Self.keptCount, alignment: 16)
        // SAFETY: the new memory is at least twice as large as the old memory. The pool grows only
        // when each slot is taken, so the old memory is copied whole, and `free` has no number to
        // copy: it gets the numbers of the new slots.
        if let storage = unsafe storage {
            unsafe newStorage.copyMemory(from: storage, byteCount: capacity * Self.keptCount)
            unsafe storage.deallocate()
            unsafe free?.deallocate()
        }
        unsafe storage = newStorage
        let newFree = UnsafeMutablePointer<UInt16>.allocate(capacity: newCapacity)
        for slot in capacity..<newCapacity {
            // Fills the list of free slots from its start.
            unsafe (newFree + freeCount).initialize(to: UInt16(slot))
            freeCount += 1
        }
        unsafe free = newFree
        capacity = newCapacity
    }
}
