import Campaign
internal import Glibc
import Support

/// What of the ledger's segment is on disk.
struct LedgerProgress {
    /// The position that the sync under way will make safe.
    var syncing: UInt64?
    /// All before this position has to be synced: rows wait for their reservation, or the run ends.
    var wanted: UInt64 = 0
    var hasFailed = false
    /// Since when verdicts wait to be written, monotonic nanoseconds; nil: none do.
    var pendingSince: UInt64?
}

extension ReactorStateMachine where Records: ~Copyable {
    /// Verdicts wait for others to share a write with, but no longer than this. A file system that
    /// can't write without blocking hands each write to a kernel thread, and that costs as much as
    /// twenty notifications; a kill leaves the verdicts of the last moment in doubt, never wrong.
    static var verdictHold: UInt64 { 5 * millisecond }
    /// So much later a turn is made for them alone; under load one comes anyway before.
    static var verdictSlack: UInt64 { millisecond }
    /// So many octets are worth a write of their own.
    static var verdictBatch: Int { 32_768 }

    /// Hands verdicts to the disk, one write at a time, and syncs where rows wait for it. A sync is
    /// begun once it covers all that is wanted, because it costs several times what a write does.
    mutating func flushLedger(_ now: Now) {
        guard !ledgerState.hasFailed else { return }
        if isClosing { ledgerState.wanted = ledger.appendedPosition }
        if isWriteDue(now), let write = unsafe ledger.nextWrite() {
            unsafe submissions.append(.write(bytes: write.bytes, offset: write.offset))
        }
        if ledgerState.syncing == nil, ledgerState.wanted > ledger.syncedPosition,
            ledgerState.wanted <= ledger.writtenPosition || isSyncNeeded
        {
            ledgerState.syncing = ledger.writtenPosition
            submissions.append(.sync)
        }
    }

    /// When verdicts that wait now are to be written at the latest; nil where none wait.
    var nextWriteDue: UInt64? {
        guard !ledger.writeIsInFlight, !ledgerState.hasFailed else { return nil }
        return ledgerState.pendingSince.map { $0 + Self.verdictHold + Self.verdictSlack }
    }

    private mutating func isWriteDue(_ now: Now) -> Bool {
        guard ledger.pendingByteCount > 0 else {
            ledgerState.pendingSince = nil
            return false
        }
        let since = ledgerState.pendingSince ?? now.nanoseconds
        ledgerState.pendingSince = since
        let isDue =
            isReservationDue || isClosing || ledger.pendingByteCount >= Self.verdictBatch
            || now.nanoseconds >= since + Self.verdictHold
        // What is added from here on waits anew.
        if isDue, !ledger.writeIsInFlight { ledgerState.pendingSince = nil }
        return isDue
    }

    /// True where a reservation is not written yet and none that was asked for with it is still to
    /// come, or there is nothing left to send meanwhile.
    private var isReservationDue: Bool {
        ledgerState.wanted > ledger.writtenPosition
            && (chunks.asked == 0 || !hasListRow)
    }

    /// True where rows that could go out wait for a sync of what is written, although more is wanted.
    private var isSyncNeeded: Bool {
        guard let reservedAt = held.reservedAt else { return false }
        return reservedAt > ledger.syncedPosition && reservedAt <= ledger.writtenPosition
    }

    mutating func wrote(_ result: Int) {
        guard result > 0 else {
            failLedger(result == 0 ? EIO : Int32(truncatingIfNeeded: -result))
            return
        }
        ledger.writeCompleted(result)
    }

    mutating func synced(_ result: Int) {
        guard result >= 0, let position = ledgerState.syncing else {
            failLedger(Int32(truncatingIfNeeded: -result))
            return
        }
        ledgerState.syncing = nil
        ledger.syncCompleted(upTo: position)
    }

    /// Nothing may be sent that can't be recorded.
    private mutating func failLedger(_ errno: Int32) {
        ledgerState.hasFailed = true
        shared.stop(.ledgerFailed(detail: describe(errno: errno)))
    }

    /// True when everything recorded would survive a power cut.
    var isLedgerSafe: Bool {
        ledgerState.hasFailed
            || (ledger.pendingByteCount == 0 && ledgerState.syncing == nil
                && ledger.syncedPosition == ledger.appendedPosition)
    }
}
