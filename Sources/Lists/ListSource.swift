package import Campaign
package import Support
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
    let rows: CampaignRows
    private var plan: ResumePlan?
    /// True once it was taken.
    private var isPartTaken = false
    private var work: Work?
    /// The canary, until it is decided.
    private var canary: CanaryRows?
    /// Gaps that the canary left behind; they come before what is left of the plan.
    private var remains: ArraySlice<ListGap> = []
    private var cutter: RowSplitter
    private var isAtEnd = false
    /// True once the cutter was told that the list is over.
    private var isCutterDone = false
    /// Where the rows that are being cut end; the cutter is told that the list ends there.
    private var end = UInt64.max
    private let skips: ExclusionIndex?
    /// Of the list's beginning, as far as it was read in order; nil where nobody wants it.
    private var hash: ListHash?

    // SAFETY: `init` allocates `readSize` bytes, `deinit` frees them; the first `bufferCount` are
    // set, and change only when `cut` has consumed them.
    private let buffer: UnsafeMutableRawBufferPointer
    private var bufferOffset: UInt64 = 0
    private var bufferCount = 0
    private var consumed = 0

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

    /// Bytes that are read at once.
    static let readSize = 256 * 1024

    /// - Parameters:
    ///   - plan: What an earlier run left; nil: all of `rows`.
    ///   - rowsLimit: Only rows with smaller numbers.
    ///   - rows: Only these rows are handed out to be sent.
    ///   - skips: Rows that are settled without being sent.
    ///   - canary: Holds back all but its own rows until it is decided; nil: nothing is held back.
    package convenience init(
        list: TokenList, pool: ChunkPool, plan: consuming ResumePlan?, rowsLimit: UInt64?,
        canary: CanaryGate? = nil
    ) throws(BroadsideError) {
        try self.init(
            list: list, pool: pool, plan: plan, rows: CampaignRows(limit: rowsLimit), skips: nil,
            canary: canary)
    }

    package init(
        list: TokenList, pool: ChunkPool, plan: consuming ResumePlan?, rows: CampaignRows,
        skips: ExclusionIndex?, canary: CanaryGate? = nil, isHashed: Bool = false
    ) throws(BroadsideError) {
        hash = isHashed ? ListHash() : nil
        self.list = list
        self.pool = pool
        self.rows = rows
        cutter = RowSplitter(format: list.format, pool: pool)
        // SAFETY: no byte is read before `cut` has set it: `bufferCount` is 0.
        unsafe buffer = .allocate(byteCount: Self.readSize, alignment: 4096)
        self.canary = canary.map { CanaryRows(gate: $0, rowsLeft: $0.rowsWanted) }
        self.skips = skips
        self.plan = plan
    }

    deinit {
        // SAFETY: the last reference is gone, and spans of the buffer end with the calls that made
        // them.
        unsafe buffer.deallocate()
    }

    /// The next chunk; nil at the end, and while the canary holds the rest back. At the end of each
    /// part the list is looked at: rows of one that has changed are not handed out.
    package func next(rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        if isAtEnd { return nil }
        let chunk = try nextPart(rowLimit: rowLimit)
        do throws(BroadsideError) {
            try list.checkUnchanged()
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
                if let chunk = try cutRows(atMost: rowLimit) {
                    try mark(chunk)
                    return chunk
                }
                work = nil
            case .again(let again):
                work = nil
                let chunk = try read(again)
                try mark(chunk)
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
        try mark(chunk)
        let passedOver = chunk.dispositions?.count {
            $0 == RowDisposition.settled.rawValue || $0 == RowDisposition.beyondLimit.rawValue
        }
        rows.gate.handedOut(chunk.rowCount - (passedOver ?? 0))
        return chunk
    }

    private func endCanary() {
        remains = canary?.remains[...] ?? []
        canary = nil
    }

    /// Marks the rows of a chunk that are not for this run to send.
    private func mark(_ chunk: RowChunk) throws(BroadsideError) {
        if rows.selection.divisor > 1, chunk.dispositions == nil {
            var dispositions = [UInt8](
                repeating: RowDisposition.settled.rawValue, count: chunk.rowCount)
            let (divisor, first) = (
                rows.selection.divisor, chunk.start.row % rows.selection.divisor
            )
            var place = Int((rows.selection.remainder + divisor - first) % divisor)
            while place < chunk.rowCount {
                dispositions[place] = RowDisposition.send.rawValue
                place += Int(divisor)
            }
            chunk.dispositions = dispositions
        }
        try skips?.mark(chunk)
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
                return min(cutter.position.row, rows.end)
            }
            pool.giveBack(chunk)
        }
        return nil
    }

    /// The hash of the whole list; what was not read in order is read now. Call after `countRows`.
    ///
    /// - Returns: nil where it was ended, or rows behind a limit were not read at all.
    package func contentHash(isCancelled: () -> Bool) throws(BroadsideError) -> String? {
        guard let hash, isAtEnd, rows.limit == nil || hash.byteCount == list.byteCount else {
            return nil
        }
        return try list.contentHash(from: hash) { () throws(BroadsideError) in isCancelled() }
    }

    /// Where the list ends inside quotes, what to tell of that; known at its end.
    package var openQuoteWarning: String? {
        cutter.unclosedQuoteLine.map {
            "\(list.name) ends inside quotes that open on line \($0): all that follows them is one "
                + "malformed row, which is not sent: close them there"
        }
    }

    /// The header's text; known once the first chunk was handed out, or the list is at its end.
    package var header: [UInt8]? { cutter.header }

    private func noteProgress() {
        let position = cutter.position
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
            begin(gap)
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

    /// Goes to a gap's start.
    @discardableResult package func begin(_ gap: ListGap) -> ListPosition {
        seek(ListPosition(byteOffset: gap.byteOffset, row: gap.firstRow, line: gap.firstLine))
        end = gap.endByteOffset ?? .max
        return cutter.position
    }

    /// Where the next row is looked for.
    var position: ListPosition { cutter.position }

    func giveBack(_ chunk: RowChunk) { pool.giveBack(chunk) }

    /// True where a canary's rows can come from all over the list: its size is known, and what
    /// comes before a place can be read past.
    var canSpreadCanary: Bool { rows.limit == nil && list.byteCount != nil }

    private func seek(_ position: ListPosition) {
        cutter = RowSplitter(format: list.format, pool: pool, start: position)
        isCutterDone = false
        end = .max
        bufferOffset = position.byteOffset
        bufferCount = 0
        consumed = 0
    }

    /// Cuts rows of the gap that was begun; nil at its end.
    package func cutRows(atMost rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        let left = rows.end - min(rows.end, cutter.position.row)
        guard left > 0 else { return nil }
        // Of so many rows, only one is this run's.
        let (wanted, overflow) = rowLimit.multipliedReportingOverflow(
            by: Int(rows.selection.divisor))
        cutter.rowLimit = max(1, Int(min(overflow ? UInt64(Int.max) : UInt64(wanted), left)))
        return try cut()
    }

    /// Reads a chunk of an earlier run: the same bytes at the same place, or the list has changed.
    func read(_ again: ChunkWork) throws(BroadsideError) -> RowChunk {
        let known = again.chunk
        guard let chunk = try read(known) else {
            throw BroadsideError(
                "the list is not the one this campaign was begun with: its part from line "
                    + "\(known.firstLine) on has changed: resume with the list as it was",
                exitCode: 2)
        }
        chunk.dispositions = again.dispositions.map(\.rawValue)
        chunk.attempts = again.attempts.map { UInt8(min($0, 255)) }
        chunk.reopens = known.reopens
        return chunk
    }

    /// Takes what was read last into the hash, as far as it follows what is in it.
    private func takeInHash() {
        guard let known = hash?.byteCount, bufferOffset <= known,
            known < bufferOffset + UInt64(bufferCount)
        else { return }
        let first = Int(known - bufferOffset)
        // SAFETY: so many bytes of the buffer are set, and nothing changes them meanwhile.
        hash?.append(
            unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[first..<bufferCount])))
    }

    /// Reads a chunk that the ledger knows; nil where the list has something else in its place.
    func read(_ known: ChunkReservation) throws(BroadsideError) -> RowChunk? {
        seek(
            ListPosition(
                byteOffset: known.byteOffset, row: known.firstRow, line: known.firstLine))
        // Nothing behind it is read in vain.
        end = known.byteOffset + known.byteCount
        cutter.endChunk(at: end, isExact: true)
        guard let chunk = try cut() else { return nil }
        guard chunk.hash == known.hash, chunk.rowCount == known.rowCount else {
            pool.giveBack(chunk)
            return nil
        }
        return chunk
    }

    private func cut() throws(BroadsideError) -> RowChunk? {
        while !isCutterDone {
            if consumed == bufferCount {
                bufferOffset += UInt64(bufferCount)
                consumed = 0
                // Where reading fails, nothing of what came before may be taken for what follows.
                bufferCount = 0
                let room = Int(min(UInt64(Self.readSize), end - min(end, bufferOffset)))
                // SAFETY: `room` is at most the buffer's size, and `read` says how many bytes it
                // has set from its beginning on: those that the span has, until they are consumed.
                bufferCount = unsafe try list.read(
                    at: bufferOffset,
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
                if bufferCount == 0 {
                    isCutterDone = true
                    return cutter.finish()
                }
                takeInHash()
            }
            let bytes = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<bufferCount]))
            switch cutter.next(bytes, at: &consumed) {
            case .chunk(let chunk): return chunk
            case .needsInput: continue
            case .poolEmpty: preconditionFailure("the pool has a chunk for all that may be out")
            }
        }
        return nil
    }
}
