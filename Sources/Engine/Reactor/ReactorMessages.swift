package import BroadsidePolicy
package import BroadsideRing
package import BroadsideRows

/// What the reactor asks of whatever drives it: the ring, or the deterministic simulation.
///
/// Memory handed out in a submission stays valid and unchanged until its completion.
@safe package enum ReactorSubmission {
    /// Look the endpoint's name up; answered by `ReactorCompletion.resolved`.
    case resolve
    /// Open a TCP connection; answered by `connected`.
    case connect(connection: Int, address: SocketAddress)
    /// From now on hand every received byte to `received(connection:bytes:now:)`.
    case receive(connection: Int)
    /// Write bytes; answered by `sent`, perhaps with fewer.
    case send(connection: Int, bytes: UnsafeRawBufferPointer)
    /// Give the socket up; answered by `closed` once nothing of it is under way any more.
    case close(connection: Int)
    /// Write bytes of the ledger's segment at an offset; answered by `wrote`, perhaps with fewer.
    case write(bytes: UnsafeRawBufferPointer, offset: UInt64)
    /// Make what was written to the segment durable, note in the claim on the ledger up to where that is,
    /// and check that no newer attempt has made another one; answered by `synced` or `superseded`.
    case sync(position: UInt64)
    /// Hand over the next rows, at most about so many; answered by `chunk` or `listEnded`.
    case requestChunk(rowLimit: Int)
}

/// What the reactor is told.
package enum ReactorCompletion {
    /// The name's addresses, at least one; or why there is none.
    case resolved(Result<[SocketAddress], ResolutionFailure>)
    /// The TCP connection stands (`errno` 0) or doesn't.
    case connected(connection: Int, errno: Int32)
    /// No byte will follow: the peer's end (`errno` 0) or an error.
    case receiveEnded(connection: Int, errno: Int32)
    /// So many bytes went out, or a negative errno.
    case sent(connection: Int, result: Int)
    /// The socket is gone; the slot may be used again.
    case closed(connection: Int)
    /// So many bytes were written to the segment, or a negative errno.
    case wrote(result: Int)
    /// The segment was synced, and the claim stood after that; or a negative errno.
    case synced(result: Int)
    /// A newer attempt has claimed the ledger: what was synced may be unknown to it.
    case superseded
    /// Rows to send.
    case chunk(RowChunk)
    /// There are no more rows.
    case listEnded
    /// There are no more rows of the canary, and no others while it is pending.
    case listHeldByCanary
    /// The list can't be read on: `listFailed`, `listFaulty` or `listChanged`.
    case listFailed(StopCause)
}

/// Why a name has no address.
package struct ResolutionFailure: Error, Sendable {
    var message: String

    package init(message: String) {
        self.message = message
    }
}

/// Submissions on their way to the driver: a ring of fixed size that is drained every turn.
@safe struct SubmissionQueue: ~Copyable {
    // SAFETY: `capacity` places, of which `count` from `head` on, modulo the capacity, hold a
    // submission; `head` is below the capacity. Freed in `deinit`, and reached only through this
    // value.
    private let memory: UnsafeMutablePointer<ReactorSubmission>
    private let capacity: Int
    private var head = 0
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        // SAFETY: `count` says that no place holds anything.
        unsafe memory = .allocate(capacity: capacity)
    }

    deinit {
        // SAFETY: just the places that hold a submission are ended, see `memory`.
        for index in 0..<count {
            unsafe (memory + (head + index) % capacity).deinitialize(count: 1)
        }
        unsafe memory.deallocate()
    }

    mutating func append(_ submission: ReactorSubmission) {
        precondition(count < capacity, "the driver drains submissions every turn")
        // SAFETY: the queue is not full, so that the place behind the last holds nothing.
        unsafe (memory + (head + count) % capacity).initialize(to: submission)
        count += 1
    }

    mutating func popFirst() -> ReactorSubmission? {
        guard count > 0 else { return nil }
        // SAFETY: the queue is not empty: `head` holds a submission, and nothing once that is moved
        // out.
        let submission = unsafe (memory + head).move()
        head = (head + 1) % capacity
        count -= 1
        return submission
    }
}
