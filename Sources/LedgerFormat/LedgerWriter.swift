import BroadsidePrimitives
import BroadsideSupport

/// Encodes one segment: records in, blocks out to be written.
///
///      accepted, settled, reserve, release          nextWrite        writeCompleted
///     ------------------------------------> filling ---------> in flight ---------> written
///                                              ^                   |
///                                              +-- (swap buffers) -+      syncCompleted -> synced
///
/// It does no I/O. One write is in flight at a time; meanwhile records go into the other buffer,
/// which grows where a write is slow: a verdict can't be refused, so the caller stops sending when
/// `backlogIsHigh` says so. Nothing is allocated for a record otherwise.
@safe
public struct LedgerWriter: ~Copyable {
    /// From how many bytes not yet written on the caller should stop sending.
    public static let highBacklogByteCount = 1 << 20
    /// Where a caller that did not stop is stopped: the most a buffer grows to.
    static let backlogByteCountMax = 256 << 20

    static let blockWordCountMax = LedgerFormat.blockByteCountMax / 8
    static let initialWordCount = 2 * blockWordCountMax + 2

    /// What is being filled. Words are stored little-endian.
    // SAFETY: `wordCapacity` words of this value's own, freed when they grow and in `deinit`.
    // `cursor` and `blockLimit` are at most that: a block is opened only where there is room for
    // the longest.
    @usableFromInline var words: UnsafeMutablePointer<UInt64>
    @usableFromInline var wordCapacity: Int
    /// Words used so far.
    @usableFromInline var cursor = 0
    /// The end of the room in the open block; 0 while none is open.
    @usableFromInline var blockLimit = 0
    /// The time from which records count, as a reader of the segment knows it: 0 until a clock
    /// slot.
    @usableFromInline var clockMilliseconds: UInt64 = 0

    /// Where the open block starts; meaningless while none is open.
    var blockStart = 0
    /// The offset in the file of the first word being filled.
    var fillOffset: UInt64

    /// What the caller is writing, all of it and the part already written.
    // SAFETY: `flightWordCapacity` words of this value's own, of which `flightByteCount` bytes are
    // set; they stay as they are from `nextWrite` to `writeCompleted`. Freed in `deinit`.
    var flightWords: UnsafeMutablePointer<UInt64>
    var flightWordCapacity: Int
    var flightByteCount = 0
    var flightDoneCount = 0
    var isWriting = false

    /// The CRC of the segment's header, from which each block's starts.
    let seed: UInt32

    /// All before this offset of the file was written. It moves by whole blocks only: of a block
    /// that is written in part, a reader sees nothing.
    public private(set) var writtenPosition: UInt64
    /// All before this offset is known to be synced.
    public private(set) var syncedPosition: UInt64
    /// The latest synced position that a record has.
    var markedPosition: UInt64

