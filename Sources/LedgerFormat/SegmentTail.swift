package import BroadsideRows

/// The progress of a follower in one segment, which may still grow.
///
///     0        32                 emitted              durable           scanned
///     | header | rows are written | rows come next     | a power cut may | not read yet
///     |        |                  |                    | lose it         |
package struct SegmentTail {
    /// Number of the run that writes the segment.
    package let epoch: UInt32
    /// Number of the reactor that writes the segment.
    package let reactor: UInt16
    /// Offset of the first block whose rows were not emitted.
    package private(set) var emitted: UInt64
    /// The segment's clock at `emitted`; nil until `scan` finds a block that begins there.
    private var emittedClock: UInt64?
    /// Offset of the first block that was not scanned, and the segment's clock there.
    package private(set) var scanned: UInt64
    private var scannedClock: UInt64 = 0
    /// Number of bytes, from the start of the segment, that survive a power cut.
    package private(set) var durable: UInt64 = 0
    /// Offset before which rows may be emitted.
    private var released: UInt64 = 0
    private var headerIsChecked = false

    /// Creates the progress of a follower that has not scanned the segment yet.
    ///
    /// - Parameter emitted: Offset of the first block whose rows are wanted; nil: the segment's
    ///   first block.
    package init(epoch: UInt32, reactor: UInt16, emitted: UInt64? = nil) {
        self.epoch = epoch
        self.reactor = reactor
        let start = UInt64(LedgerFormat.segmentHeaderByteCount)
        self.emitted = max(start, emitted ?? start)
        scanned = start
    }

    /// File name of the segment.
    package var name: String { LedgerFormat.segmentName(epoch: epoch, reactor: reactor) }

    /// Whether a block begins at `emitted`. Valid after a scan.
    package var isAtBlock: Bool { emittedClock != nil }

    /// Whether there may be released rows that were not emitted.
    package var hasRows: Bool { emitted < released }

    /// Permits the emission of the rows that were scanned so far and survive a power cut.
    ///
    /// Between this call and the emission, the caller must scan each segment once more. A row's
    /// reservation may be in another segment, and may have been appended after the last scan of
    /// that segment.
    package mutating func release() {
        assert(released <= min(durable, scanned), "released rows stay durable")
        released = min(durable, scanned)
    }

    /// Records that the first `byteCount` bytes of the segment survive a power cut.
    package mutating func noteDurable(_ byteCount: UInt64) { durable = max(durable, byteCount) }

    /// Records that the segment was synced after its last scan.
    package mutating func noteSynced() { noteDurable(scanned) }

    /// Reads the blocks that were appended since the last scan.
    ///
    /// Stops at an incomplete block, which is being written or remains from a kill.
    ///
    /// - Parameters:
    ///   - segment: The segment in its current state.
    ///   - end: Its recorded or current length.
    ///   - campaign: The campaign that it must name.
    ///   - reader: A reader whose buffer is used.
    ///   - note: Receives each reservation.
    package mutating func scan(
        _ segment: LedgerSegment, upTo end: UInt64, campaign: UInt64,
        with reader: inout BlockReader, _ note: (ChunkReservation) -> Void
    ) throws(LedgerError) {
        guard end > UInt64(LedgerFormat.segmentHeaderByteCount) else {
            if emitted == scanned { emittedClock = scannedClock }
            return
        }
        let expected = LedgerFormat.segmentHeader(
            campaign: campaign, epoch: epoch, reactor: reactor)
        reader.open(segment, seed: UInt32(expected.3 >> 32), range: 0..<end, clock: 0)
        if !headerIsChecked {
            guard try ValidatedSegment.checkHeader(segment, expected, &reader) else { return }
            headerIsChecked = true
        }
        reader.seek(to: scanned, end: end, clock: scannedClock)
        while true {
            if reader.position == emitted { emittedClock = reader.clock }
            guard case .block = try reader.nextBlock() else { break }
            reader.skipAccepted()
            while let record = try reader.nextRecord() {
                if case .reserve(let chunk) = record { note(chunk) }
                reader.skipAccepted()
            }
            scanned = reader.position
            scannedClock = reader.clock
        }
        noteDurable(min(reader.latestSyncedPosition, scanned))
        assert(scanned <= end, "no bytes beyond the end are scanned")
    }

    /// Emits the records of released blocks, whole blocks only.
    ///
    /// - Parameters:
    ///   - segment: The segment in its current state.
    ///   - campaign: The campaign that it names.
    ///   - limit: Number of records; emission stops after the block that reaches it.
    ///   - reader: A reader whose buffer is used.
    ///   - take: Receives each record, with the reader positioned on it.
    /// - Returns: Whether a block was emitted.
    package mutating func emit(
        _ segment: LedgerSegment, campaign: UInt64, atMost limit: Int,
        with reader: inout BlockReader,
        _ take: (borrowing BlockReader, LedgerRecord) -> Void
    ) throws(LedgerError) -> Bool {
        guard hasRows, let clock = emittedClock else { return false }
        let expected = LedgerFormat.segmentHeader(
            campaign: campaign, epoch: epoch, reactor: reactor)
        reader.open(
            segment, seed: UInt32(expected.3 >> 32), range: emitted..<scanned, clock: clock)
        let before = emitted
        var count = 0
        while count < limit {
            switch try reader.nextBlock() {
            case .end: return emitted > before
            case .bad: throw reader.changedFault
            case .block: break
            }
            guard reader.position <= released else { return emitted > before }
            while let record = try reader.nextRecord() {
                count += 1
                take(reader, record)
            }
            emitted = reader.position
            emittedClock = reader.clock
            assert(emitted <= scanned, "only scanned blocks are emitted")
        }
        return true
    }

    /// Returns the fault of the segment if its sound part is shorter than its durable length;
    /// otherwise nil.
    ///
    /// - Parameter byteCount: Size of the file in bytes.
    package func damage(byteCount: UInt64) -> LedgerError? {
        guard durable > scanned else { return nil }
        return LedgerError(
            byteCount < durable ? .missingTail : .damagedBlock, segment: name, offset: scanned)
    }
}
