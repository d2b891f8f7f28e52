internal import Glibc

/// The state of a request in `FastSession` until its response is sent.
struct FastStream {
    /// The stream number; 0 for a free slot.
    var streamID: UInt32
    var bodyCount: UInt32
    /// True once the request is complete and its response is queued.
    var isComplete: Bool
    var verdict: Verdict
    var identifier: NotificationIDText
}

/// The open streams by number: a circular table in which a stream's slot is `number / 2` modulo the
/// size.
///
/// The table has at least twice as many slots as streams may be open, and stream numbers increase.
/// A slot is therefore occupied only if a stream has been open for very long. In that case, the new
/// stream is refused.
@safe struct FastStreamTable: ~Copyable {
    // SAFETY: `mask + 1` slots of a trivial type, allocated by calloc and freed in `deinit`; only
    // one session uses the table, on one thread.
    private let slots: UnsafeMutablePointer<FastStream>
    private let mask: Int
    private let limit: Int
    private(set) var count = 0

    init(limit: Int) {
        var size = 64
        while size < 2 * limit { size *= 2 }
        // Zeroed pages are allocated only when first touched, and a client rarely opens every
        // stream. SAFETY: calloc checks the product. A slot whose stream number is 0 is free, and
        // none of its other fields are read.
        let memory = unsafe calloc(size, MemoryLayout<FastStream>.stride)
        precondition(unsafe memory != nil, "no memory")
        unsafe slots = memory!.bindMemory(to: FastStream.self, capacity: size)
        mask = size - 1
        self.limit = limit
    }

    // SAFETY: allocated by calloc and accessible only through this value.
    deinit { unsafe free(slots) }

    @inline(__always)
    private func slot(_ streamID: UInt32) -> Int { Int(streamID >> 1) & mask }

    /// Returns a slot for a new stream, or nil if the limit of open streams is reached.
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

    /// Returns the slot of an open stream whose `isComplete` equals `complete`; nil if there is no
    /// such stream.
    @inline(__always)
    func find(_ streamID: UInt32, complete: Bool = false) -> Int? {
        let slot = slot(streamID)
        guard streamID != 0, self[slot].streamID == streamID, self[slot].isComplete == complete
        else { return nil }
        return slot
    }

    /// Removes a stream, open or not.
    mutating func remove(_ streamID: UInt32) {
        let slot = slot(streamID)
        guard streamID != 0, self[slot].streamID == streamID else { return }
        self[slot].streamID = 0
        assert(count > 0, "an open stream was counted")
        count -= 1
    }

    /// The stream in a slot returned by `insert` or `find`.
    subscript(slot: Int) -> FastStream {
        // SAFETY: the slot was computed by `slot(_:)`, which masks by the table's size; only one
        // session uses the table, on one thread.
        unsafeAddress { unsafe UnsafePointer(slots + slot) }
        nonmutating unsafeMutableAddress { unsafe slots + slot }
    }
}
