public import BroadsideRows

/// Location in a segment.
public struct LedgerLocation: Hashable, Sendable {
    /// File name of the segment.
    public var segment: String
    /// Byte offset in the segment.
    public var offset: UInt64
}

/// Length of a segment, as recorded in the manifest for a run that ended or was resumed.
public struct SegmentLength: Hashable, Codable, Sendable {
    /// Number of the reactor that wrote the segment.
    public var reactor: UInt16
    /// Offset of the end of the segment's last good block.
    public var byteCount: UInt64

    /// Creates a length.
    public init(reactor: UInt16, byteCount: UInt64) {
        self.reactor = reactor
        self.byteCount = byteCount
    }
}

/// Index of a ledger: for each chunk of the list, the location of its records.
///
/// The index lists the chunks in list order, the runs that reserved each chunk, and the ranges of
/// blocks with its records. It is built in two passes over all segments. It takes about 120 bytes
/// per chunk, however many rows the chunk has.
public struct LedgerIndex {
    /// Compact form of a chunk.
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

    /// Reservation of a chunk by a run.
    struct Reservation {
        var epoch: UInt32
        var reopens: ReopenedStates
    }

    /// Range of blocks in one segment that have records of one chunk, possibly among other records.
    struct Extent {
        var segment: UInt32
        /// Index of the chunk's next extent; -1 if there is none. A chunk's extents are ordered by
        /// epoch, reactor and offset.
        var next: Int32 = -1
        var start: UInt64
        var end: UInt64
        /// The segment's reference time at `start`, in milliseconds since 1970.
        var clock: UInt64
    }

    /// Maximum size of a gap in an extent, in bytes. A gap is a sequence of blocks without a record
    /// of the chunk. Up to this size, it is cheaper to read a gap than to begin another extent.
    static let extentGapByteCountMax: UInt64 = 65_536
    /// Maximum number of extents of a chunk in one segment. At this number, the last extent grows
    /// over any gap.
    static let extentsPerSegmentMax: UInt32 = 64

    var segments: [ValidatedSegment] = []
    var chunkTable: ContiguousArray<Chunk> = []
    var reservations: ContiguousArray<Reservation> = []
    var extents: ContiguousArray<Extent> = []

    /// Rows of the list that the campaign covers; a resumed run may have a different limit.
    public var rows: CampaignRows
    /// Rows whose devices were erased before a run settled them.
    public internal(set) var erasedRows = ErasedRows()
    /// For each segment that has bytes after its sound part: the end of that part. The bytes after
    /// it are not known to be synced. They remain from a kill or a power cut, and are not a fault.
    var tornTails: [LedgerLocation] = []

    /// Number of chunks.
    public var chunkCount: Int { chunkTable.count }

    /// Returns the chunk at an index, with empty `reopens`. Chunks are in list order and do not
    /// overlap.
    ///
    /// - Parameter index: Index from 0 to `chunkCount` - 1.
    public func chunk(_ index: Int) -> ChunkReservation {
        let chunk = chunkTable[index]
        return ChunkReservation(
            firstRow: chunk.firstRow, rowCount: Int(chunk.rowCount), byteOffset: chunk.byteOffset,
            byteCount: chunk.byteCount, firstLine: chunk.firstLine,
            lineCount: UInt64(chunk.lineCount), hash: chunk.hash)
    }

    /// Returns the index of the chunk that holds a row; nil if no run reserved the row.
    public func chunkIndex(ofRow row: UInt64) -> Int? {
        var low = 0
        var high = chunkTable.count
        while low < high {
            let middle = (low + high) / 2
            if chunkTable[middle].endRow <= row { low = middle + 1 } else { high = middle }
        }
        guard low < chunkTable.count, chunkTable[low].firstRow <= row else { return nil }
        assert(row < chunkTable[low].endRow, "the row is in the chunk that was found")
        return low
    }

    /// Returns the lengths of a run's segments up to their last good block, for the manifest.
    public func segmentLengths(epoch: UInt32) -> [SegmentLength] {
        segments.filter { $0.segment.epoch == epoch }.map {
            SegmentLength(reactor: $0.segment.reactor, byteCount: $0.soundByteCount)
        }
    }

    /// Reads all segments of a ledger.
    ///
    /// - Parameters:
    ///   - segments: All segments, in any order.
    ///   - campaign: The campaign that they must name.
    ///   - recordedLengths: Lengths of the segments of each run that ended or was resumed. Bytes
    ///     beyond a recorded length are not read; missing bytes are an error.
    ///   - headedRuns: Other runs whose segments certainly have their headers.
    ///   - rows: Rows that the campaign covers.
    /// - Throws: The first fault that makes the ledger unreadable as a whole.
    public init(
        segments: [LedgerSegment], campaign: UInt64,
        recordedLengths: [UInt32: [SegmentLength]] = [:], headedRuns: Set<UInt32> = [],
        rows: CampaignRows = CampaignRows()
    ) throws(LedgerError) {
        try LedgerIndex.checkPresence(segments, recordedLengths)
        try self.init(
            present: segments, campaign: campaign, recordedLengths: recordedLengths,
            headedRuns: headedRuns, rows: rows)
    }

    /// Reads segments of which none is missing.
    init(
        present segments: [LedgerSegment], campaign: UInt64,
        recordedLengths: [UInt32: [SegmentLength]], headedRuns: Set<UInt32>, rows: CampaignRows
    ) throws(LedgerError) {
        self.rows = rows
        var found: [LocatedReservation] = []
        var reader = BlockReader()
        let sorted = segments.sorted { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
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
