import Campaign
internal import Glibc

/// What of the ledger's segment is on disk.
struct LedgerProgress {
    /// The position that the sync under way will make safe.
    var syncing: UInt64?
    /// True where rows wait for a sync: their reservation was written, or is about to be.
    var needsSync = false
    var hasFailed = false
    /// Since when verdicts wait to be written, monotonic nanoseconds; nil: none do.
    var pendingSince: UInt64?
}

extension ReactorStateMachine where Records: ~Copyable {
    /// Verdicts wait for others to share a write with, but no longer than this. A file system that
    /// can't write without blocking hands each write to a kernel thread, and that costs as much as
    /// twenty notifications; a kill leaves the verdicts of the last moment in doubt, never wrong.
    static var verdictHold: UInt64 { 5 * millisecond }
    /// So many octets are worth a write of their own.
    static var verdictBatch: Int { 32_768 }

    /// Hands verdicts to the disk, one write at a time, and syncs where rows wait for it.
    mutating func flushLedger(_ now: Now) {
        guard !ledgerState.hasFailed, isWriteDue(now) else { return }
        if let write = unsafe ledger.nextWrite() {
            unsafe submissions.append(.write(bytes: write.bytes, offset: write.offset))
        }
        if ledgerState.needsSync, ledgerState.syncing == nil,
            ledger.writtenPosition > ledger.syncedPosition
        {
            ledgerState.syncing = ledger.writtenPosition
            submissions.append(.sync)
        }
    }

    /// When verdicts that wait now are to be written at the latest; nil where none wait.
    var nextWriteDue: UInt64? {
        ledger.writeIsInFlight ? nil : ledgerState.pendingSince.map { $0 + Self.verdictHold }
    }

    private mutating func isWriteDue(_ now: Now) -> Bool {
        guard ledger.pendingByteCount > 0 else {
            ledgerState.pendingSince = nil
            return ledgerState.needsSync
        }
        let since = ledgerState.pendingSince ?? now.nanoseconds
        ledgerState.pendingSince = since
        let isDue =
            ledgerState.needsSync || isClosing || ledger.pendingByteCount >= Self.verdictBatch
            || now.nanoseconds >= since + Self.verdictHold
        // What is added from here on waits anew.
        if isDue, !ledger.writeIsInFlight { ledgerState.pendingSince = nil }
        return isDue
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
        ledgerState.needsSync = chunks.isWaiting(beyond: position) || isClosing
    }

    /// Nothing may be sent that can't be recorded.
    private mutating func failLedger(_ errno: Int32) {
        ledgerState.hasFailed = true
        shared.stop(.diskFailed("the ledger can't be written: \(describe(errno: errno))"))
    }

    /// True when everything recorded would survive a power cut.
    var isLedgerSafe: Bool {
        ledgerState.hasFailed
            || (ledger.pendingByteCount == 0 && ledgerState.syncing == nil
                && ledger.syncedPosition == ledger.appendedPosition)
    }
}
