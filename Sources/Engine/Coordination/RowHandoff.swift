internal import Synchronization

/// Rows that a reactor can't send because all its connections are gone, for others that can: a
/// bounded queue that the reactors of a run share.
///
/// A row stays covered by the reservation of the reactor that read it; whoever sends it writes the
/// verdict, into its own segment. Who leaves the run takes part in no exchange any more, and leaves
/// only when nobody has rows any more: another reactor may lose its connections while its rows wait for
/// another try, so that no row is handed to nobody.
final class RowHandoff: Sendable {
    /// A row on its way between reactors.
    struct Row: Sendable {
        var state: PendingRow
        var token: [UInt8]
        /// Its personal pieces.
        var fieldValues: [UInt8]
    }

    private struct State {
        var rows: [Row] = []
        /// The bytes of their pieces.
        var fieldValueByteCount = 0
        /// Reactors with a connection that is ready.
        var ready: Set<Int> = []
        /// Reactors that have rows.
        var working: Set<Int> = []
        var left: Set<Int> = []
    }

    private let state = Mutex(State())
    private let waiting = Atomic<Int>(0)

    /// The most rows that may lie here.
    let limit: Int
    static let rowsLimit = 65_536
    /// The most bytes of personal pieces that may lie here.
    static let fieldValueByteCountMax = 8 << 20

    init(limit: Int) {
        self.limit = limit
    }

    /// True where a look is worth the lock.
    var hasRows: Bool { waiting.load(ordering: .acquiring) > 0 }

    /// Notes whether a reactor can send.
    func setReadiness(_ reactor: Int, isReady: Bool) {
        state.withLock { state in
            if isReady {
                state.ready.insert(reactor)
            } else {
                state.ready.remove(reactor)
            }
        }
    }

    /// Notes that a reactor has rows, until it leaves or has to stay without any.
    func registerRows(of reactor: Int) {
        state.withLock { _ = $0.working.insert(reactor) }
    }

    /// How many rows another reactor would take over; 0 where none can send.
    func room(for reactor: Int) -> Int {
        state.withLock { state in
            let others = state.ready.subtracting(state.left).subtracting([reactor])
            return others.isEmpty ? 0 : limit - state.rows.count
        }
    }

    /// Takes a row over, unless nobody is there to send it any more.
    func put(_ row: Row, from reactor: Int) -> Bool {
        state.withLock { state in
            let others = state.ready.subtracting(state.left).subtracting([reactor])
            guard !others.isEmpty, state.rows.count < limit,
                state.fieldValueByteCount + row.fieldValues.count <= Self.fieldValueByteCountMax
            else { return false }
            state.fieldValueByteCount += row.fieldValues.count
            state.rows.append(row)
            waiting.store(state.rows.count, ordering: .releasing)
            return true
        }
    }

    /// Gives a row away.
    func take() -> Row? {
        state.withLock { state in
            let row = state.rows.popLast()
            state.fieldValueByteCount -= row?.fieldValues.count ?? 0
            assert(
                state.fieldValueByteCount >= 0
                    && (!state.rows.isEmpty || state.fieldValueByteCount == 0),
                "the pieces are those of the rows")
            waiting.store(state.rows.count, ordering: .releasing)
            return row
        }
    }

    /// Rows that lie here, and the bytes of their pieces.
    var counts: (rows: Int, fieldValues: Int) {
        state.withLock { ($0.rows.count, $0.fieldValueByteCount) }
    }

    /// A reactor has nothing left to do.
    ///
    /// - Returns: False if it has to stay: rows are here, or another reactor may bring some.
    func leave(_ reactor: Int) -> Bool {
        state.withLock { state in
            state.working.remove(reactor)
            guard state.rows.isEmpty, state.working.isEmpty else { return false }
            state.left.insert(reactor)
            return true
        }
    }
}
