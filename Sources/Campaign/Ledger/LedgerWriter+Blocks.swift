/// Collects bytes into little-endian words.
struct BytePacker {
    var word: UInt64 = 0
    var shift: UInt64 = 0
}

/// Hexadecimal digits to numbers and back.
enum HexDigits {
    /// The number a digit of either case stands for; 255 for any other byte.
    static func value(_ digit: UInt8) -> UInt8 {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        case 0x41...0x46: digit - 0x41 + 10
        default: 255
        }
    }

    /// The lower-case digit of a number below 16.
    static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x61 + value - 10 }
}

extension RawSpan {
    /// The byte at `index`, which is checked.
    @_transparent
    func byte(at index: Int) -> UInt8 {
        // SAFETY: any eight bits are a UInt8, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self)
    }
}

extension LedgerWriter {
    /// Whether a token is digits in pairs that pack into bytes.
    static func isPackable(_ token: RawSpan) -> Bool {
        let count = token.byteCount
        guard count % 2 == 0, count <= LedgerFormat.tokenTextByteCountMax else { return false }
        for index in 0..<count {
            let digit = token.byte(at: index)
            if HexDigits.value(digit) == 255 { return false }
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

    /// Opens a block, which tells of the latest sync if no block has yet.
    private mutating func openBlock() {
        if wordCapacity - cursor < LedgerWriter.blockWordCountMax { grow() }
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
