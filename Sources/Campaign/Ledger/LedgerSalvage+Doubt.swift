extension LedgerSalvage {
    /// Whether a run may have made reservations that are lost.
    func mayLackReservations(_ run: Run) -> Bool {
        if isSound { return false }
        // Of a run that did not end orderly nobody knows where its segments ended: what was found
        // elsewhere says that this disk, or this copy of it, loses things.
        return !run.isRecorded || run.lacksSegment
            || run.segments.contains { !segments[$0].losses.isEmpty }
    }

    /// The rows that lost reservations of a run may have covered. Its limit bounds what it cut of the
    /// list itself, not the chunks of earlier runs that it took up: those may reach beyond.
    private func doubtfulRows(of run: Run) -> [Range<UInt64>] {
        let end = rows.part.endRow ?? .max
        let all = min(rows.part.firstRow, end)..<end
        guard reliesOnOrder, run.isInListOrder, run.isRecorded, !run.lacksSegment else {
            return [all]
        }
        // Each segment's reservations are in list order: those that were lost lie between the
        // last one before the loss and the first one behind it.
        var ranges: [Range<UInt64>] = []
        for segment in run.segments.map({ segments[$0] }) {
            for loss in segment.losses {
                let before = segment.reservations.last { $0.offset < loss.lowerBound }
                let behind = segment.reservations.first { $0.offset >= loss.upperBound }
                let first = max(all.lowerBound, before?.chunk.rows.upperBound ?? 0)
                let last = min(all.upperBound, behind?.chunk.firstRow ?? .max)
                if first < last { ranges.append(first..<last) }
            }
        }
        return ranges
    }

    /// The rows of which a run may have been the first to reserve them, and has lost that.
    private func doubtfulNewRows(of run: Run) -> [Range<UInt64>] {
        let limit = run.rowsLimit ?? .max
        return doubtfulRows(of: run).map { $0.clamped(to: 0..<limit) }.filter { !$0.isEmpty }
    }

    /// States that a run may have opened again.
    private func reopens(of run: Run) -> ReopenedStates {
        guard run.number != runs.first?.number else { return [] }
        // A run opens the same states in all chunks that earlier runs had reserved.
        for segment in run.segments {
            for (chunk, _) in segments[segment].reservations {
                if chunks[place(of: chunk)].runs[0] < run.number { return chunk.reopens }
            }
        }
        return [.failed, .unknown]
    }

    /// Where a chunk that was reserved is in `chunks`.
    private func place(of chunk: ChunkReservation) -> Int {
        var low = 0
        var high = chunks.count - 1
        while low < high {
            let middle = (low + high) / 2
            if chunks[middle].chunk.firstRow < chunk.firstRow {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// The parts of the list of which no reservation is left, and that some run may have reserved:
    /// the list says where their rows are.
    public var gaps: [ListGap] {
        let ranges = runs.filter(mayLackReservations).flatMap(doubtfulNewRows)
        guard !ranges.isEmpty else { return [] }
        var gaps: [ListGap] = []
        for place in 0...chunks.count {
            let previous = place > 0 ? chunks[place - 1].chunk : nil
            let next = place < chunks.count ? chunks[place].chunk : nil
            guard var gap = rows.open(after: previous, before: next) else { continue }
            if gap.endRow == nil, let rowCount = manifest.rowCount, manifest.rowsLimit == nil {
                // The list is known to end here.
                if rowCount <= gap.firstRow { continue }
            }
            let touching = ranges.filter {
                $0.upperBound > gap.firstRow && $0.lowerBound < gap.endRow ?? .max
            }
            guard let end = touching.map(\.upperBound).max() else { continue }
            if end < gap.endRow ?? .max { gap.endRow = end }
            gaps.append(gap)
        }
        return gaps
    }

    /// What a run is given to have reserved, in list order.
    ///
    /// - Parameter gapChunks: the rows in `gaps`, cut into chunks.
    func addedReservations(
        to run: Run, gapChunks: [ChunkReservation]
    ) -> [ChunkReservation] {
        guard mayLackReservations(run) else { return [] }
        let ranges = doubtfulRows(of: run)
        let reopens = reopens(of: run)
        func isDoubtful(_ chunk: ChunkReservation) -> Bool {
            ranges.contains { $0.overlaps(chunk.rows) }
        }
        var added: [ChunkReservation] = []
        for known in chunks where !known.runs.contains(run.number) && isDoubtful(known.chunk) {
            added.append(known.chunk)
        }
        added += gapChunks.filter(isDoubtful)
        for place in added.indices { added[place].reopens = reopens }
        return added.sorted { $0.firstRow < $1.firstRow }
    }
}

extension LedgerSalvage {
    /// The number in the headers of the ledger's segments.
    public var segmentNumber: UInt64 { manifest.segmentNumber }

    /// When a run began.
    public func startMilliseconds(of number: UInt32) -> UInt64 {
        runs.first { $0.number == number }?.startedAtMilliseconds ?? 0
    }

    /// Every chunk of which a reservation is left, in list order.
    public var knownChunks: [ChunkReservation] { chunks.map(\.chunk) }

    /// Whether the rows are what a feedback service said: there is no list, and nothing is sent.
    public var isOfFeedback: Bool {
        manifest.identity.wireProtocol == CampaignIdentity.feedbackProtocol
    }

    /// Chunks of such rows, as far as any are known.
    public func feedbackChunks(in gaps: [ListGap]) -> [ChunkReservation] {
        var chunks: [ChunkReservation] = []
        for gap in gaps {
            var row = gap.firstRow
            let end = gap.endRow ?? max(manifest.rowCount ?? 0, lastRowEnd)
            while row < end {
                let count = Int(min(end - row, UInt64(LedgerFormat.rowsPerChunkMax)))
                chunks.append(
                    ChunkReservation(
                        firstRow: row, rowCount: count, byteOffset: gap.byteOffset, byteCount: 0,
                        firstLine: row + 1, lineCount: UInt64(count), hash: 0))
                row += UInt64(count)
            }
        }
        return chunks
    }
}
