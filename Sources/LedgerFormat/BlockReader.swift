/// Reads the blocks of segments, one segment at a time, through a buffer that the reader owns.
@safe
public struct BlockReader: ~Copyable {
    /// Result of reading the next block.
    public enum Step {
        /// The block is good; its records can be read.
        case block
        /// The end of the range is reached.
        case end
        /// The bytes at `position` are not a whole, good block.
        case bad
    }

    private static let bufferByteCount = 4 * 65_536

    /// The buffer for the bytes of the segment from `windowStart` on.
    // SAFETY: this value owns the `bufferByteCount` bytes and frees them in `deinit`; the first
    // `windowCount` are set.
    private let buffer: UnsafeMutableRawBufferPointer
    private var windowStart: UInt64 = 0
    private var windowCount = 0

    private var bytes: any LedgerBytes = LedgerMemory([])
    private var name = ""
    private var seed: UInt32 = 0
    private var end: UInt64 = 0

    /// Offset of the next block.
    private(set) var position: UInt64 = 0
    /// The segment's reference time before the next record, in milliseconds since 1970.
    var clock: UInt64 = 0
    /// Highest position that the records read so far report as synced.
    var latestSyncedPosition: UInt64 = 0

    /// Offset of the current block in the segment.
    private(set) var blockOffset: UInt64 = 0
    /// Size of the current block in bytes, including its header; 0 if there is no current block.
    private(set) var blockByteCount = 0
    /// Offsets of the next and of the latest record, from the start of the block.
    var recordOffset = 0
    var currentRecordOffset = 0

    /// Topics found since this reader was created.
    public internal(set) var topics = TopicNames()
    /// Topic of the next records, as a number in `topics`; 0 if they have no topic. At the
    /// beginning of a block, no topic applies.
    public internal(set) var topic: UInt16 = 0
    /// Topics read in the block so far, indexed by their number in the block. Each entry has the
    /// topic's number in `topics`, and the range of its text relative to the start of the block.
    var blockTopics: [(number: UInt16, text: Range<Int>)] = []

    /// Creates a reader without a segment.
    public init() {
        // SAFETY: `windowCount` is 0, so no byte counts as set.
        unsafe buffer = .allocate(byteCount: BlockReader.bufferByteCount, alignment: 16)
    }

    // SAFETY: allocated in `init`, and accessed only through this value.
    deinit {
        unsafe buffer.deallocate()
    }

    /// Starts reading blocks of a segment, and discards all buffered bytes.
    ///
    /// - Parameters:
    ///   - segment: The segment to read.
    ///   - seed: CRC of the segment's header.
    ///   - range: From the first block's offset to an upper bound of the last block's end.
    ///   - clock: The segment's clock at the start of the range.
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

    /// Moves to other blocks of the same segment, and keeps the buffer.
    mutating func seek(to position: UInt64, end: UInt64, clock: UInt64) {
        self.position = position
        self.end = end
        self.clock = clock
        latestSyncedPosition = 0
        blockByteCount = 0
    }

    /// Returns the four words of the segment's header; nil if the segment is shorter than that.
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
        beginRecords()
        position += UInt64(count)
        return .block
    }

    /// Moves to the first record of the block. There is no topic before the first topic record.
    mutating func beginRecords() {
        recordOffset = LedgerFormat.blockHeaderByteCount
        topic = 0
        if !blockTopics.isEmpty { blockTopics.removeAll(keepingCapacity: true) }
    }

    /// Returns the offset of the next good block from `start` on, in steps of eight bytes; nil if
    /// there is none.
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

    /// Loads the block at `offset` and returns its number of bytes; nil if no block can begin
    /// there.
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
        // SAFETY: `plausibleBlock` has just loaded these bytes, and they are longer than a header.
        let block = unsafe UnsafeRawBufferPointer(rebasing: buffer[start..<(start + count)])
        let stored = UInt32(truncatingIfNeeded: bufferWord(at: start))
        return unsafe LedgerFormat.checksum(seed: seed, offset: offset, block: block) == stored
    }

    /// Loads `count` bytes into the buffer, from `offset` on. Returns false if the segment has
    /// fewer.
    private mutating func load(_ offset: UInt64, _ count: Int) throws(LedgerError) -> Bool {
        if offset >= windowStart && offset + UInt64(count) <= windowStart + UInt64(windowCount) {
            return true
        }
        windowStart = offset
        windowCount = 0
        while windowCount < BlockReader.bufferByteCount {
            // SAFETY: `windowCount` is below the buffer's count; the number of bytes read is
            // checked against the rest.
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
        // SAFETY: the precondition ensures that the bytes are set, and any bits are a valid UInt64.
        let word = unsafe buffer.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        return UInt64(littleEndian: word)
    }

    /// Returns the word at `offset` bytes from the start of the block.
    func word(at offset: Int) -> UInt64 {
        precondition(offset + 8 <= blockByteCount)
        return bufferWord(at: Int(blockOffset - windowStart) + offset)
    }

    /// Appends bytes of the block; the range is relative to its start.
    public func copy(_ range: Range<Int>, to output: inout [UInt8]) {
        precondition(range.lowerBound >= 0 && range.upperBound <= blockByteCount)
        let start = Int(blockOffset - windowStart)
        let bytes = (start + range.lowerBound)..<(start + range.upperBound)
        precondition(bytes.upperBound <= windowCount)
        // SAFETY: the range is checked to be within the bytes that are set; they are copied.
        unsafe output.append(contentsOf: buffer[bytes])
    }

    /// Creates an error for a fault at an offset of this segment.
    func fault(_ code: LedgerError.Code, at offset: UInt64, _ detail: String = "") -> LedgerError {
        LedgerError(code, segment: name, offset: offset, detail: detail)
    }

    /// Error for a block at `position` that is bad, although it was good when the ledger was
    /// indexed.
    public var changedFault: LedgerError {
        fault(.damagedBlock, at: position, "it changed while being read")
    }

    /// Offset of the latest record in the segment.
    var recordPosition: UInt64 { blockOffset + UInt64(currentRecordOffset) }
}
