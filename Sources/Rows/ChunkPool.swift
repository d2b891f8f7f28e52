import Synchronization

/// The chunks of a run: a fixed number, created when first needed and then reused.
///
/// The limit bounds the memory used for a list, whatever the list's size: when all chunks are in
/// use, the reader of the list waits.
public final class ChunkPool: Sendable {
    private struct State {
        var idle: [RowChunk] = []
        var made = 0
    }

    private let state = Mutex(State())

    /// Maximum number of chunks.
    let limit: Int

    /// Number of chunks for a list with one reader: one that it holds, and two for the row
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

    /// Returns a chunk that is no longer read to the pool.
    public func giveBack(_ chunk: RowChunk) {
        chunk.reset()
        state.withLock { state in
            precondition(state.idle.count < state.made, "more chunks came back than were taken")
            state.idle.append(chunk)
        }
    }
}
