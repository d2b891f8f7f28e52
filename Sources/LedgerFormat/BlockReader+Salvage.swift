extension BlockReader {
    /// Value of `clock` after lost bytes. The time is then unknown until the next clock record.
    static let unknownClock: UInt64 = 1 << 63

    /// Whether the latest record's time is known.
    var knowsTime: Bool { clock < BlockReader.unknownClock }

    /// Passes each record of each good block to `body`, and skips all other bytes.
    ///
    /// A block's checksum covers its offset and the segment's header. So even after damage, a good
    /// block is certainly one that this run wrote at this offset.
    ///
    /// - Parameters:
    ///   - segment: The segment to read.
    ///   - seed: CRC of the expected header.
    ///   - end: Upper bound of the segment's end.
    /// - Returns: The ranges of bytes that are not good blocks.
    mutating func salvage(
        _ segment: LedgerSegment, seed: UInt32, end: UInt64,
        _ body: (inout BlockReader, LedgerRecord) throws(LedgerError) -> Void
    ) throws(LedgerError) -> [Range<UInt64>] {
        let start = UInt64(LedgerFormat.segmentHeaderByteCount)
        var losses: [Range<UInt64>] = []
        open(segment, seed: seed, range: start..<max(start, end), clock: 0)
        while true {
            let clockBefore = clock
            switch try nextBlock() {
            case .end:
                return losses
            case .block:
                guard recordsMakeSense() else {
                    losses.append(blockOffset..<position)
                    clock = BlockReader.unknownClock
                    continue
                }
                beginRecords()
                clock = clockBefore
                while let record = try nextRecord() { try body(&self, record) }
            case .bad:
                let bad = position
                let found = try findBlock(from: bad + 8)
                losses.append(bad..<(found ?? max(bad, end)))
                guard let found else { return losses }
                seek(to: found, end: end, clock: BlockReader.unknownClock)
            }
        }
    }

    private mutating func recordsMakeSense() -> Bool {
        do throws(LedgerError) {
            while try nextRecord() != nil {}
            return true
        } catch {
            return false
        }
    }
}
