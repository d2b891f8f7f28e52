import BroadsidePayloads

/// A fixed number of memory blocks of equal size, which can be chained. Taking a block never
/// allocates.
///
/// The arena belongs to a slab, which deallocates it.
@safe struct BlockArena {
    static let blockSize = 256
    /// Number of content bytes per block. The other four bytes hold the number of the next block.
    static let contentCount = blockSize - 4

    // SAFETY: `capacity` blocks that never move; the slab that owns the arena frees them and is the
    // only one that accesses them. A block that was taken or freed holds the number of the next one
    // in its first four bytes.
    private let memory: UnsafeMutableRawPointer
    private let capacity: Int
    private var freeHead = UInt32.max
    private var untouched: UInt32 = 0
    private(set) var freeCount: Int

    init(capacity: Int) {
        precondition(capacity < Int(UInt32.max))
        self.capacity = capacity
        freeCount = capacity
        // SAFETY: `take` sets a block before it is read.
        unsafe memory = .allocate(byteCount: capacity * Self.blockSize, alignment: 64)
    }

    func deallocate() {
        // SAFETY: called once, when the slab ends.
        unsafe memory.deallocate()
    }

    /// Number of blocks needed for `count` bytes.
    static func blocks(for count: Int) -> Int { (count + contentCount - 1) / contentCount }

    /// Takes a block and links it to `next`. Requires a free block.
    mutating func take(next: UInt32) -> UInt32 {
        precondition(freeCount > 0)
        freeCount -= 1
        let block: UInt32
        if freeHead != .max {
            block = freeHead
            freeHead = self.next(block)
        } else {
            block = untouched
            untouched += 1
            assert(Int(untouched) <= capacity, "a block is in the arena")
        }
        // SAFETY: `address` checks the number; blocks are aligned and longer than four bytes.
        unsafe address(block).storeBytes(of: next, as: UInt32.self)
        return block
    }

    /// Frees a block and returns the number of the next block of its chain.
    mutating func free(_ block: UInt32) -> UInt32 {
        assert(freeCount < capacity, "each block is freed once")
        let next = next(block)
        // SAFETY: `address` checks the number; blocks are aligned and longer than four bytes.
        unsafe address(block).storeBytes(of: freeHead, as: UInt32.self)
        freeHead = block
        freeCount += 1
        return next
    }

    func next(_ block: UInt32) -> UInt32 {
        // SAFETY: `address` checks the number, and a block of a chain was taken, see `memory`.
        unsafe address(block).load(as: UInt32.self)
    }

    /// Start of a block's content.
    func content(_ block: UInt32) -> UnsafeMutableRawPointer {
        // SAFETY: `address` checks the number; `contentCount` bytes follow the four.
        unsafe address(block) + 4
    }

    private func address(_ block: UInt32) -> UnsafeMutableRawPointer {
        precondition(Int(block) < capacity)
        // SAFETY: the number was checked.
        return unsafe memory + Int(block) * Self.blockSize
    }
}

extension RowSlab {
    /// Number of shared blocks for field values that do not fit after the tokens. The reactors of a
    /// run divide these blocks. In addition, each reactor has half a block per row in flight.
    static let sharedBlocks = 16 << 20 / BlockArena.blockSize

    /// Stores a row's field values until its slot is freed. The token must be set before.
    mutating func keep(
        _ fieldValues: RawSpan, shape: PayloadRenderer.Shape, of tag: RowTag
    ) {
        precondition(fieldValues.byteCount == Int(shape.count))
        self[tag].personal = shape
        // SAFETY: `inside` is at most the count of the room and that of the field values. The
        // remaining bytes are copied to blocks, at most `contentCount` per block, the last from
        // `start` to the end. The caller's bytes do not overlap the slab.
        let room = unsafe personalRoom(tag)
        let inside = min(room.count, fieldValues.byteCount)
        unsafe fieldValues.extracting(0..<inside).withUnsafeBytes {
            unsafe room.copyMemory(from: $0)
        }
        // The blocks are filled from the last to the first, so that each one knows its successor.
        var block = UInt32.max
        let rest = fieldValues.byteCount - inside
        var start = inside + (BlockArena.blocks(for: rest) - 1) * BlockArena.contentCount
        while start >= inside, rest > 0 {
            let end = min(fieldValues.byteCount, start + BlockArena.contentCount)
            block = blocks.take(next: block)
            let content = unsafe blocks.content(block)
            unsafe fieldValues.extracting(start..<end).withUnsafeBytes {
                unsafe content.copyMemory(from: $0.baseAddress!, byteCount: $0.count)
            }
            start -= BlockArena.contentCount
        }
        assert((block == .max) == (rest <= 0), "what has no room inside is in blocks")
        self[tag].firstBlock = block
    }

    /// Returns a row's field values as one contiguous buffer.
    ///
    /// - Parameter scratch: Memory in which values are assembled if they are not contiguous.
    func fieldValues(
        _ tag: RowTag, scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        let count = Int(self[tag].personal.count)
        // SAFETY: `keep` has set that many bytes, behind the token and in a chain of as many blocks
        // as needed. The scratch buffer has room for the maximum that a row may have, because the
        // renderer limits what `keep` gets.
        let room = unsafe personalRoom(tag)
        if count <= room.count {
            return unsafe UnsafeRawBufferPointer(rebasing: room[..<count])
        }
        unsafe scratch.copyMemory(from: UnsafeRawBufferPointer(room))
        var filled = room.count
        var block = self[tag].firstBlock
        while filled < count {
            let length = min(count - filled, BlockArena.contentCount)
            unsafe (scratch.baseAddress! + filled).copyMemory(
                from: blocks.content(block), byteCount: length)
            filled += length
            block = blocks.next(block)
        }
        return unsafe UnsafeRawBufferPointer(rebasing: scratch[..<count])
    }

    mutating func freeBlocks(_ tag: RowTag) {
        var block = self[tag].firstBlock
        while block != .max { block = blocks.free(block) }
        self[tag].firstBlock = .max
    }

    /// Free bytes of a slot after its token.
    private func personalRoom(_ tag: RowTag) -> UnsafeMutableRawBufferPointer {
        let used = Int(self[tag].tokenCount)
        assert(used <= Self.tokenDigitsLimit, "a token is in its room")
        // SAFETY: a token has at most `tokenDigitsLimit` bytes, and each slot has room for that
        // many.
        return unsafe UnsafeMutableRawBufferPointer(
            start: token(tag) + used, count: Self.tokenDigitsLimit - used)
    }
}
