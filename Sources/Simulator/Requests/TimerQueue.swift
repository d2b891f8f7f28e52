/// A queue of responses in the order of their due times. Responses with equal times are in the
/// order of their arrival.
///
/// It is a binary heap of small keys, and the responses are stored in a slab. So each step of a
/// sift moves only 24 bytes.
struct TimerQueue: ~Copyable {
    private struct Key {
        var due: UInt64
        var order: UInt64
        var index: Int

        func isBefore(_ other: Key) -> Bool {
            due != other.due ? due < other.due : order < other.order
        }
    }

    private var heap: [Key] = []
    private var slab: [PendingResponse] = []
    private var free: [Int] = []
    private var order: UInt64 = 0

    /// Due time of the first response, nanoseconds; nil if the queue is empty.
    var firstDue: UInt64? { heap.first?.due }

    /// Number of queued responses.
    var count: Int { heap.count }

    /// Queues a response until `due`.
    mutating func push(_ response: PendingResponse, due: UInt64) {
        assert(heap.count + free.count == slab.count, "each response has one place")
        let index: Int
        if let reused = free.popLast() {
            index = reused
            slab[index] = response
        } else {
            index = slab.count
            slab.append(response)
        }
        order += 1
        heap.append(Key(due: due, order: order, index: index))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].isBefore(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Removes and returns the first response due at `now`, or nil if there is none.
    mutating func pop(now: UInt64) -> PendingResponse? {
        guard let first = heap.first, first.due <= now else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            siftDown()
        }
        free.append(first.index)
        assert(heap.isEmpty || heap[0].due >= first.due, "responses are due in their order")
        assert(heap.count + free.count == slab.count, "each response has one place")
        return slab[first.index]
    }

    private mutating func siftDown() {
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < heap.count else { return }
            if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
            guard heap[child].isBefore(heap[parent]) else { return }
            heap.swapAt(child, parent)
            parent = child
        }
    }
}
