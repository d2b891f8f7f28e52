import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// The rows that a reactor has in its hands, from the list to their verdict.
///
///     list --> chunks --> held ----.
///                 |  (their sync)  v
///                 '-----------> next row --> in flight --> verdict
///                                  ^             |
///                  requeued, retries '-----------'
///
/// Owns the rows' memory (`slab`), and every queue that a row may wait in.
struct RowSupply: ~Copyable {
    var slab: RowSlab
    /// Rows that a server did not process or that a renewed token lets go: first in line.
    var requeued = RowQueue()
    /// Rows that wait for another attempt.
    var retries: RetryQueue
    var chunks: ChunkQueue
    var chunkRows: ChunkRows
    /// Rows that wait for the sync of their reservation.
    var awaitingSync = RowsAwaitingSync()
    /// Other reactors know that there are rows here.
    var hasRegisteredRows = false
    /// Requests that are written and have no response yet.
    var inFlight = 0
    /// Rows that went by in this turn without being sent, and whether that ended before they did.
    var settledUnsent = 0
    var hasMoreUnsent = false
    /// For `--max-invalid`.
    var rowsRead = RowsRead()

    /// The most rows that go by in one turn without being sent: responses wait meanwhile.
    static var unsentLimit: Int { 8_192 }

    init(
        settings: ReactorSettings, perSecond: Int?, pool: ChunkPool, layout: RowLayout,
        fieldLimit: Int
    ) {
        chunks = ChunkQueue(pool: pool, layout: layout)
        chunkRows = ChunkRows(reactors: settings.reactors, perSecond: perSecond)
        let flights = min(
            settings.connections * settings.streamsPerConnection, settings.limits.flightRows)
        let capacity = flights + settings.limits.retryRows
        // Half a block for each row in flight, and what all may share: rows with much of their own
        // are fewer at a time.
        let blockCount = flights / 2 + RowSlab.sharedBlocks / settings.reactors + 64
        slab = RowSlab(
            capacity: capacity, fieldValueByteCountMax: fieldLimit,
            blockCount: settings.personal == nil ? 0 : blockCount)
        retries = RetryQueue(capacity: capacity)
    }

    /// A turn begins.
    mutating func beginIteration(now: UInt64) {
        chunkRows.adapt(now: now)
        settledUnsent = 0
        hasMoreUnsent = false
    }

    // MARK: What there is

    /// True while rows are left that this reactor sends or waits for, but for those that others hand
    /// over.
    @inline(__always)
    var hasWork: Bool {
        !requeued.isEmpty || retries.count > 0 || awaitingSync.count > 0 || !chunks.isExhausted
    }

    /// True where a read of the list is all that is waited for.
    var waitsForList: Bool {
        inFlight == 0 && requeued.isEmpty && retries.count == 0 && awaitingSync.count == 0
            && chunks.waitsForList
    }

    /// True if a row of the list may be sent now, or may turn out to need no request.
    ///
    /// - Parameter synced: The ledger's position up to which all would survive a power cut.
    @inline(__always)
    func hasListRow(synced: UInt64) -> Bool {
        if awaitingSync.count > 0 { return isNextRowSynced(synced) }
        return chunks.hasRow(syncedPosition: synced)
    }

    @inline(never)
    private func isNextRowSynced(_ synced: UInt64) -> Bool {
        awaitingSync.reservedAt.map { $0 <= synced } ?? false
    }

    /// True if a row that waits for nothing is here already: it has its place in the slab.
    @inline(__always)
    func hasRowInHand(synced: UInt64, now: UInt64) -> Bool {
        if !requeued.isEmpty { return true }
        if retries.count > 0, let due = retries.nextDue, due <= now { return true }
        return awaitingSync.count > 0 && hasListRow(synced: synced)
    }

    /// True if rows are held that may be sent as soon as what is written is synced.
    @inline(__always)
    func waitsForSync(synced: UInt64, written: UInt64) -> Bool {
        guard let reservedAt = awaitingSync.reservedAt else { return false }
        return reservedAt > synced && reservedAt <= written
    }

    // MARK: Rows on their way

    // What is rare stays out of the function that runs for each row: it counts references.

    @inline(never)
    mutating func takeSyncedRow() -> RowTag? { awaitingSync.popFirst(in: slab) }

    /// Keeps a row of the chunk in use until its reservation is synced.
    ///
    /// - Returns: The ledger's position that it waits for.
    @inline(never)
    mutating func awaitSync(_ tag: RowTag) -> UInt64 {
        awaitingSync.append(tag, reservedAt: chunks.reservedAt, in: slab)
        return chunks.reservedAt
    }

    /// Puts a row first in line for whichever connection comes next.
    mutating func requeue(_ tag: RowTag) { requeued.append(tag, in: slab) }

    /// Puts a row that was taken back where it was.
    mutating func putBack(_ tag: RowTag) { requeued.prepend(tag, in: slab) }

    /// A row that was handed back, or that is due for another attempt.
    @inline(__always)
    mutating func takeRequeued(now: UInt64) -> RowTag? {
        if let tag = requeued.popFirst(in: slab) { return tag }
        return retries.popDue(now: now)
    }

    /// Any row that waits for a request, the list's left out; nil if none is left.
    mutating func takeUnsent() -> RowTag? {
        if let tag = requeued.popFirst(in: slab) { return tag }
        if let entry = retries.popFirst() { return entry.tag }
        return awaitingSync.popFirst(in: slab)
    }

    /// What does not hold although it always has to; nil if all is well.
    var brokenInvariant: String? {
        let waiting = requeued.count + retries.count + awaitingSync.count
        if inFlight < 0 { return "\(inFlight) rows in flight" }
        // Each row is in one condition, and in no two.
        if slab.count != inFlight + waiting {
            return "\(slab.count) rows in hand, \(inFlight) in flight and \(waiting) waiting"
        }
        if slab.count > slab.capacity { return "\(slab.count) rows in \(slab.capacity) slots" }
        if awaitingSync.count > RowsAwaitingSync.limit + 1 {
            return "\(awaitingSync.count) rows ahead of their sync"
        }
        return chunks.brokenInvariant
    }
}

/// Rows that a reactor read since it told the run.
struct RowsRead {
    var rows: UInt64 = 0
    var invalid: UInt64 = 0
    /// So many rows are read at most before the run is told; one where it is 0.
    var lease: UInt64 = 0
    /// The run stops: no further row of the list is read.
    var isStopping = false
}
