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
        let place = runs.firstIndex { $0.number > number } ?? runs.count
        let before = place > 0 ? runs[place - 1].startedAtMilliseconds : 0
        runs.insert(
            Run(
                number: number,
                startedAtMilliseconds: max(before, manifest.firstStartedAtMilliseconds),
                isRecorded: false, isInListOrder: false),
            at: place)
        losses.append(Loss(segment: "manifest.json: run \(number)", bytes: nil))
        return place
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
