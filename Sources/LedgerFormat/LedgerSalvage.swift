public import BroadsideRows

/// Recovery of a damaged ledger. It keeps all verdicts that are proven. Rows without a proven
/// verdict are in doubt if they may have been sent.
///
/// A lost block may have contained a reservation. So if a run's segments may lack a block, the run
/// may have sent any row without a final verdict. Therefore the repaired ledger gets a reservation
/// for each chunk that the run may have reserved. In a replay, a row of such a chunk is in doubt
/// unless a surviving verdict settles it. So readers need no special case for repaired ledgers.
///
///     segment, run 2     | good | lost | good |   -->   | good | good |  its records, rewritten
///                                                       | reservations |  a segment of its own
public struct LedgerSalvage {
    /// Lost bytes.
    public struct Loss: Hashable, Sendable {
        /// File name of the segment.
        public var segment: String
        /// The lost range; nil for the whole segment.
        public var bytes: Range<UInt64>?
    }

    /// A segment with its good blocks.
    struct Segment {
        var segment: LedgerSegment
        var seed: UInt32
        /// Upper bound of the segment's end.
        var end: UInt64
        var losses: [Range<UInt64>] = []
        var isHeaderDamaged = false
        /// Reservations in the segment, with their offsets.
        var reservations: [(chunk: ChunkReservation, offset: UInt64)] = []

        var isWhole: Bool { losses.isEmpty && !isHeaderDamaged }
    }

    /// A run of the campaign, and what is known about its segments.
    struct Run {
        var number: UInt32
        var startedAtMilliseconds: UInt64
        /// Whether the run's segments and their lengths are recorded. They are if the run ended
        /// orderly or was resumed.
        var isRecorded: Bool
        /// Whether the run reserved open rows in list order.
        var isInListOrder: Bool
        var rowsLimit: UInt64?
        /// Indices of the run's segments.
        var segments: [Int] = []
        /// Whether a segment is missing.
        var lacksSegment = false
    }

    /// Chunk with the runs that are known to have reserved it.
    struct Chunk {
        var chunk: ChunkReservation
        var runs: [UInt32]
    }

    var segments: [Segment] = []
    var runs: [Run] = []
    var chunks: [Chunk] = []
    let rows: CampaignRows
    let manifest: Manifest
    /// Positions that were durable before rows were sent.
    private let durable: [DurablePosition]
    /// Number after the highest row number that any record names.
    var lastRowEnd: UInt64 = 0
    /// Whether to rely on the order of a run's reservations.
    public var reliesOnOrder = true

    /// Losses found.
    public private(set) var losses: [Loss] = []
    /// File names of segments that are named like this ledger's segments, but belong to another
    /// campaign or run.
    public private(set) var foreignSegments: [String] = []

    /// Whether nothing is lost.
    public var isSound: Bool { losses.isEmpty && foreignSegments.isEmpty && !lacksPositions }

    /// Whether a run's end is unknown because its claim lost the position of a segment.
    private var lacksPositions = false

