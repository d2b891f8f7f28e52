import Synchronization

/// A pool of a run's chunks. Their number is fixed; each is created when it is first needed, and
/// then reused.
///
/// So the memory for a list is bounded, whatever the list's size. When all chunks are in use, the
/// reader of the list waits. The pool has a lock, because several threads use it.
public final class ChunkPool: Sendable {
    private struct State {
        var idle: [RowChunk] = []
        var made = 0
    }

    private let state = Mutex(State())

    /// Maximum number of chunks.
    let limit: Int

    /// Number of chunks for a list with one reader: one for the reader, and two for the row
    /// splitter.
    public static let oneReader = 3

    /// - Parameter limit: At least 2, because finishing a chunk may need the next one.
    public init(limit: Int) {
        precondition(limit >= 2, "the cutter needs two chunks")
        self.limit = limit
    }

    /// Removes and returns an empty chunk; nil if all are in use.
    func take() -> RowChunk? {
        state.withLock { state in
            if let chunk = state.idle.popLast() { return chunk }
            if state.made == limit { return nil }
            state.made += 1
            assert(state.made <= limit, "no more chunks than the pool may have")
            return RowChunk()
        }
    }

    /// Returns a chunk to the pool. Nothing may read the chunk after this call.
    public func giveBack(_ chunk: RowChunk) {
        chunk.reset()
        state.withLock { state in
            precondition(state.idle.count < state.made, "more chunks came back than were taken")
            state.idle.append(chunk)
        }
    }
}
