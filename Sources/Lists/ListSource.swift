package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport
internal import Synchronization

/// Hands a list out in chunks, in order: all of it, or what an earlier run left. Used by the list's
/// thread alone.
@safe package final class ListSource: @unchecked Sendable {
    private enum Work {
        /// Rows that no run has reserved, up to a place or to the list's end.
        case gap
        /// A chunk of an earlier run, to be read again as it was.
        case again(ChunkWork)
    }

    package let list: TokenList
    private let pool: ChunkPool
    /// Which rows of the list are this run's.
    private let selection: ListSelection
    var rows: CampaignRows { selection.rows }
    private var plan: ResumePlan?
    /// True once it was taken.
    private var isPartTaken = false
    private var work: Work?
    /// The canary, until it is decided.
    private var canary: CanaryRows?
    /// Gaps that the canary left behind; they come before what is left of the plan.
    private var remains: ArraySlice<ListExtent> = []
    let cursor: ListCursor
    private var isAtEnd = false
    /// How far the list is read, for those who watch.
    private let readTo = Mutex(Progress())

    /// How far a list is read: rows, and the bytes that they stood in.
    package struct Progress: Sendable {
        package var rows: UInt64 = 0
        package var bytes: UInt64 = 0
        /// The list's end was seen, so that `rows` is all.
        package var isAtEnd = false
    }

    package var progress: Progress { readTo.withLock { $0 } }

    /// A list that one reader goes through.
    package convenience init(
        _ list: TokenList, _ selection: ListSelection = ListSelection()
    ) throws(BroadsideError) {
        try self.init(
            list: list, pool: ChunkPool(limit: ChunkPool.oneReader), plan: nil,
            rows: selection.rows, skips: selection.skips)
    }

    /// A list that a run's reactors read.
    ///
    /// - Parameters:
    ///   - plan: What an earlier run left; nil: all of `rows`.
    ///   - rows: Only these rows are handed out to be sent.
    ///   - skips: Rows that are settled without being sent.
    ///   - canary: Holds back all but its own rows until it is decided; nil: nothing is held back.
    ///   - isHashed: Whether the list's hash is wanted at its end.
    package init(
        list: TokenList, pool: ChunkPool, plan: consuming ResumePlan?, rows: CampaignRows,
        skips: ExclusionIndex?, canary: CanaryGate? = nil, isHashed: Bool = false
    ) throws(BroadsideError) {
        self.list = list
        self.pool = pool
        selection = ListSelection(rows: rows, skips: skips)
        cursor = ListCursor(list, pool: pool, rows: rows, isHashed: isHashed)
        self.canary = canary.map { CanaryRows(gate: $0, rowsLeft: $0.rowsWanted) }
        self.plan = plan
    }

    /// Takes back a chunk that is not read any more.
    package func giveBack(_ chunk: RowChunk) { pool.giveBack(chunk) }

    /// Why the list can't be read on.
    private var failure: BroadsideError?

    /// The next chunk; nil at the end, and while the canary holds the rest back. Behind an error
    /// none follows: a canary would take other rows in the place of those that can't be read.
    package func next(rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        if let failure { throw failure }
        do throws(BroadsideError) {
            return try nextUnchanged(rowLimit: rowLimit)
        } catch {
            failure = error
            throw error
        }
    }

    /// At the end of each part the list is looked at: rows of one that has changed are not handed out.
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
            endCanary()
        }
        while !isAtEnd {
            if work == nil { work = try nextWork() }
            switch work {
            case nil:
                isAtEnd = true
            case .gap:
                if let chunk = try cursor.cutRows(atMost: rowLimit) {
                    try selection.mark(chunk)
                    return chunk
                }
                work = nil
            case .again(let again):
                work = nil
                let chunk = try read(again)
                try selection.mark(chunk)
                return chunk
            }
        }
        return nil
    }

    /// Whether `next` gave no chunk because the rest of the list waits for the canary, all of whose rows
    /// are handed out. Not asked of the gate again: reactors may have decided it meanwhile, and a list
    /// that was held would seem to be at its end.
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
        let passedOver = chunk.dispositions?.count { $0.isPassedOver }
        rows.gate.handedOut(chunk.rowCount - (passedOver ?? 0))
        return chunk
    }

    private func endCanary() {
        remains = canary?.remains[...] ?? []
        canary = nil
    }

    /// The number of rows in the list, reading what is left of it without handing it out.
    ///
    /// - Parameter isCancelled: Asked now and then; true ends the count.
    /// - Returns: nil where it was ended.
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

    /// The hash of the whole list; what was not read in order is read now. Call after `countRows`.
    ///
    /// - Returns: nil where it was ended, or rows behind a limit were not read at all.
    package func contentHash(isCancelled: () -> Bool) throws(BroadsideError) -> String? {
        guard let hash = cursor.hash, isAtEnd, rows.limit == nil || hash.byteCount == list.byteCount
        else {
            return nil
        }
        return try list.contentHash(from: hash) { () throws(BroadsideError) in isCancelled() }
    }

    /// The header's text; known once the first chunk was handed out, or the list is at its end.
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

    /// What is to be done next: as earlier runs left it, or the whole list.
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

    /// True where a canary's rows can come from all over the list: its size is known, and what
    /// comes before a place can be read past.
    var canSpreadCanary: Bool { rows.limit == nil && list.byteCount != nil }

    /// Reads a chunk of an earlier run: the same bytes at the same place, or the list has changed.
    func read(_ again: ChunkWork) throws(BroadsideError) -> RowChunk {
        let known = again.chunk
        guard let chunk = try cursor.read(known) else {
            throw BroadsideError(
                "the list is not the one this campaign was begun with: its part from line "
                    + "\(known.firstLine) on has changed: resume with the list as it was",
                exitCode: 2)
        }
        // The plan's own arrays: nothing is copied, and most chunks have no row that was sent before.
        chunk.dispositions = again.dispositions
        chunk.attempts = again.attempts.contains { $0 > 0 } ? again.attempts : nil
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
