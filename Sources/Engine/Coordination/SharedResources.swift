internal import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// Resources that only one reactor can have, each behind its own lock or atomic and acquired on
/// demand.
struct SharedResources: Sendable {
    /// Health of the endpoint's addresses, and the connections that test them.
    let addressHealth = AddressHealth()
    let lossyAddresses = LossyAddresses()
    /// Limit on new connections per second, not counting the initial connections of the run.
    let connectRate = ConnectRateLimiter()
    /// Rows that reactors without connections hand to others.
    let handoff: RowHandoff
    /// Number of rows that were read, for `--max-invalid`.
    let rowsRead: SharedRowsRead
    /// Reasons in responses that this version does not know.
    let unknownReasons: UnknownReasons
    /// The event that a row is a header with columns other than those of the list's header.
    let headerNotice = SingleNotice()
    /// The event that a row is a header with the same columns as the list's header.
    let sameHeaderNotice = SingleNotice()
    /// The event that zero bytes have replaced rows.
    let overwrittenNotice = SingleNotice()
    /// The causes of streams' ends without a response, by `StreamEnd.number`.
    let streamEndNotices = NoticeSet()
    /// The event that a response has another success status than 200.
    let strangeSuccessNotice = SingleNotice()
    /// The event that a response came for a request that was reported as not processed.
    let disownedNotice = SingleNotice()
}

/// Event that only one reactor of a run records, and only once.
final class SingleNotice: Sendable {
    private let taken = Atomic(false)

    /// Whether a reactor has recorded the event or is about to record it.
    var isTaken: Bool { taken.load(ordering: .relaxed) }

    /// Whether the caller must record the event; true only for the first call.
    func take() -> Bool { !taken.exchange(true, ordering: .relaxed) }
}

/// Numbered events, each of which only one reactor of a run records, and only once.
final class NoticeSet: Sendable {
    private let taken = Atomic<UInt64>(0)

    /// Whether the caller must record an event; true only for the first call with its number.
    ///
    /// - Parameter number: Number of the event, below 64.
    func take(_ number: Int) -> Bool {
        precondition((0..<64).contains(number), "an event has one of 64 bits")
        let bit: UInt64 = 1 << UInt64(number)
        // Without a write, because each lost request makes this call.
        guard taken.load(ordering: .relaxed) & bit == 0 else { return false }
        return taken.bitwiseOr(bit, ordering: .relaxed).oldValue & bit == 0
    }
}

/// Counter of the rows that the reactors of a run read, for `--max-invalid`.
final class SharedRowsRead: Sendable {
    private let state: Mutex<(invalidRows: InvalidRowsGuard, leased: UInt64)>

    init(_ invalidRows: InvalidRowsGuard) {
        state = Mutex((invalidRows, 0))
    }

    /// Counts rows that a reactor read.
    ///
    /// The rows up to the next check are divided among the reactors as leases. With one reactor,
    /// the check takes place at exactly the row where it is due. With several reactors, it may take
    /// place later, by at most one row per reactor.
    ///
    /// - Parameters:
    ///   - lease: The reactor's current lease, which this call takes back.
    ///   - reactors: Number of reactors to divide the rows among; 0: no new lease.
    /// - Returns: The reactor's new lease, and the cause if the run has to stop.
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

    /// Makes the final check; returns the cause if the run has to stop. Call it when the list has
    /// ended and all its rows are counted.
    func checkAtEnd() -> StopCause? { state.withLock { $0.invalidRows.finish()?.stopCause } }
}

extension InvalidRowsGuard.Verdict {
    /// The stop cause that corresponds to the verdict; nil if the run continues.
    fileprivate var stopCause: StopCause? {
        switch self {
        case .tooMany(let invalid, let rows): .tooManyInvalid(count: invalid, rows: rows)
        case .noValidRow(let rows): .tooManyInvalid(count: rows, rows: rows)
        // A part of a list may have no rows; an empty list was refused earlier.
        case .noRow: nil
        }
    }
}
