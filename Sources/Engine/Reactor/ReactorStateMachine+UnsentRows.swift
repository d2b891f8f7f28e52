import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Rows that are settled without a request, and what is left of earlier runs' requests.
extension ReactorStateMachine where Records: ~Copyable {
    /// Keeps what the requests of earlier runs for a row mean for its next one.
    @inline(never)
    mutating func keepPast(of row: ListRow, _ tag: RowTag) {
        assert(row.attemptsBefore <= row.attempts, "attempts that do not count are attempts")
        rows.slab[tag].firstSentNanoseconds = PendingRow.sentByEarlierRun
        rows.slab[tag].attemptsBefore = row.attemptsBefore
    }

    /// Settles a row that needs no request. If the row was in doubt, no earlier run sent it either.
    mutating func settleUnsent(_ tag: RowTag, _ state: RowState, _ reason: Reason, now: Now) {
        rows.slab[tag].attempts = 0
        settle(tag, state: state, status: 0, reasonCode: reason.rawValue, now: now)
    }

    /// Settles a row whose device was erased by `ledger forget` before a run settled the row. The
    /// ledger gets no data of the device.
    @inline(never)
    mutating func recordErased(_ tag: RowTag, mayHaveBeenSent: Bool, now: Now) {
        let state = mayHaveBeenSent ? RowState.unknown : .skipped
        let reason = mayHaveBeenSent ? Reason.connectionLost : .suppressed
        recorder.ledger.keep([
            KeptVerdict(
                row: rows.slab[tag].row, state: state, status: 0, reason: reason.rawValue,
                reasonText: [], attempts: rows.slab[tag].attempts, arm: 0, topic: [],
                milliseconds: now.wallMilliseconds, timestamp: nil,
                token: .erased(ErasedToken.noHash))
        ])
        if mayHaveBeenSent { metrics.canaryReport.lostBefore += 1 }
        metrics.statistics.counts.count(state, reason: reason.rawValue)
        rows.slab.free(tag)
    }
}
