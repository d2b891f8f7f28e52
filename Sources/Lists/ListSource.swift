package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport
internal import Synchronization

/// Source of a list's chunks, in order. The chunks cover the whole list, or the work that an
/// earlier run left. Only the list's thread uses the source.
@safe package final class ListSource: @unchecked Sendable {
    private enum Work {
        /// Rows that no run reserved, up to an offset or the end of the list.
        case gap
        /// Chunk of an earlier run, to be read again.
        case again(ChunkWork)
    }

    package let list: TokenList
    private let pool: ChunkPool
    /// Selection of the run's rows.
    let selection: ListSelection
    var rows: CampaignRows { selection.rows }
    private var plan: ResumePlan?
    /// Whether a new run has already taken its range of the list.
    private var isPartTaken = false
    private var work: Work?
    /// State of the canary, until it is decided.
    private var canary: CanaryRows?
    /// Gaps that the canary left. They come before the parts of the plan that have not been read.
    private var remains: ArraySlice<ListExtent> = []
    let cursor: ListCursor
    private var isAtEnd = false
    /// The reading progress, for other threads.
    private let readTo = Mutex(Progress())

    /// The progress of reading a list: the numbers of rows and bytes read.
    package struct Progress: Sendable {
        package var rows: UInt64 = 0
        package var bytes: UInt64 = 0
        /// Whether the end of the list was reached, so that `rows` is the total.
        package var isAtEnd = false
    }

    package var progress: Progress { readTo.withLock { $0 } }

    /// Creates a source for a single reader.
    package convenience init(
        _ list: TokenList, _ selection: ListSelection = ListSelection()
    ) throws(BroadsideError) {
        try self.init(
            list: list, pool: ChunkPool(limit: ChunkPool.oneReader), plan: nil,
            selection: selection)
    }

    /// Creates a source for a run's reactors.
    ///
    /// - Parameters:
    ///   - plan: Work that earlier runs left; nil for all rows of the selection.
    ///   - selection: Rows that are handed out, and those among them that are not sent.
    ///   - canary: Gate that withholds all rows except the canary's until it decides; nil for none.
    ///   - isHashed: Whether the hash of the whole list is needed at its end.
    package init(
        list: TokenList, pool: ChunkPool, plan: consuming ResumePlan?, selection: ListSelection,
        canary: CanaryGate? = nil, isHashed: Bool = false
    ) throws(BroadsideError) {
        self.list = list
        self.pool = pool
        self.selection = selection
        cursor = ListCursor(list, pool: pool, rows: selection.rows, isHashed: isHashed)
        self.canary = canary.map { CanaryRows(gate: $0, rowsLeft: $0.rowsWanted) }
        self.plan = plan
    }

    /// Returns a chunk to the pool. Nothing may read the chunk after this call.
    package func giveBack(_ chunk: RowChunk) { pool.giveBack(chunk) }

    /// Error that prevents further reading.
    private var failure: BroadsideError?

    /// Returns the next chunk; nil at the end of the list, and while the canary withholds other
    /// rows.
    ///
    /// After an error, each further call throws this error. Otherwise, a canary would take other
    /// rows in place of the rows that can't be read.
    package func next(rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        if let failure { throw failure }
        do throws(BroadsideError) {
            return try nextUnchanged(rowLimit: rowLimit)
        } catch {
            failure = error
            throw error
        }
    }

    /// Returns the next chunk after checking that the list is unchanged. So no rows of a changed
    /// list are handed out.
    private func nextUnchanged(rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        if isAtEnd { return nil }
        let chunk = try nextPart(rowLimit: rowLimit)
        do throws(BroadsideError) {
            try list.checkUnchanged()
            if let chunk { try list.checkRowCount(chunk.end.row) }
        } catch {
            if let chunk { pool.giveBack(chunk) }
            isAtEnd = false
            throw error
        }
        return chunk
    }

    private func nextPart(rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        defer { noteProgress() }
        if canary != nil {
            if let chunk = try nextOfCanary() { return chunk }
            isHeld = canary?.gate.isPending ?? false
            if isHeld { return nil }
            assert(canary?.gaps.isEmpty ?? true, "the canary leaves no gap")
            endCanary()
        }
        // Chunks without a due row are skipped. Their number has a limit, because the reactors wait
        // meanwhile.
        var passedOver = 0
        while !isAtEnd {
            if work == nil { work = try nextWork() }
            switch work {
            case nil:
                isAtEnd = true
            case .gap:
                let most = try selection.rowLimit(rowLimit, from: cursor.position.row)
                guard let chunk = try cursor.cutRows(atMost: most) else {
                    work = nil
                    break
                }
                try selection.mark(chunk)
                passedOver += 1
                if selection.hasWork(chunk) || passedOver > Self.passedOverLimit { return chunk }
                pool.giveBack(chunk)
            case .again(let again):
                work = nil
                guard try hasWork(again) else { break }
                let chunk = try read(again)
                try selection.mark(chunk)
                passedOver += 1
                if selection.hasWork(chunk) || passedOver > Self.passedOverLimit {
                    plan?.keepVerdicts(of: chunk)
                    return chunk
                }
                pool.giveBack(chunk)
            }
        }
        return nil
    }

    /// Maximum number of consecutive chunks that are read without handing out any of them.
    private static let passedOverLimit = 1_024

    /// Whether a chunk of an earlier run may have rows that this run sends or settles.
    private func hasWork(_ again: ChunkWork) throws(BroadsideError) -> Bool {
        guard let due = selection.due, !again.dispositions.contains(where: \.settlesUnsent) else {
            return true
        }
        return try due.hasAny(in: again.chunk.rows)
    }

    /// Whether the canary made the latest call of `next` return nil. If so, all rows of the canary
    /// are handed out, and the rest of the list waits. The value is stored during that call. The
    /// canary may be decided soon after, and the nil would then look like the end of the list.
    package private(set) var isHeld = false

    private func nextOfCanary() throws(BroadsideError) -> RowChunk? {
        guard var rows = canary else { return nil }
        let chunk = try nextOfCanary(&rows)
        canary = rows
        guard let chunk else {
            rows.gate.exhausted(isListOver: rows.rowsLeft > 0)
            return nil
        }
        try selection.mark(chunk)
        plan?.keepVerdicts(of: chunk)
        let passedOver = chunk.dispositions?.count { $0.isPassedOver }
        rows.gate.handedOut(chunk.rowCount - (passedOver ?? 0))
        return chunk
    }

    private func endCanary() {
        remains = canary?.remains[...] ?? []
        assert(
            zip(remains, remains.dropFirst()).allSatisfy { $0.endRow ?? .max <= $1.firstRow },
            "the rows that the canary leaves are in the list's order")
        canary = nil
    }

    /// Returns the number of rows in the list. Reads all remaining rows without handing them out.
    ///
    /// - Parameter isCancelled: Called periodically; true ends the count.
    /// - Returns: nil if the count was cancelled.
    package func countRows(isCancelled: () -> Bool) throws(BroadsideError) -> UInt64? {
        if canary != nil {
            while !isCancelled(), let chunk = try nextOfCanary() { pool.giveBack(chunk) }
            endCanary()
        }
        while !isCancelled() {
            guard let chunk = try next(rowLimit: .max) else {
                return min(cursor.position.row, rows.end)
            }
            pool.giveBack(chunk)
        }
        return nil
    }

    /// Returns the hash of the whole list. The start of the list, as far as it was read in order,
    /// is already hashed. Everything after it is read for the hash, some of it a second time. Call
    /// after `countRows`.
    ///
    /// - Returns: nil if the reading was cancelled, or if rows beyond a limit were not read.
    package func contentHash(isCancelled: () -> Bool) throws(BroadsideError) -> String? {
        guard let hash = cursor.hash, isAtEnd, rows.limit == nil || hash.byteCount == list.byteCount
        else {
            return nil
        }
        return try list.contentHash(from: hash) { () throws(BroadsideError) in isCancelled() }
    }

    /// Text of the header; known after the first chunk, or at the end of the list.
    package var header: [UInt8]? { cursor.header }

    private func noteProgress() {
        let position = cursor.position
        let (isAtEnd, limit) = (isAtEnd, rows.end)
        readTo.withLock {
            $0 = Progress(
                rows: min(position.row, limit), bytes: position.byteOffset, isAtEnd: isAtEnd)
        }
    }

    private func nextWork() throws(BroadsideError) -> Work? {
        var next: ResumePlan.Work?
        if let gap = remains.popFirst() {
            next = .gap(gap)
        } else {
            next = try nextOfPlan()
        }
        switch next {
        case nil:
            return nil
        case .gap(let gap):
            cursor.begin(gap)
            return .gap
        case .chunk(let again):
            return .again(again)
        }
    }

    /// Returns the next item of work in the plan: work that earlier runs left, or the whole list.
    func nextOfPlan() throws(BroadsideError) -> ResumePlan.Work? {
        guard plan != nil else {
            defer { isPartTaken = true }
            return isPartTaken ? nil : .gap(rows.part)
        }
        do {
            return try plan?.next()
        } catch {
            throw BroadsideError("the ledger can't be read: \(error)", exitCode: 5)
        }
    }

    /// Whether the rows of a canary can be sampled from the whole list. This requires that the
    /// list's size is known, and that there is no limit on its rows.
    var canSpreadCanary: Bool { rows.limit == nil && list.byteCount != nil }

    /// Reads a chunk of an earlier run. Throws if the list has different bytes at the chunk's
    /// offset than in that run.
    func read(_ again: ChunkWork) throws(BroadsideError) -> RowChunk {
        let known = again.chunk
        guard let chunk = try cursor.read(known) else {
            throw BroadsideError(
                "this is not the list with which the campaign began (it differs from "
                    + "line \(known.firstLine) on): resume with the original list",
                exitCode: 2)
        }
        // The plan's own arrays are used without copying. Most chunks have no row that was sent
        // before, and need no attempts.
        chunk.dispositions = again.dispositions
        chunk.attempts = again.attempts.contains { $0 > 0 } ? again.attempts : nil
        chunk.attemptsBefore = again.attemptsBefore.contains { $0 > 0 } ? again.attemptsBefore : nil
        chunk.wasSent = again.wasSent.contains(true) ? again.wasSent : nil
        chunk.reopens = known.reopens
        assert(
            (chunk.attempts?.count ?? chunk.rowCount) == chunk.rowCount, "each row has its attempts"
        )
        assert(
            (chunk.dispositions?.count ?? chunk.rowCount) == chunk.rowCount,
            "each row has one disposition")
        return chunk
    }
}