    /// Begins a segment, or goes on with one.
    ///
    /// - Parameters:
    ///   - campaign: the campaign's number.
    ///   - epoch: the run, from 1.
    ///   - reactor: the reactor within the run, from 0.
    ///   - startOffset: 0 for a new segment, whose header then comes first; else where its sound
    ///     part ends.
    public init(campaign: UInt64, epoch: UInt32, reactor: UInt16, startOffset: UInt64 = 0) {
        precondition(epoch > 0, "epochs count from 1")
        let header = LedgerFormat.segmentHeader(campaign: campaign, epoch: epoch, reactor: reactor)
        seed = UInt32(header.3 >> 32)
        wordCapacity = LedgerWriter.initialWordCount
        flightWordCapacity = LedgerWriter.initialWordCount
        // SAFETY: both are this value's own, and longer than the header's four words.
        unsafe words = UnsafeMutablePointer.allocate(capacity: wordCapacity)
        unsafe flightWords = UnsafeMutablePointer.allocate(capacity: flightWordCapacity)
        fillOffset = startOffset
        writtenPosition = startOffset
        syncedPosition = startOffset
        markedPosition = startOffset
        guard startOffset == 0 else {
            // The clock that a reader brings to this place is not known here: force a new one.
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
    // the write is over.
    deinit {
        unsafe words.deallocate()
        unsafe flightWords.deallocate()
    }

    /// The offset behind the last record put in. Once `writtenPosition` has reached the value seen
    /// after a `reserve`, that reservation is in the file; once `syncedPosition` has, it outlives a
    /// power cut.
    public var appendedPosition: UInt64 { fillOffset + UInt64(cursor * 8) }

    /// Bytes put in but not yet written, those in flight included.
    public var pendingByteCount: Int { cursor * 8 + flightByteCount - flightDoneCount }

    /// Whether writing falls behind so far that the caller should send nothing new.
    public var backlogIsHigh: Bool { pendingByteCount >= LedgerWriter.highBacklogByteCount }

    /// Whether a write is with the caller.
    public var writeIsInFlight: Bool { isWriting }

    /// What to write next, and where; nil while a write is in flight or nothing pends.
    ///
    /// Closes the open block. The memory stays valid and unchanged until `writeCompleted`.
    @unsafe
    public mutating func nextWrite() -> (bytes: UnsafeRawBufferPointer, offset: UInt64)? {
        if isWriting { return nil }
        if flightDoneCount == flightByteCount {
            if cursor == 0 { return nil }
            sealBlock()
            // SAFETY: nothing is in flight, so that the memories may change places; all `cursor`
            // words are set once the block is sealed, and `flightDoneCount` is at most
            // `flightByteCount`.
            unsafe swap(&words, &flightWords)
            swap(&wordCapacity, &flightWordCapacity)
            flightByteCount = cursor * 8
            flightDoneCount = 0
            fillOffset += UInt64(flightByteCount)
            cursor = 0
        }
        assert(
            writtenPosition + UInt64(flightByteCount) == fillOffset,
            "what is written and what is filled meet")
        isWriting = true
        let rest = unsafe UnsafeRawBufferPointer(
            start: UnsafeRawPointer(flightWords) + flightDoneCount,
            count: flightByteCount - flightDoneCount)
        return unsafe (rest, writtenPosition + UInt64(flightDoneCount))
    }

    /// Takes note of how much of the write was done; the next `nextWrite` goes on with the rest, if
    /// any.
    ///
    /// - Parameter count: bytes written, 0 to all of them.
    public mutating func writeCompleted(_ count: Int) {
        precondition(isWriting, "no write is in flight")
        precondition(count >= 0 && count <= flightByteCount - flightDoneCount, "not that much")
        isWriting = false
        flightDoneCount += count
        if flightDoneCount == flightByteCount { writtenPosition += UInt64(flightByteCount) }
        assert(writtenPosition <= fillOffset, "no more is written than was appended")
    }

    /// Takes note that a sync of the file is done.
    ///
    /// The ledger itself will say so, with the next records: where bytes before this position turn
    /// out bad later on, that is damage and not the torn tail of a power cut.
    ///
    /// - Parameter position: `writtenPosition` as it was when the sync was begun.
    public mutating func syncCompleted(upTo position: UInt64) {
        precondition(position <= writtenPosition, "what was not written cannot be synced")
        syncedPosition = max(syncedPosition, position)
        assert(markedPosition <= syncedPosition, "only what is synced is marked")
    }
}

/// Collects bytes into little-endian words.
struct BytePacker {
    var word: UInt64 = 0
    var shift: UInt64 = 0
}

extension LedgerWriter {
    /// Whether a token is digits in pairs that pack into bytes.
    static func isPackable(_ token: RawSpan) -> Bool {
        let count = token.byteCount
        guard count % 2 == 0, count <= LedgerFormat.tokenTextByteCountMax else { return false }
        for index in 0..<count {
            let digit = token.byte(at: index)
            if HexDigits.value(digit) == HexDigits.none { return false }
        }
        return true
    }

    /// Appends a word; `makeRoom` has seen to the room.
    mutating func append(_ word: UInt64) {
        precondition(cursor < blockLimit)
        // SAFETY: within the open block, which ends within the buffer, see `words`.
        unsafe words[cursor] = word.littleEndian
        cursor += 1
    }

    /// Appends a byte, by way of `packer`.
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

    /// Makes sure that a block is open with room for a record, and that the clock reaches its time.
    ///
    /// - Returns: the record's time, in milliseconds after the clock.
    mutating func makeRoom(slots: Int, _ nowMilliseconds: UInt64) -> UInt64 {
        // A clock slot may have to come first, whatever the record's own size.
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

    /// Opens a block, which records the latest sync if no block has yet.
    private mutating func openBlock() {
        assert(blockLimit == 0, "one block is open at a time")
        if wordCapacity - cursor < LedgerWriter.blockWordCountMax { grow() }
        assert(cursor + LedgerWriter.blockWordCountMax <= wordCapacity, "the block has room")
        blockStart = cursor
        cursor += 1
        blockLimit = blockStart + LedgerWriter.blockWordCountMax
        guard syncedPosition > markedPosition else { return }
        markedPosition = syncedPosition
        append(RecordKind.synced.rawValue << 60)
        append(syncedPosition)
    }

    /// Closes the open block, if there is one: its length and checksum are known now.
    mutating func sealBlock() {
        guard blockLimit > 0 else { return }
        let slotCount = (cursor - blockStart - 1) / 2
        precondition(slotCount > 0 && slotCount <= LedgerFormat.slotsPerBlockMax)
        let header = UInt64(slotCount) << 32 | LedgerFormat.blockMarker << 48
        // SAFETY: the block lies within the buffer; its header is set here, and `append` has set
        // all behind it up to `cursor`, at least one slot.
        unsafe words[blockStart] = header.littleEndian
        let block = unsafe UnsafeRawBufferPointer(
            start: words + blockStart, count: (cursor - blockStart) * 8)
        let offset = fillOffset + UInt64(blockStart * 8)
        let crc = unsafe LedgerFormat.checksum(seed: seed, offset: offset, block: block)
        unsafe words[blockStart] = (header | UInt64(crc)).littleEndian
        assert(cursor <= blockLimit, "a block stays within its limit")
        blockLimit = 0
    }

    /// Doubles the buffer being filled. The one in flight stays where it is.
    private mutating func grow() {
        let capacity = wordCapacity * 2
        precondition(
            capacity * 8 <= LedgerWriter.backlogByteCountMax,
            "the caller continued to send while the ledger could not be written")
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity)
        // SAFETY: no block is open, so that all `cursor` words are set; the new memory is larger,
        // and nobody else knows the old one, which is not in flight.
        unsafe larger.update(from: words, count: cursor)
        unsafe words.deallocate()
        unsafe words = larger
        wordCapacity = capacity
    }
}
