import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Rows that a reactor works on, from the list to their verdicts.
///
///     list --> chunks -- reservation is synced --------> next row --> in flight --> verdict
///                 |                                      ^      ^           |
///                 '--> awaitingSync -- sync has ended ---'      '-----------'
///                                                             requeued, retries
///
/// Owns the rows' memory (`slab`) and every queue that a row may wait in.
struct RowSupply: ~Copyable {
    var slab: RowSlab
    /// Rows that a server did not process, or that may be sent again with a renewed token. They are
    /// sent before all others.
    var requeued = RowQueue()
    /// Rows that wait for a retry.
    var retries: RetryQueue
    var chunks: ChunkQueue
    var chunkRows: ChunkRows
    /// Rows that wait for the sync of their reservation.
    var awaitingSync = RowsAwaitingSync()
    /// Whether this reactor has registered its rows with `RowHandoff`.
    var hasRegisteredRows = false
    /// Number of requests without a response.
    private(set) var inFlight = 0
    /// Number of rows settled without a request in this iteration, and whether `unsentLimit` was
    /// reached.
    var settledUnsent = 0
    var hasMoreUnsent = false
    /// Counter for `--max-invalid`.
    var rowsRead = RowsRead()
    /// Time since which a row of the list is awaited to test a server in trouble; nil if none is.
    private var testRowAwaitedSince: UInt64?

    /// Maximum time for which a test of a server in trouble waits for a row of the list.
    static var testRowPatience: UInt64 { second }

    /// Limit on the rows that one iteration settles without a request. Responses wait until the
    /// iteration has settled these rows.
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
        // Half a block for each row in flight, and a shared reserve. If field values are large, the
        // blocks limit the number of rows in hand.
        let blockCount = flights / 2 + RowSlab.sharedBlocks / settings.reactors + 64
        slab = RowSlab(
            capacity: capacity, fieldValueByteCountMax: fieldLimit,
            blockCount: settings.personal == nil ? 0 : blockCount)
        retries = RetryQueue(capacity: capacity)
    }

    /// Starts an iteration.
    mutating func beginIteration(now: UInt64) {
        chunkRows.adapt(now: now)
        settledUnsent = 0
        hasMoreUnsent = false
    }

    // MARK: State

    /// Whether the reactor may still have rows to send. Rows in flight do not count, nor do rows
    /// that other reactors handed over.
    @inline(__always)
    var hasWork: Bool {
        !requeued.isEmpty || retries.count > 0 || awaitingSync.count > 0 || !chunks.isExhausted
    }

    /// Whether the reactor only waits for a read of the list.
    var waitsForList: Bool {
        inFlight == 0 && requeued.isEmpty && retries.count == 0 && awaitingSync.count == 0
            && chunks.waitsForList
    }

    /// The row whose retry is due first, if all rows wait for their retries; nil otherwise.
    var firstRetry: RowTag? {
        let hasOthers =
            inFlight > 0 || !requeued.isEmpty || awaitingSync.count > 0 || !chunks.isExhausted
        return hasOthers ? nil : retries.nextTag
    }

    /// Whether a row of the list may be sent now, or may be settled without a request.
    ///
    /// - Parameter synced: The ledger position up to which everything is durable.
    @inline(__always)
    func hasListRow(synced: UInt64) -> Bool {
        if let reservedAt = awaitingSync.reservedAt { return reservedAt <= synced }
        return chunks.hasRow(syncedPosition: synced)
    }

    /// Whether a row that can be sent at once already has a slot in the slab.
    @inline(__always)
    func hasRowInHand(synced: UInt64, now: UInt64) -> Bool {
        if !requeued.isEmpty { return true }
        if retries.count > 0, let due = retries.nextDue, due <= now { return true }
        return awaitingSync.count > 0 && hasListRow(synced: synced)
    }

    /// Whether rows may be sent as soon as the written part of the segment is synced.
    @inline(__always)
    func waitsForSync(synced: UInt64, written: UInt64) -> Bool {
        guard let reservedAt = awaitingSync.reservedAt else { return false }
        return reservedAt > synced && reservedAt <= written
    }

    // MARK: Moving rows

    // Rare work stays out of the function that runs for each row, because that work includes
    // reference counting.

    mutating func takeSyncedRow() -> RowTag? { awaitingSync.popFirst(in: slab) }

    /// Keeps a row of the current chunk until its reservation is synced.
    ///
    /// - Returns: The ledger position that the row waits for.
    @inline(never)
    mutating func awaitSync(_ tag: RowTag) -> UInt64 {
        awaitingSync.append(tag, reservedAt: chunks.reservedAt, in: slab)
        return chunks.reservedAt
    }

    /// Counts a request of a row that the reactor works on.
    @inline(__always)
    mutating func beginFlight() {
        inFlight += 1
        assert(inFlight <= slab.count, "each request in flight has a row in hand")
    }

    /// Counts the outcome of a request, before the row is settled or queued again.
    @inline(__always)
    mutating func endFlight() {
        assert(inFlight > 0, "an outcome belongs to a request in flight")
        inFlight -= 1
    }

    /// Adds a row to the rows that are sent before all others.
    mutating func requeue(_ tag: RowTag) { requeued.append(tag, in: slab) }

    /// Puts back a row that was taken, as the next one to send.
    mutating func putBack(_ tag: RowTag) { requeued.prepend(tag, in: slab) }

    /// Takes a requeued row or one whose retry is due.
    @inline(__always)
    mutating func takeRequeued(now: UInt64) -> RowTag? {
        if let tag = requeued.popFirst(in: slab) { return tag }
        return retries.popDue(now: now)
    }

    /// Whether a test of a server in trouble may still wait for a row of the list.
    mutating func mayAwaitTestRow(now: UInt64) -> Bool {
        let since = testRowAwaitedSince ?? now
        testRowAwaitedSince = since
        return now - since <= Self.testRowPatience
    }

    /// Ends the wait for a row of the list.
    mutating func endWaitForTestRow() { testRowAwaitedSince = nil }

    /// Takes any row that waits for a request, except rows of the list; nil if none is left.
    mutating func takeUnsent() -> RowTag? {
        if let tag = requeued.popFirst(in: slab) { return tag }
        if let entry = retries.popFirst() { return entry.tag }
        return awaitingSync.popFirst(in: slab)
    }

    /// Description of a violated invariant; nil if there is none.
    var brokenInvariant: String? {
        let waiting = requeued.count + retries.count + awaitingSync.count
        if inFlight < 0 { return "\(inFlight) rows in flight" }
        // Each row is in exactly one state.
        if slab.count != inFlight + waiting {
            return "\(slab.count) rows in hand, \(inFlight) in flight and \(waiting) waiting"
        }
        if slab.count > slab.capacity { return "\(slab.count) rows in \(slab.capacity) slots" }
        if awaitingSync.count > RowsAwaitingSync.limit + 1 {
            return "\(awaitingSync.count) rows wait for the sync of their reservation"
        }
        return chunks.brokenInvariant
    }
}

/// Rows read since the last report to the run.
struct RowsRead {
    var rows: UInt64 = 0
    var invalid: UInt64 = 0
    /// Number of rows after which the next report is due; 0: each row is reported.
    var lease: UInt64 = 0
    /// Whether the run stops. If so, no further row of the list is read.
    var isStopping = false
}
