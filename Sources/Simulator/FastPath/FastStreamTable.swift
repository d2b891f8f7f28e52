internal import Glibc

/// What `FastSession` knows of a request until it is answered.
struct FastStream {
    /// 0 for a free place.
    var streamID: UInt32
    var bodyCount: UInt32
    /// Complete; its answer waits in the queue.
    var isComplete: Bool
    var verdict: Verdict
    var identifier: NotificationIDText
}

/// Open streams by number: a ring of places, each stream at `number / 2` modulo its size.
///
/// It has at least twice as many places as streams may be open, and streams are numbered upwards,
/// so a place is taken only where a stream is open for very long; the new one is refused then.
@safe struct FastStreamTable: ~Copyable {
    // SAFETY: `mask + 1` places, calloc's, of a trivial type, freed in `deinit`; one session alone
    // uses the table, on one thread.
    private let slots: UnsafeMutablePointer<FastStream>
    private let mask: Int
    private let limit: Int
    private(set) var count = 0

    init(limit: Int) {
        var size = 64
        while size < 2 * limit { size *= 2 }
        // Zeroed pages that are not there before they are used: a client rarely opens all.
        // SAFETY: calloc checks the product. A place is free where its stream number is 0; nothing
        // else of it is read then.
        let memory = unsafe calloc(size, MemoryLayout<FastStream>.stride)
        precondition(unsafe memory != nil, "no memory")
        unsafe slots = memory!.bindMemory(to: FastStream.self, capacity: size)
        mask = size - 1
        self.limit = limit
    }

    // SAFETY: calloc's, and reached only through this value.
    deinit { unsafe free(slots) }

    @inline(__always)
    private func slot(_ streamID: UInt32) -> Int { Int(streamID >> 1) & mask }

    /// A place for a new stream; nil where as many are open as may be.
    mutating func insert(_ streamID: UInt32) -> Int? {
        assert(streamID & 1 == 1, "a client opens odd streams")
        let slot = slot(streamID)
        guard count < limit, self[slot].streamID == 0 else { return nil }
        count += 1
        self[slot].streamID = streamID
        self[slot].bodyCount = 0
        self[slot].isComplete = false
        return slot
    }

    /// The place of an open stream; nil where it is not open, or answered otherwise than asked.
    @inline(__always)
    func find(_ streamID: UInt32, complete: Bool = false) -> Int? {
        let slot = slot(streamID)
        guard streamID != 0, self[slot].streamID == streamID, self[slot].isComplete == complete
        else { return nil }
        return slot
    }

    /// Forgets a stream, open or not.
    mutating func remove(_ streamID: UInt32) {
        let slot = slot(streamID)
        guard streamID != 0, self[slot].streamID == streamID else { return }
        self[slot].streamID = 0
        assert(count > 0, "an open stream was counted")
        count -= 1
    }

    /// The stream at a place that `insert` or `find` gave.
    subscript(slot: Int) -> FastStream {
        // SAFETY: the place came from `slot(_:)`, which masks by the table's size; one session
        // alone uses the table, on one thread.
        unsafeAddress { unsafe UnsafePointer(slots + slot) }
        nonmutating unsafeMutableAddress { unsafe slots + slot }
    }
}
