internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

/// A reactor's segment of the ledger on its way to disk: what is recorded, written and synced.
///
///     recorded --5 ms, or 32 KiB, or a reservation--> written --rows wait for it--> synced
///
/// One write and one sync are in flight at a time.
struct SegmentRecorder: ~Copyable {
    var ledger: LedgerWriter
    /// The position that the sync in flight will make durable.
    private var syncing: UInt64?
    /// All before this position has to be synced: rows wait for their reservation, or the run ends.
    private var requiredSync: UInt64 = 0
    /// Nothing can or may be written any more.
    private(set) var hasFailed = false
    /// Since when verdicts wait to be written, monotonic nanoseconds; nil: none do.
    private var pendingSince: UInt64?

    /// What the reactor's rows ask of the segment now.
    struct Demand {
        /// The run ends: all is to be synced.
        var isClosing = false
        /// No reservation that was asked for is still to come, or nothing is left to send meanwhile.
        var isComplete = false
        /// Rows could go out if what is written were synced, although more is wanted.
        var waitsForWritten = false
    }

    /// Verdicts wait for others to share a write with, but no longer than this. A file system that
    /// can't write without blocking hands each write to a kernel thread, and that costs as much as
    /// twenty notifications; a kill leaves the verdicts of the last moment in doubt, never wrong.
    static var verdictHold: UInt64 { 5 * millisecond }
    /// So much later a turn is made for them alone; under load one comes anyway before.
    static var verdictSlack: UInt64 { millisecond }
    /// So many bytes are worth a write of their own.
    static var verdictBatch: Int { 32_768 }

    init(_ ledger: consuming LedgerWriter) { self.ledger = ledger }

    /// All up to here would survive a power cut.
    var synced: UInt64 { ledger.syncedPosition }

    /// True if everything that is recorded would survive a power cut, or never will.
    var isSafe: Bool {
        hasFailed
            || (ledger.pendingByteCount == 0 && syncing == nil
                && ledger.syncedPosition == ledger.appendedPosition)
    }

    /// True where so many bytes wait for the disk that no more requests are made.
    @inline(__always)
    func isBehind(_ limit: Int) -> Bool { ledger.pendingByteCount >= limit }

    /// Rows wait for all before this position to be synced.
    mutating func requireSync(upTo position: UInt64) { requiredSync = max(requiredSync, position) }

    /// Hands verdicts to the disk, one write at a time, and syncs if rows wait for it. A sync is begun
    /// once it covers all that is wanted, because it costs several times what a write does.
    mutating func flush(_ demand: Demand, now: UInt64, into submissions: inout SubmissionQueue) {
        guard !hasFailed else { return }
        if demand.isClosing { requiredSync = ledger.appendedPosition }
        // SAFETY: the ledger leaves the bytes as they are until `writeCompleted`, which `wrote`
        // calls once the driver says that the write has ended.
        if isWriteDue(demand, now: now), let write = unsafe ledger.nextWrite() {
            unsafe submissions.append(.write(bytes: write.bytes, offset: write.offset))
        }
        if syncing == nil, requiredSync > ledger.syncedPosition,
            requiredSync <= ledger.writtenPosition || demand.waitsForWritten
        {
            syncing = ledger.writtenPosition
            submissions.append(.sync(position: ledger.writtenPosition))
        }
    }

    /// When verdicts that wait now are to be written at the latest; nil if none wait.
    var nextWriteDue: UInt64? {
        guard !ledger.writeIsInFlight, !hasFailed else { return nil }
        return pendingSince.map { $0 + Self.verdictHold + Self.verdictSlack }
    }

    private mutating func isWriteDue(_ demand: Demand, now: UInt64) -> Bool {
        guard ledger.pendingByteCount > 0 else {
            pendingSince = nil
            return false
        }
        let since = pendingSince ?? now
        pendingSince = since
        let isReservationDue = requiredSync > ledger.writtenPosition && demand.isComplete
        let isDue =
            isReservationDue || demand.isClosing || ledger.pendingByteCount >= Self.verdictBatch
            || now >= since + Self.verdictHold
        // What is added from here on waits again.
        if isDue, !ledger.writeIsInFlight { pendingSince = nil }
        return isDue
    }

    /// A write has ended.
    ///
    /// - Returns: The errno of a disk that failed; nil if all is well.
    mutating func wrote(_ result: Int) -> Int32? {
        guard result > 0 else {
            hasFailed = true
            return result == 0 ? EIO : Int32(truncatingIfNeeded: -result)
        }
        ledger.writeCompleted(result)
        return nil
    }

    /// The sync has ended.
    ///
    /// - Returns: The errno of a disk that failed; nil if all is well.
    mutating func synced(_ result: Int) -> Int32? {
        guard result >= 0, let position = syncing else {
            hasFailed = true
            return Int32(truncatingIfNeeded: -result)
        }
        syncing = nil
        ledger.syncCompleted(upTo: position)
        return nil
    }

    /// The ledger is another attempt's: nothing more is written or synced, so that no row which waits for
    /// that is sent.
    mutating func abandon() {
        hasFailed = true
        syncing = nil
    }

    /// What does not hold although it always has to; nil if all is well.
    var brokenInvariant: String? {
        let positions = [ledger.syncedPosition, ledger.writtenPosition, ledger.appendedPosition]
        if positions != positions.sorted() { return "synced, written, recorded up to \(positions)" }
        if let syncing, syncing > ledger.writtenPosition {
            return "a sync up to \(syncing) of \(ledger.writtenPosition) bytes"
        }
        return requiredSync <= ledger.appendedPosition
            ? nil : "nothing was recorded at \(requiredSync)"
    }
}
