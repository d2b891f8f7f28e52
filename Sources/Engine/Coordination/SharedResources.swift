internal import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// What the reactors of a run take from each other, each a value behind a lock or an atomic of its own:
/// only one of them can have it, so it is asked for when it is needed.
struct SharedResources: Sendable {
    /// How the endpoint's addresses fare, and who may try one.
    let addressHealth = AddressHealth()
    let lossyAddresses = LossyAddresses()
    /// How many connections may be made in place of others.
    let connectRate = ConnectRateLimiter()
    /// Rows of reactors that can't send them.
    let handoff: RowHandoff
    /// Rows that were read, for `--max-invalid`.
    let rowsRead: SharedRowsRead
}

/// Rows that the reactors of a run read, for `--max-invalid`.
final class SharedRowsRead: Sendable {
    private let state: Mutex<(invalidRows: InvalidRowsGuard, leased: UInt64)>

    init(_ invalidRows: InvalidRowsGuard) {
        state = Mutex((invalidRows, 0))
    }

    /// Counts rows that a reactor read.
    ///
    /// Rows until the next check are leased to the reactors, so that it is made at its row with
    /// one reactor, and at most as many rows later as there are reactors with several.
    ///
    /// - Parameters:
    ///   - lease: The reactor's lease so far, given back.
    ///   - reactors: Between how many the rows are divided; 0: none is leased for now.
    /// - Returns: The reactor's lease from now on, and why the run has to stop, where it has to.
    func count(
        rows: UInt64, invalid: UInt64, lease: UInt64, reactors: Int
    ) -> (lease: UInt64, stop: StopCause?) {
        state.withLock { state in
            let verdict = state.invalidRows.note(rows: rows, invalid: invalid)
            state.leased -= lease
            let left = state.invalidRows.rowsUntilCheck
            let free = left - min(left, state.leased)
            let new = reactors == 0 ? 0 : max(1, free / UInt64(reactors))
            state.leased += new
            return (new, verdict?.stopCause)
        }
    }

    /// The list is at its end, and all of its rows are counted: why the run has to stop, where it has to.
    func checkAtEnd() -> StopCause? { state.withLock { $0.invalidRows.finish()?.stopCause } }
}

extension InvalidRowsGuard.Verdict {
    /// What a run stops with.
    fileprivate var stopCause: StopCause? {
        switch self {
        case .tooMany(let invalid, let rows): .tooManyInvalid(count: invalid, rows: rows)
        case .noValidRow(let rows): .tooManyInvalid(count: rows, rows: rows)
        // A part of a list without rows of its own: an empty list is refused before.
        case .noRow: nil
        }
    }
}
