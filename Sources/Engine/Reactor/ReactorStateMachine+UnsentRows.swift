import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Rows whose devices were erased by `ledger forget` before a run settled them.
extension ReactorStateMachine where Records: ~Copyable {
    /// Settles a row whose device was erased. The ledger gets no data of the device.
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
