import BroadsideAPNs
public import BroadsideRows

/// Treatment of a row that was sent, but whose response was lost (`--on-lost`). It applies in the
/// run that sent the row, and in a resume that finds the row in doubt.
public enum LostResponsePolicy: String, Sendable, CaseIterable {
    /// Recorded as `unknown`, and not sent again unless requested.
    case record
    /// Sent again: a device may receive the notification twice.
    case resend
}

/// Chunk with open rows.
public struct ChunkWork: Sendable {
    /// The chunk to reserve again, with the states that the reservation reopens.
    public var chunk: ChunkReservation
    /// What to do with each row.
    public var dispositions: [RowDisposition]
    /// Previous attempts of each row; 0 for reopened rows.
    public var attempts: [UInt16]
    /// Number of rows to send.
    public var sendCount: Int
    /// Number of rows in doubt that become `unknown`.
    var unknownCount: Int
}

/// Remaining work of a campaign, in list order, one chunk at a time.
public struct ResumePlan: ~Copyable {
    /// Item of work.
    public enum Work: Sendable {
        /// Rows that no run reserved, to be divided into chunks.
        case gap(ListExtent)
        /// Rows to read again, and to send if their disposition requires it.
        case chunk(ChunkWork)
    }

    private var index: LedgerIndex { verdicts.index }
    private let lostRows: LostResponsePolicy
    private let reopens: ReopenedStates
    /// First run that reserved chunks with `reopens`; nil if no run did.
    private let reopenedSince: UInt32?
    private var verdicts: ChunkVerdicts
    private var nextChunk = 0
    private var gapIsDone = false

    /// Plans the work that earlier runs have left.
    ///
    /// - Parameters:
    ///   - index: The ledger and the rows that this run covers. Rows beyond the limit are not sent.
    ///   - lostRows: Treatment of rows in doubt. If `reopens` has `unknown`, rows in doubt are
    ///     always sent again, as if an earlier run had recorded them as `unknown`.
    ///   - reopens: States whose rows are sent again.
    ///   - reopenedSince: Earlier run of the same process that was the first to reopen these
    ///     states; nil if this run is the first. This run does not reopen rows that the process has
    ///     settled since then. Rows that the process left in doubt are already reopened, but not
    ///     sent.
    public init(
        index: LedgerIndex, lostRows: LostResponsePolicy, reopens: ReopenedStates,
        reopenedSince: UInt32? = nil
    ) {
        self.reopenedSince = reopenedSince
        verdicts = ChunkVerdicts(of: index)
        self.lostRows = lostRows
        self.reopens = reopens
    }

    /// Returns the next item of work; nil after the last one. The last item is always a gap up to
    /// the end of the list. This gap may be empty.
    ///
    /// - Throws: Errors of `ChunkVerdicts.load`.
    public mutating func next() throws(LedgerError) -> Work? {
        while nextChunk <= index.chunkCount {
            let previous = nextChunk > 0 ? index.chunk(nextChunk - 1) : nil
            let chunk = nextChunk < index.chunkCount ? index.chunk(nextChunk) : nil
            if !gapIsDone {
                gapIsDone = true
                if let gap = ListExtent(after: previous, before: chunk, within: index.rows.part) {
                    return .gap(gap)
                }
            }
            gapIsDone = false
            nextChunk += 1
            guard let chunk else { return nil }
            try verdicts.load(chunk: nextChunk - 1)
            if let work = work(on: chunk, number: nextChunk - 1) { return .chunk(work) }
        }
        return nil
    }

    /// Returns the work on the chunk whose verdicts are loaded; nil if it needs no work.
    private func work(on chunk: ChunkReservation, number: Int) -> ChunkWork? {
        let isReopened = reopenedSince.map { index.latestRun(ofChunk: number) >= $0 } ?? false
        var work = ChunkWork(
            chunk: chunk, dispositions: [], attempts: [], sendCount: 0, unknownCount: 0)
        work.chunk.reopens = isReopened ? [] : reopens
        work.dispositions.reserveCapacity(verdicts.rows.count)
        work.attempts.reserveCapacity(verdicts.rows.count)
        for place in verdicts.rows.indices {
            let row = verdicts.rows[place]
            let disposition = disposition(
                of: row, number: chunk.firstRow + UInt64(place), reopening: work.chunk.reopens)
            work.dispositions.append(disposition)
            let isKept = !row.state.isSettled || disposition == .becomesUnknown
            work.attempts.append(isKept ? row.attempts : 0)
            if disposition.isSent { work.sendCount += 1 }
            if disposition == .becomesUnknown, row.state == .inDoubt { work.unknownCount += 1 }
        }
        assert(work.sendCount + work.unknownCount <= chunk.rowCount, "no more work than rows")
        assert(
            work.dispositions.count == chunk.rowCount && work.attempts.count == chunk.rowCount,
            "each row has its place in the plan")
        return work.sendCount + work.unknownCount > 0 ? work : nil
    }

    /// - Parameter states: States that the new reservation of the row's chunk reopens.
    private func disposition(
        of row: RowVerdict, number: UInt64, reopening states: ReopenedStates
    ) -> RowDisposition {
        guard index.rows.selection.contains(number) else { return .settled }
        // A failed row may have been processed before the failure.
        let isDoubtful =
            row.state == .failed && Reason(rawValue: row.reason)?.leavesDoubt == true
        guard number < index.rows.end else {
            return dispositionBeyondLimit(
                of: row.state, isDoubtful: isDoubtful, reopening: states)
        }
        switch row.state {
        case .remaining: return .send
        case .inDoubt:
            return lostRows == .resend || reopens.contains(RowState.unknown)
                ? .sendAgain : .becomesUnknown
        case .unknown: return states.contains(row.state) ? .sendAgain : .settled
        case .failed where isDoubtful: return states.contains(row.state) ? .sendAgain : .settled
        default: return states.contains(row.state) ? .send : .settled
        }
    }

    /// Returns the disposition of a row beyond the limit. Such a row is never sent. If the new
    /// reservation of its chunk reopens the row, the run settles or releases the row, so that it is
    /// not left in doubt.
    private func dispositionBeyondLimit(
        of state: RowState, isDoubtful: Bool, reopening states: ReopenedStates
    ) -> RowDisposition {
        switch state {
        case .remaining: .beyondLimit
        case .inDoubt: lostRows == .resend ? .settled : .becomesUnknown
        case .unknown: states.contains(state) ? .becomesUnknown : .settled
        case .failed where isDoubtful: states.contains(state) ? .becomesUnknown : .settled
        default: states.contains(state) ? .beyondLimit : .settled
        }
    }
}
