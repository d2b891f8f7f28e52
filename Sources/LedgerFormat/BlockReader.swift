/// Reads blocks of one segment after another, through one buffer that it owns.
@safe
public struct BlockReader: ~Copyable {
    /// What came of the attempt to read the next block.
    public enum Step {
        /// Its records can be read.
        case block
        /// The range to be read is at its end.
        case end
        /// What lies at `position` is not a whole, good block.
        case bad
    }

    private static let bufferByteCount = 4 * 65_536

    /// Its first bytes are what lies at `windowStart`.
    // SAFETY: `bufferByteCount` bytes of this value's own, freed in `deinit`; the first
    // `windowCount` are set.
    private let buffer: UnsafeMutableRawBufferPointer
    private var windowStart: UInt64 = 0
    private var windowCount = 0

    private var bytes: any LedgerBytes = LedgerMemory([])
    private var name = ""
    private var seed: UInt32 = 0
    private var end: UInt64 = 0

    /// Where the next block begins.
    private(set) var position: UInt64 = 0
    /// The segment's clock, as it stands before the next record.
    var clock: UInt64 = 0
    /// The highest position that records read so far say was synced.
    var latestSyncedPosition: UInt64 = 0

    /// Where the block begins in the segment.
    private(set) var blockOffset: UInt64 = 0
    /// Bytes of the block, header included.
    private(set) var blockByteCount = 0
    /// Where the next record begins, and the latest one began, from the start of the block.
    var recordOffset = 0
    var currentRecordOffset = 0

    /// Reads nothing yet.
    public init() {
        // SAFETY: `windowCount` says that nothing of it is set.
        unsafe buffer = .allocate(byteCount: BlockReader.bufferByteCount, alignment: 16)
    }

    // SAFETY: allocated in `init`, and reached only through this value.
    deinit {
        unsafe buffer.deallocate()
    }

    /// Turns to the blocks of a segment.
    ///
    /// - Parameters:
    ///   - segment: the segment; nothing read before is kept.
    ///   - seed: the CRC of its header.
    ///   - range: where blocks begin, and where the last one ends at most.
    ///   - clock: the segment's clock at the range's start.
    public mutating func open(
        _ segment: LedgerSegment, seed: UInt32, range: Range<UInt64>, clock: UInt64
    ) {
        bytes = segment.bytes
        name = segment.name
        self.seed = seed
        windowStart = 0
        windowCount = 0
        seek(to: range.lowerBound, end: range.upperBound, clock: clock)
    }

    /// Moves to other blocks of the same segment; what the buffer holds of it is used again.
    mutating func seek(to position: UInt64, end: UInt64, clock: UInt64) {
        self.position = position
        self.end = end
        self.clock = clock
        latestSyncedPosition = 0
        blockByteCount = 0
    }

    /// The words of the segment's header; nil if it is shorter.
    mutating func segmentHeader() throws(LedgerError) -> (UInt64, UInt64, UInt64, UInt64)? {
        guard try load(0, LedgerFormat.segmentHeaderByteCount) else { return nil }
        let start = -Int(windowStart)
        return (
            bufferWord(at: start), bufferWord(at: start + 8),
            bufferWord(at: start + 16), bufferWord(at: start + 24)
        )
    }

    /// Reads the next block and checks it.
    ///
    /// - Throws: `inputOutput` only.
    public mutating func nextBlock() throws(LedgerError) -> Step {
        blockByteCount = 0
        guard position < end else { return .end }
        guard let count = try plausibleBlock(at: position), checksumHolds(at: position, count)
        else { return .bad }
        assert(UInt64(count) <= end - position, "a block is in its range")
        blockOffset = position
        blockByteCount = count
        recordOffset = LedgerFormat.blockHeaderByteCount
        position += UInt64(count)
        return .block
    }

