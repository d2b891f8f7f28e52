internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

/// Writes a reactor's ledger segment to disk.
///
///     recorded --5 ms, or 32 KiB, or a reservation--> written --rows wait for it--> synced
///
/// One write and one sync are in flight at a time.
struct SegmentRecorder: ~Copyable {
    var ledger: LedgerWriter
    /// Position that the sync in flight will make durable.
    private var syncing: UInt64?
    /// A sync is required up to this position, because rows wait for their reservation or the run
    /// ends.
    private var requiredSync: UInt64 = 0
    /// Whether writing is over: it has failed, or it is no longer permitted.
    private(set) var hasFailed = false
    /// Time since which verdicts wait to be written, monotonic nanoseconds; nil: none do.
    private var pendingSince: UInt64?

    /// What the reactor's rows currently require of the segment.
    struct Demand {
        /// Whether the run is ending. If so, everything is synced.
        var isClosing = false
        /// Whether a write can start at once. True if all requested chunks have arrived and share
        /// the write, or if no row can be sent before the write.
        var isComplete = false
        /// Whether rows may be sent as soon as the written bytes are synced. If so, a sync of these
        /// bytes starts, even if more bytes still have to be written and synced.
        var waitsForWritten = false
    }

    /// Maximum time that verdicts wait in order to share a write. If a file system can't write
    /// without blocking, io_uring passes each write to a kernel thread. This costs as much as
    /// sending twenty notifications. If the process is killed, the waiting verdicts are lost, and
    /// their rows are in doubt. No recorded verdict becomes wrong.
    static var verdictHold: UInt64 { 5 * millisecond }
    /// Additional delay before an iteration whose only purpose is to write verdicts. Under load, an
    /// iteration comes earlier anyway.
    static var verdictSlack: UInt64 { millisecond }
    /// If at least this many bytes wait, they are written without further delay.
    static var verdictBatch: Int { 32_768 }

    init(_ ledger: consuming LedgerWriter) { self.ledger = ledger }

    /// Position up to which everything is durable.
    var synced: UInt64 { ledger.syncedPosition }

    /// Whether nothing is left to write: all records are durable, or an earlier failure makes
    /// further writes impossible.
    var isSafe: Bool {
        hasFailed
            || (ledger.pendingByteCount == 0 && syncing == nil
                && ledger.syncedPosition == ledger.appendedPosition)
    }

    /// Whether too many bytes wait for the disk. If so, no more requests are sent.
    @inline(__always)
    func isBehind(_ limit: Int) -> Bool { ledger.pendingByteCount >= limit }

    /// Requires a sync of everything before `position`, because rows wait for it.
    mutating func requireSync(upTo position: UInt64) { requiredSync = max(requiredSync, position) }

    /// Submits the waiting verdicts to the disk, one write at a time, and syncs if rows wait for
    /// that. A sync costs several times as much as a write, so it starts only when it covers
    /// everything that is required.
    mutating func flush(_ demand: Demand, now: UInt64, into submissions: inout SubmissionQueue) {
        guard !hasFailed else { return }
        if demand.isClosing { requiredSync = ledger.appendedPosition }
        // SAFETY: the ledger does not change the bytes until `writeCompleted`, which `wrote` calls
        // after the driver reported the end of the write.
        if isWriteDue(demand, now: now), let write = unsafe ledger.nextWrite() {
            unsafe submissions.append(.write(bytes: write.bytes, offset: write.offset))
        }
        if syncing == nil, requiredSync > ledger.syncedPosition,
            requiredSync <= ledger.writtenPosition || demand.waitsForWritten
        {
            assert(ledger.writtenPosition > ledger.syncedPosition, "a sync of nothing")
            syncing = ledger.writtenPosition
            submissions.append(.sync(position: ledger.writtenPosition))
        }
    }

    /// Latest time to write the waiting verdicts; nil if none wait.
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
        // Verdicts recorded after this write wait for the next one.
        if isDue, !ledger.writeIsInFlight { pendingSince = nil }
        return isDue
    }

    /// Handles the end of a write.
    ///
    /// - Returns: The errno if the disk failed; nil otherwise.
    mutating func wrote(_ result: Int) -> Int32? {
        guard result > 0 else {
            hasFailed = true
            return result == 0 ? EIO : Int32(truncatingIfNeeded: -result)
        }
        assert(ledger.writeIsInFlight, "the end of a write that was not submitted")
        ledger.writeCompleted(result)
        return nil
    }

    /// Handles the end of a sync.
    ///
    /// - Returns: The errno if the disk failed; nil otherwise.
    mutating func synced(_ result: Int) -> Int32? {
        guard result >= 0, let position = syncing else {
            hasFailed = true
            return Int32(truncatingIfNeeded: -result)
        }
        syncing = nil
        ledger.syncCompleted(upTo: position)
        assert(ledger.syncedPosition >= position)
        return nil
    }

    /// Stops writing and syncing, because another attempt owns the ledger. Rows that wait for a
    /// sync are then never sent.
    mutating func abandon() {
        hasFailed = true
        syncing = nil
    }

    /// Description of a violated invariant; nil if there is none.
    var brokenInvariant: String? {
        let positions = [ledger.syncedPosition, ledger.writtenPosition, ledger.appendedPosition]
        if positions != positions.sorted() { return "positions out of order: \(positions)" }
        if let syncing, syncing > ledger.writtenPosition {
            return "a sync of \(syncing) bytes, but only \(ledger.writtenPosition) are written"
        }
        return requiredSync <= ledger.appendedPosition
            ? nil : "nothing was recorded at \(requiredSync)"
    }
}
