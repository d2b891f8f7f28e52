public import BroadsideRows

/// A place in a segment.
public struct LedgerLocation: Hashable, Sendable {
    /// The segment's file name.
    public var segment: String
    /// Byte offset in it.
    public var offset: UInt64
}

/// The length of a segment, as the manifest keeps it for a run that ended or was taken up again.
public struct SegmentLength: Hashable, Codable, Sendable {
    /// The reactor that wrote it.
    public var reactor: UInt16
    /// Bytes up to the end of its last good block.
    public var byteCount: UInt64

    /// Notes a length.
    public init(reactor: UInt16, byteCount: UInt64) {
        self.reactor = reactor
        self.byteCount = byteCount
    }
}

/// Where everything about each chunk of the list stands in a ledger.
///
/// It is made in two passes over all segments, and holds about 120 bytes a chunk, whatever the
/// number of rows: chunks in list order, the runs that reserved each, and the ranges of blocks that
/// speak of it.
public struct LedgerIndex {
    /// A chunk, in the fewest bytes.
    struct Chunk {
        var firstRow: UInt64
        var byteOffset: UInt64
        var byteCount: UInt64
        var firstLine: UInt64
        var hash: UInt64
        var rowCount: UInt32
        var lineCount: UInt32
        var firstReservation: UInt32
        var reservationCount: UInt32
        var firstExtent: Int32 = -1
        var lastExtent: Int32 = -1
        var extentCount: UInt32 = 0

        var endRow: UInt64 { firstRow + UInt64(rowCount) }
    }

    /// That a run reserved a chunk.
    struct Reservation {
        var epoch: UInt32
        var reopens: ReopenedStates
    }

    /// A range of blocks of one segment, among whose records are some of a chunk.
    struct Extent {
        var segment: UInt32
        /// The chunk's next extent, -1 for none. They follow each other by epoch, reactor and
        /// offset.
        var next: Int32 = -1
        var start: UInt64
        var end: UInt64
        /// The segment's clock at `start`.
        var clock: UInt64
    }

    /// Blocks of other chunks that lie between two of a chunk are read over rather than indexed.
    static let extentGapByteCountMax: UInt64 = 65_536
    /// From so many ranges in one segment on, the last one is extended over whatever lies between.
    static let extentsPerSegmentMax: UInt32 = 64

    var segments: [ValidatedSegment] = []
    var chunkTable: ContiguousArray<Chunk> = []
    var reservations: ContiguousArray<Reservation> = []
    var extents: ContiguousArray<Extent> = []

    /// Which rows of the list the run is about; a run that takes the ledger up may have another
    /// limit.
    public var rows: CampaignRows
    /// Places behind which segments hold nothing that was ever known to be synced: what a kill or a
    /// power cut left behind. No fault.
    var tornTails: [LedgerLocation] = []

    /// The number of chunks.
    public var chunkCount: Int { chunkTable.count }

    /// The chunk at an index; they stand in list order and do not overlap. `reopens` is empty.
    ///
    /// - Parameter index: 0 to `chunkCount` - 1.
    public func chunk(_ index: Int) -> ChunkReservation {
        let chunk = chunkTable[index]
        return ChunkReservation(
            firstRow: chunk.firstRow, rowCount: Int(chunk.rowCount), byteOffset: chunk.byteOffset,
            byteCount: chunk.byteCount, firstLine: chunk.firstLine,
            lineCount: UInt64(chunk.lineCount), hash: chunk.hash)
    }

    /// The index of the chunk that holds a row; nil if no run reserved it.
    public func chunkIndex(ofRow row: UInt64) -> Int? {
        var low = 0
        var high = chunkTable.count
        while low < high {
            let middle = (low + high) / 2
            if chunkTable[middle].endRow <= row { low = middle + 1 } else { high = middle }
        }
        guard low < chunkTable.count, chunkTable[low].firstRow <= row else { return nil }
        assert(row < chunkTable[low].endRow, "the chunk that was found holds the row")
        return low
    }

    /// Lengths of a run's segments up to their last good block, for the manifest.
    public func segmentLengths(epoch: UInt32) -> [SegmentLength] {
        segments.filter { $0.segment.epoch == epoch }.map {
            SegmentLength(reactor: $0.segment.reactor, byteCount: $0.soundByteCount)
        }
    }

    /// Reads all segments of a ledger.
    ///
    /// - Parameters:
    ///   - segments: all there are, in any order.
    ///   - campaign: the campaign they must name.
    ///   - recordedLengths: for each run that ended or was taken up again, its segments' lengths;
    ///     what lies behind is not read, and what is missing is an error.
    ///   - headedRuns: runs that did neither, and whose segments have their headers for sure.
    ///   - rows: the rows the run is about.
    /// - Throws: the first fault that makes the ledger unreadable as a whole.
    public init(
        segments: [LedgerSegment], campaign: UInt64,
        recordedLengths: [UInt32: [SegmentLength]] = [:], headedRuns: Set<UInt32> = [],
        rows: CampaignRows = CampaignRows()
    ) throws(LedgerError) {
        self.rows = rows
        var found: [LocatedReservation] = []
        var reader = BlockReader()
        let sorted = segments.sorted { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
        try LedgerIndex.checkPresence(sorted, recordedLengths)
        for (index, segment) in sorted.enumerated() {
            let recorded = recordedLengths[segment.epoch].map { lengths in
                lengths.first { $0.reactor == segment.reactor }?.byteCount ?? 0
            }
            let sound = try ValidatedSegment(
                checking: segment, campaign: campaign, recordedByteCount: recorded,
                hasHeader: headedRuns.contains(segment.epoch), skipsAccepted: true, with: &reader
            ) { reader, record in
                guard case .reserve(let chunk) = record else { return }
                found.append(
                    LocatedReservation(
                        chunk: chunk, segment: UInt32(index), offset: reader.recordPosition))
            }
            self.segments.append(sound)
            if sound.isTorn {
                tornTails.append(
                    LedgerLocation(segment: segment.name, offset: sound.soundByteCount))
            }
        }
        try tabulate(&found)
        found = []
        assert(
            chunkTable.reduce(0) { $0 + Int($1.reservationCount) } == reservations.count,
            "each reservation is a chunk's")
        for index in self.segments.indices { try collectExtents(ofSegment: index, with: &reader) }
    }
}