    /// Reads all segments.
    ///
    /// - Parameters:
    ///   - given: The existing segments.
    ///   - manifest: A manifest of the campaign; it may be older than the segments.
    ///   - durable: Positions that were durable before rows were sent, from the ledger's claim.
    ///   - hasAllPositions: Whether the claim is undamaged, so that `durable` lacks only segments
    ///     without rows that were sent.
    /// - Throws: `unsupportedVersion`, `inputOutput`, and `changedChunk` if reservations contradict
    ///   each other. No damage of a disk causes such a contradiction.
    package init(
        _ given: [LedgerSegment], manifest: Manifest, durable: [DurablePosition] = [],
        hasAllPositions: Bool = true
    ) throws(LedgerError) {
        self.manifest = manifest
        self.durable = durable
        // The campaign's own limit does not apply to runs, because it is unknown how far each run
        // read.
        rows = CampaignRows(part: manifest.rows.part, selection: manifest.rows.selection)
        let isOnlyRun = manifest.epochs.count == 1
        for epoch in manifest.epochs {
            let hadNoCanary =
                isOnlyRun && !manifest.canaryPassed && manifest.canaryRowCount == nil
            runs.append(
                Run(
                    number: epoch.number, startedAtMilliseconds: epoch.startedAtMilliseconds,
                    isRecorded: epoch.segments != nil
                        || epoch.hasReservedNothing && !wasDurable(epoch.number),
                    isInListOrder: epoch.isInListOrder ?? hadNoCanary,
                    rowsLimit: epoch.rowsLimit
                        ?? (isOnlyRun && epoch.segments != nil ? manifest.rowsLimit : nil)))
        }
        var reader = BlockReader()
        for segment in given.sorted(by: { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }) {
            try add(segment, &reader)
        }
        // A claim may name a run that the manifest lacks, if the ledger is an older copy.
        for position in durable where !runs.contains(where: { $0.number == position.epoch }) {
            _ = addRun(position.epoch)
        }
        for run in runs.indices { findMissing(of: run, among: given) }
        lacksPositions =
            !hasAllPositions
            && runs.contains { run in
                !run.isRecorded
                    && run.segments.contains { index in
                        let segment = segments[index].segment
                        return !durable.contains {
                            $0.epoch == segment.epoch && $0.reactor == segment.reactor
                        }
                    }
            }
        try tabulate()
    }

    private mutating func add(
        _ segment: LedgerSegment, _ reader: inout BlockReader
    ) throws(LedgerError) {
        let expected = LedgerFormat.segmentHeader(
            campaign: manifest.segmentNumber, epoch: segment.epoch, reactor: segment.reactor)
        let lengths = manifest.recordedLengths[segment.epoch]
        let durable = durable.first {
            $0.epoch == segment.epoch && $0.reactor == segment.reactor
        }
        let epoch = manifest.epochs.first { $0.number == segment.epoch }
        let isEmpty = durable == nil && epoch?.hasReservedNothing == true
        let recorded =
            isEmpty
            ? 0
            : lengths.map { lengths in
                lengths.first { $0.reactor == segment.reactor }?.byteCount ?? 0
            }
        let available = segment.bytes.byteCount
        var found = Segment(
            segment: segment, seed: UInt32(expected.3 >> 32),
            end: min(available, recorded ?? available))
        if recorded == 0, durable == nil { return }
        reader.open(segment, seed: found.seed, range: 0..<available, clock: 0)
        do throws(LedgerError) {
            found.isHeaderDamaged = try !ValidatedSegment.checkHeader(segment, expected, &reader)
        } catch {
            guard error.code == .badSegmentHeader else { throw error }
            foreignSegments.append(segment.name)
            return
        }
        var reservations: [(chunk: ChunkReservation, offset: UInt64)] = []
        var lastRowEnd = lastRowEnd
        found.losses = try reader.salvage(segment, seed: found.seed, end: found.end) {
            reader, record in
            lastRowEnd = max(lastRowEnd, record.rows.upperBound)
            guard case .reserve(let chunk) = record else { return }
            reservations.append((chunk, reader.recordPosition))
        }
        self.lastRowEnd = lastRowEnd
        found.reservations = reservations
        // The bytes that were durable and are cut off may have had reservations of rows that were
        // sent.
        let known = max(recorded ?? 0, durable?.position ?? 0)
        if found.end < known { found.losses.append(found.end..<known) }
        if found.isHeaderDamaged {
            let header = 0..<UInt64(LedgerFormat.segmentHeaderByteCount)
            losses.append(Loss(segment: segment.name, bytes: header))
        }
        losses += found.losses.map { Loss(segment: segment.name, bytes: $0) }
        let run = runs.firstIndex { $0.number == segment.epoch } ?? addRun(segment.epoch)
        runs[run].segments.append(segments.count)
        segments.append(found)
    }

