/// One completion from the kernel, copied out of the completion queue.
///
/// Source: `struct io_uring_cqe` of linux/io_uring.h.
public struct Completion: Equatable, Sendable {
    /// User data of the submitted operation.
    public var userData: UInt64
    /// If it is not negative: a count or a file descriptor, depending on the operation. If it is
    /// negative: minus an `errno` value.
    public var result: Int32
    /// Flags of the completion (IORING_CQE_F_ bits).
    public var flags: UInt32

    /// Creates a completion, for drivers other than the kernel.
    @inlinable
    public init(userData: UInt64, result: Int32, flags: UInt32 = 0) {
        self.userData = userData
        self.result = result
        self.flags = flags
    }

    /// ID of the provided buffer with the received bytes (IORING_CQE_F_BUFFER); nil if there is
    /// none. The buffer must be returned to the ring.
    @inlinable
    public var bufferID: UInt16? {
        flags & 1 != 0 ? UInt16(truncatingIfNeeded: flags >> 16) : nil
    }

    /// Whether a multishot operation is still armed (IORING_CQE_F_MORE). If not, it has ended and
    /// may be armed again.
    @inlinable
    public var hasMore: Bool { flags & 2 != 0 }
}

/// A fixed number of completions, copied out of the queue before any is processed.
///
/// The loop that processes completions also submits operations. If the submission queue is full,
/// submitting enters the kernel, which may add completions to the completion queue. The loop is not
/// disturbed, because it works on the copy.
@safe public struct CompletionBatch: ~Copyable {
    // SAFETY: `init` allocates `capacity` elements, `deinit` frees them, and the batch can't be
    // copied.
    @usableFromInline let storage: UnsafeMutablePointer<Completion>
    /// Maximum number of completions.
    let capacity: Int
    /// Current number of completions.
    public internal(set) var count = 0

    /// Creates an empty batch. It allocates its storage, and frees it when its life ends.
    public init(capacity: Int) {
        precondition(capacity > 0, "a batch of completions holds at least one")
        self.capacity = capacity
        // SAFETY: no element is read before `reap` has set it: `count` is 0.
        unsafe storage = .allocate(capacity: capacity)
    }

    // SAFETY: accessed only through this value; completions need no deinitialization.
    deinit { unsafe storage.deallocate() }

    /// Completion at a position in `0..<count`, in the order of the kernel.
    @inlinable
    public subscript(position: Int) -> Completion {
        precondition(position >= 0 && position < count, "no such completion")
        // SAFETY: the position was checked, and `reap` initializes the first `count` elements.
        return unsafe storage[position]
    }
}
