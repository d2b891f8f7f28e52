package import BroadsidePolicy
package import BroadsideRing
package import BroadsideRows

/// The requests of the reactor to its driver: the ring, or the deterministic simulation.
///
/// Memory in a submission stays valid and unchanged until its completion.
@safe package enum ReactorSubmission {
    /// Resolve the endpoint's name; completes with `ReactorCompletion.resolved`.
    case resolve
    /// Open a TCP connection; completes with `connected`.
    case connect(connection: Int, address: SocketAddress)
    /// Pass each received byte to `received(connection:bytes:now:)` from now on.
    case receive(connection: Int)
    /// Write bytes; completes with `sent`, perhaps for fewer bytes.
    case send(connection: Int, bytes: UnsafeRawBufferPointer)
    /// Close the socket; completes with `closed` when no operation on it is pending.
    case close(connection: Int)
    /// Write bytes to the ledger segment at an offset; completes with `wrote`, perhaps for fewer
    /// bytes.
    case write(bytes: UnsafeRawBufferPointer, offset: UInt64)
    /// Make all written bytes of the segment durable. Then record their position in the claim on
    /// the ledger, and check that no newer attempt has claimed the ledger. Completes with `synced`
    /// or `superseded`.
    case sync(position: UInt64)
    /// Read further rows, about `rowLimit` at most; completes with `chunk` or `listEnded`.
    case requestChunk(rowLimit: Int)
}

/// The results and events from the driver.
package enum ReactorCompletion {
    /// Addresses of the name, at least one, or the failure.
    case resolved(Result<[SocketAddress], ResolutionFailure>)
    /// The TCP connection is established (`errno` 0) or failed.
    case connected(connection: Int, errno: Int32)
    /// No byte will follow: end of the stream (`errno` 0) or an error.
    case receiveEnded(connection: Int, errno: Int32)
    /// Number of bytes sent, or a negative errno.
    case sent(connection: Int, result: Int)
    /// The socket is closed; the slot may be used again.
    case closed(connection: Int)
    /// Number of bytes written to the segment, or a negative errno.
    case wrote(result: Int)
    /// The segment was synced, and after that the claim on the ledger was still valid. A negative
    /// `result` is an errno: the sync or the check failed.
    case synced(result: Int)
    /// A newer attempt has claimed the ledger. That attempt may not have read the bytes that were
    /// synced.
    case superseded
    /// Rows to send.
    case chunk(RowChunk)
    /// There are no more rows.
    case listEnded
    /// All rows of the canary were read. All other rows are held back until the canary is decided.
    case listHeldByCanary
    /// Reading the list failed: `listFailed`, `listFaulty` or `listChanged`.
    case listFailed(StopCause)
}

/// Failure to resolve a name.
package struct ResolutionFailure: Error, Sendable {
    var message: String

    package init(message: String) {
        self.message = message
    }
}

/// Submissions for the driver: a ring of fixed size that is drained in each iteration.
@safe struct SubmissionQueue: ~Copyable {
    // SAFETY: `capacity` elements, of which `count` from `head` on, modulo the capacity, are
    // initialized; `head` is below the capacity. Freed in `deinit`, and accessed only through this
    // value.
    private let memory: UnsafeMutablePointer<ReactorSubmission>
    private let capacity: Int
    private var head = 0
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        // SAFETY: `count` is 0, so that no element counts as initialized.
        unsafe memory = .allocate(capacity: capacity)
    }

    deinit {
        // SAFETY: exactly the initialized elements are deinitialized, see `memory`.
        for index in 0..<count {
            unsafe (memory + (head + index) % capacity).deinitialize(count: 1)
        }
        unsafe memory.deallocate()
    }

    mutating func append(_ submission: ReactorSubmission) {
        precondition(count < capacity, "the driver drains submissions every iteration")
        // SAFETY: the queue is not full, so that the element behind the last is uninitialized.
        unsafe (memory + (head + count) % capacity).initialize(to: submission)
        count += 1
    }

    mutating func popFirst() -> ReactorSubmission? {
        guard count > 0 else { return nil }
        // SAFETY: the queue is not empty, so that `head` is initialized; it is not after the move.
        let submission = unsafe (memory + head).move()
        head = (head + 1) % capacity
        count -= 1
        return submission
    }
}
