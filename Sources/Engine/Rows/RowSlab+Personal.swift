import BroadsidePayloads

/// Blocks of a fixed size, chained: a fixed number, so that it never allocates.
///
/// A part of the slab, which deallocates it.
@safe struct BlockArena {
    static let blockSize = 256
    /// What a block holds, beside the number of the next one.
    static let contentCount = blockSize - 4

    // SAFETY: `capacity` blocks that never move; the slab that this is a part of frees them, and
    // alone reaches them. A block that was taken or freed has the number of the next one in its
    // first four bytes.
    private let memory: UnsafeMutableRawPointer
    private let capacity: Int
    private var freeHead = UInt32.max
    private var untouched: UInt32 = 0
    private(set) var freeCount: Int

    init(capacity: Int) {
        precondition(capacity < Int(UInt32.max))
        self.capacity = capacity
        freeCount = capacity
        // SAFETY: a block is set before it is read, by `take`.
        unsafe memory = .allocate(byteCount: capacity * Self.blockSize, alignment: 64)
    }

    func deallocate() {
        // SAFETY: called once, at the slab's end.
        unsafe memory.deallocate()
    }

    /// Blocks that hold so many bytes.
    static func blocks(for count: Int) -> Int { (count + contentCount - 1) / contentCount }

    /// Takes a block whose chain goes on with `next`. There must be one.
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

    /// Gives a block back; what its chain goes on with.
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

    /// What a block holds.
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
    /// Blocks, beside half a place for each row in flight, for what does not fit behind tokens:
    /// divided among a run's reactors.
    static let sharedBlocks = 16 << 20 / BlockArena.blockSize

    /// Keeps a row's pieces, until the place is freed. The token is set before.
    mutating func keep(
        _ fieldValues: RawSpan, shape: PayloadRenderer.Shape, of tag: RowTag
    ) {
        precondition(fieldValues.byteCount == Int(shape.count))
        self[tag].personal = shape
        // SAFETY: `inside` is at most either count, and what is left goes to blocks a piece of at
        // most `contentCount` bytes at a time, the last from `start` to the end; the caller's
        // pieces lie elsewhere.
        let room = unsafe personalRoom(tag)
        let inside = min(room.count, fieldValues.byteCount)
        unsafe fieldValues.extracting(0..<inside).withUnsafeBytes {
            unsafe room.copyMemory(from: $0)
        }
        // From the last block to the first, so that each knows its next.
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

    /// A row's pieces, one after the other.
    ///
    /// - Parameter scratch: Where they are put together if they do not lie so.
    func fieldValues(
        _ tag: RowTag, scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        let count = Int(self[tag].personal.count)
        // SAFETY: `keep` has set so many bytes, behind the token and in a chain of as many blocks
        // as that takes; the scratch has room for the most pieces that a row may have, as `keep`
        // got them from a renderer.
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

    /// What a place has left behind its token.
    private func personalRoom(_ tag: RowTag) -> UnsafeMutableRawBufferPointer {
        let used = Int(self[tag].tokenCount)
        assert(used <= Self.tokenDigitsLimit, "a token is in its room")
        // SAFETY: a token has at most `tokenDigitsLimit` bytes, for which each place has room.
        return unsafe UnsafeMutableRawBufferPointer(
            start: token(tag) + used, count: Self.tokenDigitsLimit - used)
    }
}
