import BroadsidePrimitives
import BroadsideSupport

/// Encoder of one segment: takes records, and produces blocks to be written.
///
///      accepted, settled, reserve, release          nextWrite        writeCompleted
///     ------------------------------------> filling ---------> in flight ---------> written
///                                              ^                   |
///                                              +-- (swap buffers) -+      syncCompleted -> synced
///
/// It does no I/O. At most one write is in flight. Meanwhile records are added to the other buffer,
/// which grows if the write is slow. No other allocation is made for a record. The encoder accepts
/// every verdict, so the caller must stop sending while `backlogIsHigh`.
@safe
public struct LedgerWriter: ~Copyable {
    /// Number of unwritten bytes at which the caller should stop sending.
    public static let highBacklogByteCount = 1 << 20
    /// Maximum size of a buffer in bytes. If a buffer needs more, the encoder traps, because the
    /// caller did not stop sending.
    static let backlogByteCountMax = 256 << 20

    static let blockWordCountMax = LedgerFormat.blockByteCountMax / 8
    static let initialWordCount = 2 * blockWordCountMax + 2

    /// The buffer being filled. Words are stored little-endian.
    // SAFETY: this value owns the `wordCapacity` words and frees them when they grow and in
    // `deinit`. `cursor` and `blockLimit` are at most `wordCapacity`: a block is opened only if
    // there is room for the longest one.
    @usableFromInline var words: UnsafeMutablePointer<UInt64>
    @usableFromInline var wordCapacity: Int
    /// Number of words in use.
    @usableFromInline var cursor = 0
    /// End of the memory for the open block; 0 if no block is open.
    @usableFromInline var blockLimit = 0
    /// The segment's clock, in milliseconds since 1970; 0 before the first clock record. The next
    /// record stores its time relative to this clock.
    @usableFromInline var clockMilliseconds: UInt64 = 0

    /// Start of the open block; meaningless if no block is open.
    var blockStart = 0
    /// Offset in the file of the first word in the buffer being filled.
    var fillOffset: UInt64

    /// The buffer that the caller is writing, its number of bytes, and how many of them are
    /// written.
    // SAFETY: this value owns the `flightWordCapacity` words and frees them in `deinit`. The first
    // `flightByteCount` bytes are set; they are unchanged from `nextWrite` to `writeCompleted`.
    var flightWords: UnsafeMutablePointer<UInt64>
    var flightWordCapacity: Int
    var flightByteCount = 0
    var flightDoneCount = 0
    var isWriting = false

    /// CRC of the segment's header. Each block's checksum continues from this CRC.
    let seed: UInt32
    /// Whether records have tokens and fingerprints.
    let keepsTokens: Bool

    /// Offset in the file up to which everything was written. It advances by whole blocks, because
    /// readers ignore a partly written block.
    public private(set) var writtenPosition: UInt64
    /// Offset in the file up to which everything is known to be synced.
    public private(set) var syncedPosition: UInt64
    /// Latest synced position that a record contains.
    var markedPosition: UInt64

    /// Topics that rows name.
    var topics = WrittenTopics()

    /// Starts a segment, or continues one.
    ///
    /// - Parameters:
    ///   - campaign: The campaign's number.
    ///   - epoch: Number of the run, from 1.
    ///   - reactor: Number of the reactor within the run, from 0.
    ///   - startOffset: 0 for a new segment, which gets a header; otherwise the end of its last
    ///     good block.
    ///   - keepsTokens: Whether records have tokens and fingerprints.
    public init(
        campaign: UInt64, epoch: UInt32, reactor: UInt16, startOffset: UInt64 = 0,
        keepsTokens: Bool = true
    ) {
        self.keepsTokens = keepsTokens
        precondition(epoch > 0, "epochs count from 1")
        let header = LedgerFormat.segmentHeader(campaign: campaign, epoch: epoch, reactor: reactor)
        seed = UInt32(header.3 >> 32)
        wordCapacity = LedgerWriter.initialWordCount
        flightWordCapacity = LedgerWriter.initialWordCount
        // SAFETY: this value owns both buffers, and they are longer than the header's four words.
        unsafe words = UnsafeMutablePointer.allocate(capacity: wordCapacity)
        unsafe flightWords = UnsafeMutablePointer.allocate(capacity: flightWordCapacity)
        fillOffset = startOffset
        writtenPosition = startOffset
        syncedPosition = startOffset
        markedPosition = startOffset
        guard startOffset == 0 else {
            // The clock that a reader has at this offset is unknown here, so a new clock record is
            // needed.
            clockMilliseconds = 1 << 63
            return
        }
        unsafe words[0] = header.0.littleEndian
        unsafe words[1] = header.1.littleEndian
        unsafe words[2] = header.2.littleEndian
        unsafe words[3] = header.3.littleEndian
        cursor = 4
    }