    /// Adds a run that is missing in the manifest because the manifest is older than the run.
    private mutating func addRun(_ number: UInt32) -> Int {
        let index = runs.firstIndex { $0.number > number } ?? runs.count
        let before = index > 0 ? runs[index - 1].startedAtMilliseconds : 0
        runs.insert(
            Run(
                number: number,
                startedAtMilliseconds: max(before, manifest.firstStartedAtMilliseconds),
                isRecorded: false, isInListOrder: false),
            at: index)
        assert(
            zip(runs, runs.dropFirst()).allSatisfy { $0.number < $1.number },
            "runs are in the order of their numbers")
        losses.append(Loss(segment: "manifest.json: run \(number)", bytes: nil))
        return index
    }

    private mutating func findMissing(of run: Int, among given: [LedgerSegment]) {
        let number = runs[run].number
        let there = Set(runs[run].segments.map { segments[$0].segment.reactor })
        var wanted = (manifest.recordedLengths[number] ?? []).filter { $0.byteCount > 0 }
            .map(\.reactor)
        let epoch = manifest.epochs.first { $0.number == number }
        wanted += epoch?.missingReactors(among: given) ?? []
        wanted += durable.filter { $0.epoch == number }.map(\.reactor)
        // Reactors are numbered from 0 without gaps.
        if !runs[run].isRecorded, let last = there.max() { wanted += 0..<last }
        for reactor in Set(wanted).subtracting(there).sorted() {
            runs[run].lacksSegment = true
            losses.append(
                Loss(segment: LedgerFormat.segmentName(epoch: number, reactor: reactor), bytes: nil)
            )
        }
    }

    /// Whether bytes of a run were durable before rows were sent.
    private func wasDurable(_ number: UInt32) -> Bool {
        durable.contains { $0.epoch == number }
    }

    /// Collects the reservations of all runs by chunk.
    private mutating func tabulate() throws(LedgerError) {
        var found: [(chunk: ChunkReservation, run: UInt32)] = []
        for segment in segments {
            found += segment.reservations.map { ($0.chunk, segment.segment.epoch) }
        }
        found.sort { ($0.chunk.firstRow, $0.run) < ($1.chunk.firstRow, $1.run) }
        for (chunk, run) in found {
            guard let last = chunks.last, last.chunk.rows.upperBound > chunk.firstRow else {
                guard chunk.follows(chunks.last?.chunk, within: rows.part) else {
                    throw LedgerError(.changedChunk, detail: "row \(chunk.firstRow)")
                }
                chunks.append(Chunk(chunk: chunk, runs: [run]))
                continue
            }
            guard chunk.hasSameBounds(as: last.chunk), !last.runs.contains(run) else {
                throw LedgerError(.changedChunk, detail: "row \(chunk.firstRow)")
            }
            chunks[chunks.count - 1].runs.append(run)
            if chunk.hash == ChunkReservation.unknownHash {
                chunks[chunks.count - 1].chunk.hash = chunk.hash
            }
        }
    }
}

extension LedgerSalvage {
    /// Whether reservations of a run may be lost.
    func mayLackReservations(_ run: Run) -> Bool {
        if isSound { return false }
        // If a run did not end orderly, the end of its segments is unknown, and losses elsewhere
        // show that this disk or copy loses data.
        return !run.isRecorded || run.lacksSegment
            || run.segments.contains { !segments[$0].losses.isEmpty }
    }

