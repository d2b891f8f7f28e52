package import BroadsideRows

/// How far a follower has read one segment, which may still grow.
///
///     0        32                 emitted              durable           scanned
///     | header | rows are written | rows come next     | a power cut may | not read yet
///     |        |                  |                    | lose it         |
package struct SegmentTail {
    /// The run that writes the segment.
    package let epoch: UInt32
    /// The reactor that writes it.
    package let reactor: UInt16
    /// Where the first block begins whose rows were not emitted.
    package private(set) var emitted: UInt64
    /// The segment's clock there; nil until `scan` has found a block that begins there.
    private var emittedClock: UInt64?
    /// Where the first block begins that was not scanned, and the segment's clock there.
    package private(set) var scanned: UInt64
    private var scannedClock: UInt64 = 0
    /// Bytes from the start that survive a power cut.
    package private(set) var durable: UInt64 = 0
    private var headerIsChecked = false

    /// Begins with the first block.
    ///
    /// - Parameter emitted: Where the first block begins whose rows are wanted; nil: the first of all.
    package init(epoch: UInt32, reactor: UInt16, emitted: UInt64? = nil) {
        self.epoch = epoch
        self.reactor = reactor
        let start = UInt64(LedgerFormat.segmentHeaderByteCount)
        self.emitted = max(start, emitted ?? start)
        scanned = start
    }

    /// The segment's file name.
    package var name: String { LedgerFormat.segmentName(epoch: epoch, reactor: reactor) }

    /// Whether a block begins at `emitted`. Ask after a scan.
    package var isAtBlock: Bool { emittedClock != nil }

    /// Whether there may be durable rows that were not emitted.
    package var hasRows: Bool { emitted < min(durable, scanned) }

    /// Notes that so many bytes from the start survive a power cut.
    package mutating func noteDurable(_ byteCount: UInt64) { durable = max(durable, byteCount) }

    /// Notes that the segment was synced after its last scan.
    package mutating func noteSynced() { noteDurable(scanned) }

    /// Reads the blocks that were appended since the last scan.
    ///
    /// Stops at a block that is not whole: it is being written, or a kill has left it.
    ///
    /// - Parameters:
    ///   - segment: The segment as it is now.
    ///   - end: Its recorded length, or what it has now.
    ///   - campaign: The campaign that it must name.
    ///   - reader: Lends its buffer.
    ///   - note: Gets each reservation.
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
        assert(scanned <= end, "only what is there is scanned")
    }

    /// Emits the records of durable blocks, whole blocks only.
    ///
    /// - Parameters:
    ///   - segment: The segment as it is now.
    ///   - campaign: The campaign that it names.
    ///   - limit: Ends behind the block that reaches so many records.
    ///   - reader: Lends its buffer.
    ///   - take: Gets each record, with the reader standing on it.
    /// - Returns: Whether there was a block.
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
            guard reader.position <= durable else { return emitted > before }
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

    /// What is wrong with the segment if more of it is known to have been durable than is sound; nil:
    /// nothing.
    ///
    /// - Parameter byteCount: What the file has.
    package func damage(byteCount: UInt64) -> LedgerError? {
        guard durable > scanned else { return nil }
        return LedgerError(
            byteCount < durable ? .missingTail : .damagedBlock, segment: name, offset: scanned)
    }
}
