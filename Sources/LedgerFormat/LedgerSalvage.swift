public import BroadsideRows

/// What can be proven of a damaged ledger, and how it is written so that all else is in doubt.
///
/// A run whose segments may have lost a block may have lost a reservation, too: it may have sent any
/// row of which nothing says that it was settled for good. So it is given a reservation of each
/// chunk that it may have reserved. Replayed, such a row is in doubt, unless a verdict that is still
/// there settles it: the reader needs to know nothing of repairs.
///
///     segment, run 2     | good | lost | good |   -->   | good | good |      its records, written anew
///                                                       | reservations |     a segment of its own
public struct LedgerSalvage {
    /// Something that was lost.
    public struct Loss: Hashable, Sendable {
        /// The segment's file name.
        public var segment: String
        /// Where the bytes were; nil: all of the segment.
        public var bytes: Range<UInt64>?
    }

    /// A segment, as far as it is good.
    struct Segment {
        var segment: LedgerSegment
        var seed: UInt32
        /// Where it ends at most.
        var end: UInt64
        var losses: [Range<UInt64>] = []
        var isHeaderDamaged = false
        /// What it reserved, and where.
        var reservations: [(chunk: ChunkReservation, offset: UInt64)] = []

        var isWhole: Bool { losses.isEmpty && !isHeaderDamaged }
    }

    /// A run.
    struct Run {
        var number: UInt32
        var startedAtMilliseconds: UInt64
        /// Its segments and their lengths are known: it ended orderly, or another took it up.
        var isRecorded: Bool
        /// It reserved what it found open in list order.
        var isInListOrder: Bool
        var rowsLimit: UInt64?
        /// Indices of its segments.
        var segments: [Int] = []
        /// A segment is not there.
        var lacksSegment = false
    }

    /// A chunk, and the runs that are known to have reserved it.
    struct Chunk {
        var chunk: ChunkReservation
        var runs: [UInt32]
    }

    var segments: [Segment] = []
    var runs: [Run] = []
    var chunks: [Chunk] = []
    let rows: CampaignRows
    let manifest: Manifest
    /// What was on disk before rows were sent.
    private let durable: [DurablePosition]
    /// The row behind the last one that any record speaks of.
    var lastRowEnd: UInt64 = 0
    /// Whether the order in which runs reserve is relied on.
    public var reliesOnOrder = true

    /// What was lost.
    public private(set) var losses: [Loss] = []
    /// Segments of another campaign, or run, in the place of this one's.
    public private(set) var foreignSegments: [String] = []

    /// Whether nothing is lost.
    public var isSound: Bool { losses.isEmpty && foreignSegments.isEmpty }

    /// Reads all there is.
    ///
    /// - Parameters:
    ///   - given: the segments that are there.
    ///   - manifest: a manifest of the campaign; it may be older than the segments.
    ///   - durable: what was on disk before rows were sent, by the ledger's claim.
    /// - Throws: `unsupportedVersion`, `inputOutput`, and `changedChunk` if reservations contradict
    ///   each other, which no damage of a disk does.
    package init(
        _ given: [LedgerSegment], manifest: Manifest, durable: [DurablePosition] = []
    ) throws(LedgerError) {
        self.manifest = manifest
        self.durable = durable
        // Nobody knows how far each run looked: the campaign's own limit bounds none of them.
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
        // A claim may know of a run that the manifest does not, if the ledger is a copy from before it.
        for position in durable where !runs.contains(where: { $0.number == position.epoch }) {
            _ = addRun(position.epoch)
        }
        for run in runs.indices { findMissing(of: run, among: given) }
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
        // What was on disk and is cut off may have reserved rows that were sent.
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

    /// A run that the manifest does not know: it is older than the run's segments.
    private mutating func addRun(_ number: UInt32) -> Int {
        let index = runs.firstIndex { $0.number > number } ?? runs.count
        let before = index > 0 ? runs[index - 1].startedAtMilliseconds : 0
        runs.insert(
            Run(
                number: number,
                startedAtMilliseconds: max(before, manifest.firstStartedAtMilliseconds),
                isRecorded: false, isInListOrder: false),
            at: index)
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

    /// Whether something of a run was on disk before rows were sent.
    private func wasDurable(_ number: UInt32) -> Bool {
        durable.contains { $0.epoch == number }
    }

    /// Puts the reservations of all runs together.
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
        }
    }
}

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
                if chunks[index(of: chunk)].runs[0] < run.number { return chunk.reopens }
            }
        }
        return [.failed, .unknown]
    }

    /// Where a chunk that was reserved is in `chunks`.
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
        return low
    }

    /// The parts of the list of which no reservation is left, and that some run may have reserved:
    /// the list says where their rows are.
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
        for index in added.indices { added[index].reopens = reopens }
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