    // SAFETY: allocated in `init` or by `grow`; the caller of `nextWrite` keeps this value until
    // the write has ended.
    deinit {
        unsafe words.deallocate()
        unsafe flightWords.deallocate()
    }

    /// Offset after the last appended record. After a `reserve`, this is the position to wait for.
    /// Once `writtenPosition` reaches it, the reservation is in the file. Once `syncedPosition`
    /// reaches it, the reservation survives a power cut.
    public var appendedPosition: UInt64 { fillOffset + UInt64(cursor * 8) }

    /// Appended bytes that are not yet written, including those in flight.
    public var pendingByteCount: Int { cursor * 8 + flightByteCount - flightDoneCount }

    /// Whether too many bytes are unwritten. If so, the caller should send nothing new.
    public var backlogIsHigh: Bool { pendingByteCount >= LedgerWriter.highBacklogByteCount }

    /// Whether the caller is writing.
    public var writeIsInFlight: Bool { isWriting }

    /// Returns the bytes to write next and their offset; nil while a write is in flight, or if
    /// there are no bytes to write.
    ///
    /// Closes the open block. The memory stays valid and unchanged until `writeCompleted`.
    @unsafe
    public mutating func nextWrite() -> (bytes: UnsafeRawBufferPointer, offset: UInt64)? {
        if isWriting { return nil }
        if flightDoneCount == flightByteCount {
            if cursor == 0 { return nil }
            sealBlock()
            // SAFETY: nothing is in flight, so the buffers may be swapped; all `cursor` words are
            // set once the block is sealed, and `flightDoneCount` is at most `flightByteCount`.
            unsafe swap(&words, &flightWords)
            swap(&wordCapacity, &flightWordCapacity)
            flightByteCount = cursor * 8
            flightDoneCount = 0
            fillOffset += UInt64(flightByteCount)
            cursor = 0
        }
        assert(
            writtenPosition + UInt64(flightByteCount) == fillOffset,
            "the bytes to fill follow the bytes to write")
        isWriting = true
        let rest = unsafe UnsafeRawBufferPointer(
            start: UnsafeRawPointer(flightWords) + flightDoneCount,
            count: flightByteCount - flightDoneCount)
        return unsafe (rest, writtenPosition + UInt64(flightDoneCount))
    }

    /// Records how many bytes were written. If bytes are left, the next `nextWrite` returns them.
    ///
    /// - Parameter count: Bytes written, from 0 to all of them.
    public mutating func writeCompleted(_ count: Int) {
        precondition(isWriting, "no write is in flight")
        precondition(count >= 0 && count <= flightByteCount - flightDoneCount, "not that much")
        isWriting = false
        flightDoneCount += count
        if flightDoneCount == flightByteCount { writtenPosition += UInt64(flightByteCount) }
        assert(writtenPosition <= fillOffset, "no more is written than was appended")
    }

    /// Records that a sync of the file has completed.
    ///
    /// The next block records this position. If a reader finds a bad block before this position,
    /// the block is damaged. A power cut cannot be the cause.
    ///
    /// - Parameter position: `writtenPosition` at the start of the sync.
    public mutating func syncCompleted(upTo position: UInt64) {
        precondition(position <= writtenPosition, "what was not written cannot be synced")
        syncedPosition = max(syncedPosition, position)
        assert(markedPosition <= syncedPosition, "only what is synced is marked")
    }
}

/// Packer of bytes into little-endian words.
struct BytePacker {
    var word: UInt64 = 0
    var shift: UInt64 = 0
}

extension LedgerWriter {
    /// Whether a token can be stored as bytes: it consists of an even number of hexadecimal digits.
    static func isPackable(_ token: RawSpan) -> Bool {
        let count = token.byteCount
        guard count % 2 == 0, count <= LedgerFormat.tokenTextByteCountMax else { return false }
        for index in 0..<count {
            let digit = token.byte(at: index)
            if HexDigits.value(digit) == HexDigits.none { return false }
        }
        return true
    }

    /// Appends a word. Requires a call of `makeRoom`.
    mutating func append(_ word: UInt64) {
        precondition(cursor < blockLimit)
        // SAFETY: within the open block, which ends within the buffer, see `words`.
        unsafe words[cursor] = word.littleEndian
        cursor += 1
    }

    /// Appends a byte through `packer`.
    mutating func push(_ byte: UInt8, _ packer: inout BytePacker) {
        packer.word |= UInt64(byte) << packer.shift
        packer.shift += 8
        if packer.shift == 64 {
            append(packer.word)
            packer = BytePacker()
        }
    }

