import Synchronization

/// The chunks of a run: a fixed number, made when first needed and used again and again.
///
/// Its limit is what bounds a list's share of memory, whatever the list's size: where all chunks are
/// out, the reader of the list waits.
public final class ChunkPool: Sendable {
    private struct State {
        var idle: [RowChunk] = []
        var made = 0
    }

    private let state = Mutex(State())

    /// How many chunks there may be.
    let limit: Int

    /// Chunks of a list that one reader goes through: the one that it holds, and two for the cutter.
    public static let oneReader = 3

    /// - Parameter limit: at least 2, because cutting a chunk off may need the next one.
    public init(limit: Int) {
        precondition(limit >= 2, "the cutter needs two chunks")
        self.limit = limit
    }

    /// An empty chunk; nil where all are out.
    func take() -> RowChunk? {
        state.withLock { state in
            if let chunk = state.idle.popLast() { return chunk }
            if state.made == limit { return nil }
            state.made += 1
            assert(state.made <= limit, "no more chunks than the pool may have")
            return RowChunk()
        }
    }

    /// Takes back a chunk that nobody reads any more.
    public func giveBack(_ chunk: RowChunk) {
        chunk.reset()
        state.withLock { state in
            precondition(state.idle.count < state.made, "more chunks came back than were taken")
            state.idle.append(chunk)
        }
    }
}
