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
    /// Previous attempts of each row; 0 for rows whose disposition is `settled`. A row in doubt
    /// counts as sent once by the run that left it so.
    public var attempts: [UInt16]
    /// Number of rows to send.
    public var sendCount: Int
    /// Number of rows that are settled without being sent: rows in doubt that become `unknown`, and
    /// rows of erased devices.
    var unsentCount: Int
    /// Whether an earlier run sent, or may have sent, a request for each row; false for rows whose
    /// disposition is `settled`.
    public var wasSent: [Bool] = []
    /// Number of `attempts` of each row that do not count for `--max-attempts`.
    public var attemptsBefore: [UInt16] = []

    /// Maximum number of previous attempts, so that this run's attempts can be added.
    static let attemptsLimit: UInt16 = 60_000

    /// Adds a row of the chunk.
    ///
    /// - Parameter mayBeSent: Whether the row is in doubt because an earlier run may have sent it.
    fileprivate mutating func append(
        _ row: RowVerdict, _ disposition: RowDisposition, mayBeSent: Bool
    ) {
        dispositions.append(disposition)
        if disposition.isSent { sendCount += 1 }
        if disposition.settlesUnsent { unsentCount += 1 }
        // Most chunks have only rows that are settled or were never sent, and need no arrays.
        guard disposition != .settled else {
            attempts.append(0)
            attemptsBefore.append(0)
            wasSent.append(false)
            return
        }
        wasSent.append(row.attempts > 0 || row.state == .inDoubt || row.state == .unknown)
        var all = min(row.attempts, Self.attemptsLimit)
        var before = min(row.attemptsBefore, Self.attemptsLimit)
        if mayBeSent {
            all += 1
            before += 1
        } else if row.state.isSettled {
            before = all
        }
        attempts.append(all)
        attemptsBefore.append(min(all, before))
    }
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
    ///     states; nil if this run is the first. This run does not send rows that the process has
    ///     settled since then. Rows that the process reopened and left in doubt are sent again,
    ///     because the process did not send them.
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
            if let work = work(on: chunk) { return .chunk(work) }
        }
        return nil
    }

    /// Returns the work on the chunk whose verdicts are loaded; nil if it needs no work.
    private func work(on chunk: ChunkReservation) -> ChunkWork? {
        var work = ChunkWork(
            chunk: chunk, dispositions: [], attempts: [], sendCount: 0, unsentCount: 0)
        work.chunk.reopens = reopens
        work.dispositions.reserveCapacity(verdicts.rows.count)
        work.attempts.reserveCapacity(verdicts.rows.count)
        work.wasSent.reserveCapacity(verdicts.rows.count)
        work.attemptsBefore.reserveCapacity(verdicts.rows.count)
        for place in verdicts.rows.indices {
            let row = verdicts.rows[place]
            let disposition = disposition(of: row, number: chunk.firstRow + UInt64(place))
            // The process itself left some rows in doubt, and knows that it did not send them.
            let mayBeSent = row.state == .inDoubt && !isSinceReopening(row.reopeningEpoch)
            work.append(row, disposition, mayBeSent: mayBeSent)
        }
        assert(work.sendCount + work.unsentCount <= chunk.rowCount, "no more work than rows")
        assert(
            work.dispositions.count == chunk.rowCount && work.attempts.count == chunk.rowCount,
            "each row has its place in the plan")
        return work.sendCount + work.unsentCount > 0 ? work : nil
    }

    private func disposition(of row: RowVerdict, number: UInt64) -> RowDisposition {
        guard index.rows.selection.contains(number) else { return .settled }
        let isWithinLimit = number < index.rows.end
        // An erased device gets nothing more. Its token is still in the list, because a resume needs
        // the whole list.
        if row.isErased {
            switch row.state {
            case .remaining:
                return isWithinLimit ? .erased(mayHaveBeenSent: false) : .beyondLimit
            case .inDoubt: return .erased(mayHaveBeenSent: true)
            default: return .settled
            }
        }
        switch row.state {
        case .remaining: return isWithinLimit ? .send : .beyondLimit
        case .inDoubt:
            guard isWithinLimit else { return lostRows == .resend ? .settled : .becomesUnknown }
            return lostRows == .resend || reopens.contains(RowState.unknown)
                || isSinceReopening(row.reopeningEpoch)
                ? .sendAgain : .becomesUnknown
        default:
            guard isWithinLimit, reopens.contains(row.state), !isSinceReopening(row.settlingEpoch)
            else { return .settled }
            return mayHaveBeenSent(row) ? .sendAgain : .send
        }
    }

    /// Whether a run is one of the process's earlier runs that reopened states.
    private func isSinceReopening(_ run: UInt32) -> Bool {
        reopenedSince.map { run >= $0 } ?? false
    }

    /// Whether a reopened row may have been processed: a failed row, too, before it failed.
    private func mayHaveBeenSent(_ row: RowVerdict) -> Bool {
        row.state == .unknown || Reason(rawValue: row.reason)?.leavesDoubt == true
    }

    /// Keeps the verdicts of rows that the new reservation of a chunk reopens, although the run
    /// passes over them: they are beyond the limit, not due, settled by this process, or of
    /// erased devices.
    ///
    /// - Parameter chunk: Rows of the work that the latest call of `next` returned.
    public func keepVerdicts(of chunk: RowChunk) {
        guard !chunk.reopens.isEmpty, var dispositions = chunk.dispositions else { return }
        precondition(
            verdicts.firstRow == chunk.start.row && verdicts.rows.count == dispositions.count,
            "the chunk is the latest one")
        // Without another reference, the array is changed in place.
        chunk.dispositions = nil
        for place in dispositions.indices
        where dispositions[place].isPassedOver && chunk.reopens.contains(verdicts.rows[place].state)
        {
            dispositions[place] = .settled
            chunk.kept.append(verdicts.keptVerdict(ofRow: place))
        }
        chunk.dispositions = dispositions
        assert(chunk.kept.count <= chunk.rowCount, "each row has one verdict")
    }
}