    /// The next place from `start` on, in steps of eight bytes, where a good block begins.
    mutating func findBlock(from start: UInt64) throws(LedgerError) -> UInt64? {
        var candidate = start
        while candidate < end {
            if let count = try plausibleBlock(at: candidate), checksumHolds(at: candidate, count) {
                return candidate
            }
            candidate += 8
        }
        return nil
    }

    /// Bytes of the block that begins at `offset`, if its header could be one; they are in the
    /// buffer.
    private mutating func plausibleBlock(at offset: UInt64) throws(LedgerError) -> Int? {
        let headerCount = LedgerFormat.blockHeaderByteCount
        guard end - offset > UInt64(headerCount), try load(offset, headerCount) else { return nil }
        let header = bufferWord(at: Int(offset - windowStart))
        let slotCount = Int(header >> 32 & 0xFFFF)
        guard header >> 48 == LedgerFormat.blockMarker, slotCount > 0,
            slotCount <= LedgerFormat.slotsPerBlockMax
        else { return nil }
        let count = headerCount + slotCount * LedgerFormat.slotByteCount
        guard UInt64(count) <= end - offset, try load(offset, count) else { return nil }
        return count
    }

    private func checksumHolds(at offset: UInt64, _ count: Int) -> Bool {
        let start = Int(offset - windowStart)
        // SAFETY: `plausibleBlock` has just loaded these bytes, and they are more than a header's.
        let block = unsafe UnsafeRawBufferPointer(rebasing: buffer[start..<(start + count)])
        let stored = UInt32(truncatingIfNeeded: bufferWord(at: start))
        return unsafe LedgerFormat.checksum(seed: seed, offset: offset, block: block) == stored
    }

    /// Sees to it that bytes of the segment are in the buffer; false if it ends before.
    private mutating func load(_ offset: UInt64, _ count: Int) throws(LedgerError) -> Bool {
        if offset >= windowStart && offset + UInt64(count) <= windowStart + UInt64(windowCount) {
            return true
        }
        windowStart = offset
        windowCount = 0
        while windowCount < BlockReader.bufferByteCount {
            // SAFETY: `windowCount` is below the buffer's count; how much was read is held against
            // the rest.
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[windowCount...])
            let read = try unsafe bytes.read(at: offset + UInt64(windowCount), into: rest)
            precondition(read >= 0 && read <= rest.count)
            if read == 0 { break }
            windowCount += read
        }
        return windowCount >= count
    }

    private func bufferWord(at index: Int) -> UInt64 {
        precondition(index >= 0 && index + 8 <= windowCount)
        // SAFETY: the precondition says that the bytes are there, and any are a UInt64.
        let word = unsafe buffer.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        return UInt64(littleEndian: word)
    }

    /// The word at `offset` bytes from the start of the block.
    func word(at offset: Int) -> UInt64 {
        precondition(offset + 8 <= blockByteCount)
        return bufferWord(at: Int(blockOffset - windowStart) + offset)
    }

    /// Appends bytes of the block; the range counts from its start.
    public func copy(_ range: Range<Int>, to output: inout [UInt8]) {
        precondition(range.lowerBound >= 0 && range.upperBound <= blockByteCount)
        let start = Int(blockOffset - windowStart)
        let bytes = (start + range.lowerBound)..<(start + range.upperBound)
        precondition(bytes.upperBound <= windowCount)
        // SAFETY: the range is checked to lie in what is set of the buffer; the bytes are copied.
        unsafe output.append(contentsOf: buffer[bytes])
    }

    /// A fault in this segment.
    func fault(_ code: LedgerError.Code, at offset: UInt64, _ detail: String = "") -> LedgerError {
        LedgerError(code, segment: name, offset: offset, detail: detail)
    }

    /// That the block at `position` was good when the ledger was indexed and is not now.
    public var changedFault: LedgerError {
        fault(.damagedBlock, at: position, "it changed while being read")
    }

    /// Where the latest record began in the segment.
    var recordPosition: UInt64 { blockOffset + UInt64(currentRecordOffset) }
}
