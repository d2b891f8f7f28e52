/// One answer of the kernel, copied out of the completion queue.
///
/// Source: `struct io_uring_cqe` of linux/io_uring.h.
public struct Completion: Equatable, Sendable {
    /// The value that the operation was submitted with.
    public var userData: UInt64
    /// Non-negative: the operation's count or file descriptor. Negative: minus an `errno` value.
    public var result: Int32
    /// IORING_CQE_F_ bits.
    public var flags: UInt32

    /// A completion as a driver other than the kernel would make it.
    @inlinable
    public init(userData: UInt64, result: Int32, flags: UInt32 = 0) {
        self.userData = userData
        self.result = result
        self.flags = flags
    }

    /// The provided buffer that holds the received bytes (IORING_CQE_F_BUFFER); give it back.
    @inlinable
    public var bufferID: UInt16? {
        flags & 1 != 0 ? UInt16(truncatingIfNeeded: flags >> 16) : nil
    }

    /// A multishot operation is still armed (IORING_CQE_F_MORE). Where it is false after a
    /// multishot operation's completion, that operation has ended and may be armed again.
    @inlinable
    public var hasMore: Bool { flags & 2 != 0 }
}

/// A fixed number of completions, copied out in one go and acted on afterwards.
///
/// Reap before act: acting on a completion submits operations, and a full submission queue enters
/// the kernel, which may add completions while a loop over the queue itself would be running.
@safe public struct CompletionBatch: ~Copyable {
    // SAFETY: `init` allocates `capacity` elements, `deinit` frees them, and the batch can't be
    // copied.
    @usableFromInline let storage: UnsafeMutablePointer<Completion>
    /// The most completions it takes at once.
    let capacity: Int
    /// How many it holds.
    public internal(set) var count = 0

    /// An empty batch; its storage is allocated here and freed with it.
    public init(capacity: Int) {
        precondition(capacity > 0, "a batch of completions holds at least one")
        self.capacity = capacity
        // SAFETY: no element is read before `reap` has set it: `count` is 0.
        unsafe storage = .allocate(capacity: capacity)
    }

    // SAFETY: reached only through this value; completions need no deinitialisation.
    deinit { unsafe storage.deallocate() }

    /// The completion at a position in `0..<count`, in the order the kernel posted them.
    @inlinable
    public subscript(position: Int) -> Completion {
        precondition(position >= 0 && position < count, "no such completion")
        // SAFETY: the position was checked, and `reap` initialises the first `count` elements.
        return unsafe storage[position]
    }
}
