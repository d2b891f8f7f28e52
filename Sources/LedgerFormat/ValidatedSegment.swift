/// A segment whose header and blocks were checked, up to the end of its sound part.
///
///     0        32                                 soundByteCount            byteCount
///     | header | block | block | ...      | block | torn: never synced, or    |
///     |        |       |       |          |       | later than this reader    |
public struct ValidatedSegment {
    /// The checked segment.
    public var segment: LedgerSegment
    /// CRC of the segment's header. Each block's checksum continues from this CRC.
    public var seed: UInt32
    /// Offset of the end of the segment's last good block.
    var soundByteCount: UInt64
    /// Whether other bytes follow the last good block.
    var isTorn: Bool

    /// Range of the segment's good blocks.
    public var blocks: Range<UInt64> {
        let start = UInt64(LedgerFormat.segmentHeaderByteCount)
        return start..<max(start, soundByteCount)
    }

    /// Checks a segment from its start and passes each record to `body`.
    ///
    /// A bad block normally ends the segment, because power may have failed before the block was
    /// synced. The block counts as damaged only if it was certainly synced. Any of three facts
    /// proves the sync: the manifest recorded a length beyond the block, a later good block records
    /// a sync beyond it, or bytes beyond it are known to have been durable.
    ///
    /// - Parameters:
    ///   - segment: The segment to check.
    ///   - campaign: The campaign that it must name.
    ///   - recordedByteCount: Its length in the manifest; nil for a run that did not end orderly.
    ///   - skipsAccepted: Whether `body` does not need records of accepted rows.
    ///   - reader: A reader whose buffer is used.
    ///   - body: Receives each record, with the reader positioned on it.
    public init(
        checking segment: LedgerSegment, campaign: UInt64, recordedByteCount: UInt64?,
        hasHeader: Bool = false, skipsAccepted: Bool = false, with reader: inout BlockReader,
        _ body: (inout BlockReader, LedgerRecord) throws(LedgerError) -> Void
    ) throws(LedgerError) {
        self.segment = segment
        let expected = LedgerFormat.segmentHeader(
            campaign: campaign, epoch: segment.epoch, reactor: segment.reactor)
        seed = UInt32(expected.3 >> 32)
        let available = segment.bytes.byteCount
        let end = min(available, recordedByteCount ?? available)
        let start = UInt64(LedgerFormat.segmentHeaderByteCount)
        isTorn = false

        reader.open(segment, seed: seed, range: 0..<end, clock: 0)
        let headerIsGood = try ValidatedSegment.checkHeader(segment, expected, &reader)
        if !headerIsGood, hasHeader, recordedByteCount == nil {
            throw reader.fault(available < start ? .missingTail : .badSegmentHeader, at: 0)
        }
        let first = headerIsGood ? min(start, end) : end
        reader.seek(to: first, end: end, clock: 0)
        soundByteCount = headerIsGood ? first : 0
        if headerIsGood {
            scan: while true {
                switch try reader.nextBlock() {
                case .block:
                    if skipsAccepted { reader.skipAccepted() }
                    while let record = try reader.nextRecord() {
                        try body(&reader, record)
                        if skipsAccepted { reader.skipAccepted() }
                    }
                    soundByteCount = reader.position
                case .end:
                    break scan
                case .bad:
                    isTorn = true
                    break scan
                }
            }
        } else {
            isTorn = recordedByteCount == nil
        }
        assert(soundByteCount <= available, "the sound bytes are within the segment")
        if let recordedByteCount, soundByteCount < recordedByteCount {
            let code: LedgerError.Code =
                available < recordedByteCount
                ? .missingTail : headerIsGood ? .damagedBlock : .badSegmentHeader
            throw reader.fault(code, at: soundByteCount)
        }
        if isTorn {
            let code: LedgerError.Code = headerIsGood ? .damagedBlock : .badSegmentHeader
            guard try !ValidatedSegment.wasSynced(beyond: soundByteCount, end, &reader) else {
                throw reader.fault(code, at: soundByteCount)
            }
        }
        if soundByteCount < segment.durableByteCount {
            guard available < segment.durableByteCount else {
                throw reader.fault(
                    headerIsGood ? .damagedBlock : .badSegmentHeader, at: soundByteCount)
            }
            throw reader.fault(
                .missingTail, at: soundByteCount,
                "\(segment.durableByteCount) bytes were on disk when rows were sent")
        }
    }

    /// Whether a good block after the bad block at `place` records that the bad block was synced.
    private static func wasSynced(
        beyond place: UInt64, _ end: UInt64, _ reader: inout BlockReader
    ) throws(LedgerError) -> Bool {
        var position = place + 8
        while true {
            reader.seek(to: position, end: end, clock: 0)
            guard let found = try reader.findBlock(from: position) else { return false }
            reader.seek(to: found, end: end, clock: 0)
            while case .block = try reader.nextBlock() {
                while try reader.nextRecord() != nil {}
                if reader.latestSyncedPosition > place { return true }
            }
            position = reader.position + 8
        }
    }

    /// Whether the header is whole and belongs to this segment. Throws if the header belongs to
    /// another segment or a newer version: the file is then a wrong file, not a damaged one.
    static func checkHeader(
        _ segment: LedgerSegment, _ expected: (UInt64, UInt64, UInt64, UInt64),
        _ reader: inout BlockReader
    ) throws(LedgerError) -> Bool {
        guard let found = try reader.segmentHeader() else { return false }
        if found == expected { return true }
        let version = UInt16(truncatingIfNeeded: found.1)
        let own = LedgerFormat.segmentHeader(
            version: version, campaign: found.2, epoch: UInt32(found.1 >> 32),
            reactor: UInt16(truncatingIfNeeded: found.1 >> 16))
        guard found == own else { return false }
        if version > LedgerFormat.version {
            throw LedgerError(
                .unsupportedVersion, segment: segment.name, detail: "format \(version)")
        }
        throw LedgerError(
            .badSegmentHeader, segment: segment.name, detail: "it belongs to another run")
    }
}

extension LedgerSegment {
    /// Checks the bytes that are known to have been durable.
    ///
    /// - Parameters:
    ///   - byteCount: Offset at which the check ends, which must be the end of a block.
    ///   - campaign: The campaign that the segment must name.
    /// - Throws: The first fault before that offset.
    package func checkDurable(_ byteCount: UInt64, campaign: UInt64) throws(LedgerError) {
        var reader = BlockReader()
        _ = try ValidatedSegment(
            checking: self, campaign: campaign, recordedByteCount: byteCount, skipsAccepted: true,
            with: &reader
        ) { _, _ in }
    }
}
