import Campaign

/// Blocks of a fixed size, chained: a fixed number, so that it never allocates.
///
/// A part of the slab, which deallocates it.
@safe struct BlockArena {
    static let blockSize = 256
    /// What a block holds, beside the number of the next one.
    static let contentCount = blockSize - 4

    private let memory: UnsafeMutableRawPointer
    private let capacity: Int
    private var freeHead = UInt32.max
    private var untouched: UInt32 = 0
    private(set) var freeCount: Int

    init(capacity: Int) {
        precondition(capacity < Int(UInt32.max))
        self.capacity = capacity
        freeCount = capacity
        unsafe memory = .allocate(byteCount: capacity * Self.blockSize, alignment: 64)
    }

    func deallocate() {
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
        }
        unsafe place(block).storeBytes(of: next, as: UInt32.self)
        return block
    }

    /// Gives a block back; what its chain goes on with.
    mutating func free(_ block: UInt32) -> UInt32 {
        let next = next(block)
        unsafe place(block).storeBytes(of: freeHead, as: UInt32.self)
        freeHead = block
        freeCount += 1
        return next
    }

    func next(_ block: UInt32) -> UInt32 {
        unsafe place(block).load(as: UInt32.self)
    }

    /// What a block holds.
    func content(_ block: UInt32) -> UnsafeMutableRawPointer {
        unsafe place(block) + 4
    }

    private func place(_ block: UInt32) -> UnsafeMutableRawPointer {
        precondition(Int(block) < capacity)
        return unsafe memory + Int(block) * Self.blockSize
    }
}

extension RowSlab {
    /// Blocks, beside half a place for each row in flight, for what does not fit behind tokens:
    /// divided among a run's reactors.
    static let sharedBlocks = 16 << 20 / BlockArena.blockSize

    /// Keeps a row's pieces, until the place is freed. The token is set before.
    mutating func keep(
        _ pieces: UnsafeRawBufferPointer, shape: PayloadRenderer.Shape, of tag: RowTag
    ) {
        precondition(pieces.count == Int(shape.count))
        self[tag].personal = shape
        let room = unsafe personalRoom(tag)
        let inside = min(room.count, pieces.count)
        unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: pieces[..<inside]))
        // From the last block to the first, so that each knows its next.
        var block = UInt32.max
        let rest = pieces.count - inside
        var start = inside + (BlockArena.blocks(for: rest) - 1) * BlockArena.contentCount
        while start >= inside, rest > 0 {
            let end = min(pieces.count, start + BlockArena.contentCount)
            block = blocks.take(next: block)
            unsafe blocks.content(block).copyMemory(
                from: pieces.baseAddress! + start, byteCount: end - start)
            start -= BlockArena.contentCount
        }
        self[tag].firstBlock = block
    }

    /// A row's pieces, one after the other.
    ///
    /// - Parameter scratch: Where they are put together if they do not lie so.
    func pieces(
        _ tag: RowTag, scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        let count = Int(self[tag].personal.count)
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
        return unsafe UnsafeMutableRawBufferPointer(
            start: token(tag) + used, count: Self.tokenDigitsLimit - used)
    }
}