    /// Appends the first `count` bytes of `bytes`, eight at a time; `packer` must be empty.
    mutating func push(_ bytes: RawSpan, count: Int, _ packer: inout BytePacker) {
        precondition(packer.shift == 0)
        var offset = 0
        while count - offset >= 8 {
            // SAFETY: any 64 bits are a word, and the load checks its bounds.
            append(
                unsafe UInt64(
                    littleEndian: bytes.unsafeLoadUnaligned(
                        fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        while offset < count {
            push(bytes.byte(at: offset), &packer)
            offset += 1
        }
    }

    /// Ensures that the open block has room for a record, and that the record's time can be stored
    /// relative to the clock.
    ///
    /// - Returns: The record's time, in milliseconds after the clock.
    mutating func makeRoom(slots: Int, _ nowMilliseconds: UInt64) -> UInt64 {
        // `slots + 1` includes a clock record, which may have to precede the record.
        if blockLimit == 0 || cursor + 2 * (slots + 1) > blockLimit {
            sealBlock()
            openBlock()
        }
        if nowMilliseconds &- clockMilliseconds > LedgerFormat.deltaMillisecondsMax {
            append(RecordKind.clock.rawValue << 60)
            append(nowMilliseconds)
            clockMilliseconds = nowMilliseconds
        }
        return nowMilliseconds &- clockMilliseconds
    }

    /// Opens a block. If no earlier block records the latest sync, this block does.
    private mutating func openBlock() {
        assert(blockLimit == 0, "one block is open at a time")
        if wordCapacity - cursor < LedgerWriter.blockWordCountMax { grow() }
        assert(cursor + LedgerWriter.blockWordCountMax <= wordCapacity, "the block has room")
        blockStart = cursor
        topics.beginBlock()
        cursor += 1
        blockLimit = blockStart + LedgerWriter.blockWordCountMax
        guard syncedPosition > markedPosition else { return }
        markedPosition = syncedPosition
        append(RecordKind.synced.rawValue << 60)
        append(syncedPosition)
    }

    /// Closes the open block, if any, and sets its length and checksum.
    mutating func sealBlock() {
        guard blockLimit > 0 else { return }
        let slotCount = (cursor - blockStart - 1) / 2
        precondition(slotCount > 0 && slotCount <= LedgerFormat.slotsPerBlockMax)
        if !keepsTokens { removeFingerprints() }
        let header = UInt64(slotCount) << 32 | LedgerFormat.blockMarker << 48
        // SAFETY: the block is within the buffer; its header is set here, and `append` has set all
        // words after the header up to `cursor`, at least one slot.
        unsafe words[blockStart] = header.littleEndian
        let block = unsafe UnsafeRawBufferPointer(
            start: words + blockStart, count: (cursor - blockStart) * 8)
        let offset = fillOffset + UInt64(blockStart * 8)
        let crc = unsafe LedgerFormat.checksum(seed: seed, offset: offset, block: block)
        unsafe words[blockStart] = (header | UInt64(crc)).littleEndian
        assert(cursor <= blockLimit, "a block stays within its limit")
        blockLimit = 0
    }

    /// Sets the fingerprints of the open block to 0, for a ledger without tokens. Because this pass
    /// comes once per block, ledgers with fingerprints need no check per record.
    private func removeFingerprints() {
        var index = blockStart + 1
        while index < cursor {
            // SAFETY: `cursor` words are set, and a record that begins before `cursor` ends there or
            // before, see `append`; so its first two words, and a fingerprint behind them, are set.
            let first = unsafe FirstWord(bits: UInt64(littleEndian: words[index]))
            switch first.kind {
            case .accepted:
                unsafe words[index + 1] = 0
                index += 2
            case .settled:
                let second = unsafe SettledWord(bits: UInt64(littleEndian: words[index + 1]))
                if second.flags & SettledWord.tokenIsFingerprint != 0 {
                    unsafe words[index + 2] = 0
                }
                index += 2 * second.slotCount
            case .reserve: index += 6
            case .releaseSome:
                let count = unsafe Int(UInt64(littleEndian: words[index + 1]))
                index += 2 * LedgerFormat.partialReleaseSlots(rows: count)
            case .topic:
                let second = unsafe TopicWord(bits: UInt64(littleEndian: words[index + 1]))
                index += 2 * second.slotCount
            default: index += 2
            }
        }
        assert(index == cursor, "a block has whole records")
    }

    /// Doubles the buffer being filled. The one in flight is not moved.
    private mutating func grow() {
        let capacity = wordCapacity * 2
        precondition(
            capacity * 8 <= LedgerWriter.backlogByteCountMax,
            "the caller continued to send while the ledger could not be written")
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity)
        // SAFETY: no block is open, so that all `cursor` words are set; the new memory is larger,
        // and the old one has no other users and is not in flight.
        unsafe larger.update(from: words, count: cursor)
        unsafe words.deallocate()
        unsafe words = larger
        wordCapacity = capacity
    }
}