    /// Returns the rows that a run may have reserved in reservations that are now lost. These rows
    /// may be beyond the run's row limit. The limit applies only to chunks that the run created
    /// itself. The run may also have resumed chunks of earlier runs, and these chunks may reach
    /// beyond the limit.
    private func doubtfulRows(of run: Run) -> [Range<UInt64>] {
        let end = rows.part.endRow ?? .max
        let all = min(rows.part.firstRow, end)..<end
        guard reliesOnOrder, run.isInListOrder, run.isRecorded, !run.lacksSegment else {
            return [all]
        }
        // Each segment's reservations are in list order. So the rows of lost reservations are
        // between the last reservation before the loss and the first one after it.
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

    /// Returns the rows of `doubtfulRows` that are below the run's row limit. Only these rows can
    /// be in chunks that the run created itself.
    private func doubtfulNewRows(of run: Run) -> [Range<UInt64>] {
        let limit = run.rowsLimit ?? .max
        return doubtfulRows(of: run).map { $0.clamped(to: 0..<limit) }.filter { !$0.isEmpty }
    }

    /// Returns the states that a run may have reopened in a chunk whose reservation is lost.
    ///
    /// A run reopens the same states in all chunks that earlier runs reserved. There is one
    /// exception: if rows are sent at their local time, a process has several runs, and a later one
    /// reopens nothing in the chunks that the process has already reserved. So a surviving
    /// reservation that reopens nothing then does not show what the lost ones reopened.
    private func reopens(of run: Run) -> ReopenedStates {
        guard run.number != runs.first?.number else { return [] }
        var known: ReopenedStates?
        for segment in run.segments {
            for (chunk, _) in segments[segment].reservations
            where !chunk.reopens.isEmpty || chunks[index(of: chunk)].runs[0] < run.number {
                known = (known ?? []).union(chunk.reopens)
            }
        }
        guard let known, !known.isEmpty || !manifest.identity.sendsAtLocalTime else {
            return [.failed, .unknown]
        }
        return known
    }

    /// Returns the index in `chunks` of a reserved chunk.
    private func index(of chunk: ChunkReservation) -> Int {
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
        assert(chunks[low].chunk.firstRow == chunk.firstRow, "a chunk that was read is known")
        return low
    }

    /// Ranges of the list that a run may have reserved, but for which no reservation survives. The
    /// list is needed to locate their rows.
    public var gaps: [ListExtent] {
        let ranges = runs.filter(mayLackReservations).flatMap(doubtfulNewRows)
        guard !ranges.isEmpty else { return [] }
        var gaps: [ListExtent] = []
        for index in 0...chunks.count {
            let previous = index > 0 ? chunks[index - 1].chunk : nil
            let next = index < chunks.count ? chunks[index].chunk : nil
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
        assert(
            zip(gaps, gaps.dropFirst()).allSatisfy { $0.endRow ?? .max <= $1.firstRow },
            "gaps are in the list's order")
        return gaps
    }

    /// Returns the reservations to add to a run, in list order.
    ///
    /// - Parameter gapChunks: The rows in `gaps`, divided into chunks.
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
        for index in added.indices { added[index].reopens = reopens }
        added.sort { $0.firstRow < $1.firstRow }
        assert(
            zip(added, added.dropFirst()).allSatisfy { $0.rows.upperBound <= $1.firstRow },
            "a run reserves a row once")
        return added
    }
}

extension LedgerSalvage {
    /// Number in the headers of the ledger's segments.
    public var segmentNumber: UInt64 { manifest.segmentNumber }

    /// Whether the ledger's records have tokens and fingerprints.
    public var keepsTokens: Bool { manifest.identity.keepsTokens }

    /// Returns the start time of a run.
    public func startMilliseconds(of number: UInt32) -> UInt64 {
        runs.first { $0.number == number }?.startedAtMilliseconds ?? 0
    }

    /// All chunks with a surviving reservation, in list order.
    public var knownChunks: [ChunkReservation] { chunks.map(\.chunk) }

    /// Whether rows are reports of a feedback service. Such a ledger has no list, and nothing was
    /// sent.
    public var isOfFeedback: Bool {
        manifest.identity.wireProtocol == CampaignIdentity.feedbackProtocol
    }

    /// Whether the only row is a broadcast. Such a ledger has no list.
    public var isOfBroadcast: Bool { manifest.identity.isBroadcast }

    /// Divides gaps in reports of a feedback service into chunks, up to the last known row.
    public func feedbackChunks(in gaps: [ListExtent]) -> [ChunkReservation] {
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
