internal import Synchronization

/// Bounded store of rows, shared by the reactors of a run. A reactor puts its rows here if all of
/// its connections are gone, and another reactor sends them, the last one first.
///
/// A row stays covered by the reservation of the reactor that read the row. The reactor that sends
/// the row writes the verdict into its own segment. A reactor that has left takes no rows from the
/// store. A reactor may leave only if no other reactor has rows, because a reactor that loses its
/// connections needs another reactor to send its rows.
final class RowHandoff: Sendable {
    /// A row that one reactor hands to another.
    struct Row: Sendable {
        var state: PendingRow
        var token: [UInt8]
        /// Field values of the row.
        var fieldValues: [UInt8]
    }

    private struct State {
        var rows: [Row] = []
        /// Total bytes of the field values in `rows`.
        var fieldValueByteCount = 0
        /// Reactors with a ready connection.
        var ready: Set<Int> = []
        /// Reactors with rows.
        var working: Set<Int> = []
        var left: Set<Int> = []
    }

    private let state = Mutex(State())
    private let waiting = Atomic<Int>(0)

    /// Limit on rows in the store.
    let limit: Int
    static let rowsLimit = 65_536
    /// Limit on bytes of field values in the store.
    static let fieldValueByteCountMax = 8 << 20

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether the store has rows, without taking the lock.
    var hasRows: Bool { waiting.load(ordering: .acquiring) > 0 }

    /// Records whether a reactor has a ready connection.
    func setReadiness(_ reactor: Int, isReady: Bool) {
        state.withLock { state in
            if isReady {
                state.ready.insert(reactor)
            } else {
                state.ready.remove(reactor)
            }
        }
    }

    /// Records that a reactor has rows. `leave` removes this record, even if `leave` returns false.
    func registerRows(of reactor: Int) {
        state.withLock { _ = $0.working.insert(reactor) }
    }

    /// Number of rows that other reactors would take over; 0 if no other reactor can send.
    func room(for reactor: Int) -> Int {
        state.withLock { state in
            let others = state.ready.subtracting(state.left).subtracting([reactor])
            return others.isEmpty ? 0 : limit - state.rows.count
        }
    }

    /// Adds a row; returns false if no other reactor can send it or the handoff is full.
    func put(_ row: Row, from reactor: Int) -> Bool {
        state.withLock { state in
            let others = state.ready.subtracting(state.left).subtracting([reactor])
            assert(!state.left.contains(reactor), "a reactor that has left has no rows")
            guard !others.isEmpty, state.rows.count < limit,
                state.fieldValueByteCount + row.fieldValues.count <= Self.fieldValueByteCountMax
            else { return false }
            state.fieldValueByteCount += row.fieldValues.count
            state.rows.append(row)
            waiting.store(state.rows.count, ordering: .releasing)
            return true
        }
    }

    /// Removes and returns a row.
    func take() -> Row? {
        state.withLock { state in
            let row = state.rows.popLast()
            state.fieldValueByteCount -= row?.fieldValues.count ?? 0
            assert(
                state.fieldValueByteCount >= 0
                    && (!state.rows.isEmpty || state.fieldValueByteCount == 0),
                "field values belong to rows")
            waiting.store(state.rows.count, ordering: .releasing)
            return row
        }
    }

    /// Number of rows in the store, and bytes of their field values.
    var counts: (rows: Int, fieldValues: Int) {
        state.withLock { ($0.rows.count, $0.fieldValueByteCount) }
    }

    /// Permits a reactor without rows to leave the handoff.
    ///
    /// - Returns: False if the reactor must stay: the handoff has rows, or another reactor may add
    ///   some.
    func leave(_ reactor: Int) -> Bool {
        state.withLock { state in
            assert(!state.left.contains(reactor), "a reactor leaves once")
            state.working.remove(reactor)
            guard state.rows.isEmpty, state.working.isEmpty else { return false }
            state.left.insert(reactor)
            return true
        }
    }
}
