import BroadsideRows

extension FuzzTarget {
    /// A packed list: however it arrives, and however little room there is, it is the same list, or
    /// none.
    static let packedList = FuzzTarget(name: "packed-list") { bytes in
        var input = FuzzInput(bytes)
        let compression = ListCompression.allCases[input.choice(below: 2)]
        let inputSize = 1 + input.choice(below: 64)
        let outputSize = 1 + 7 * input.choice(below: 200)
        let packed = input.bytes
        _ = ListCompression.detect(packed)
        let whole = unpack(packed, compression, inputSize: 1 << 20, outputSize: 1 << 16)
        let torn = unpack(packed, compression, inputSize: inputSize, outputSize: outputSize)
        // Of a list that is longer than that only the beginning was looked at.
        guard whole.list.count < unpackedLimit, torn.list.count < unpackedLimit else { return }
        // Where the last block is empty, libzstd compares a frame's size with the announced one only
        // if it gets the frame in one piece.
        precondition(
            whole.isSound == torn.isSound || compression == .zstd,
            "how the list arrived made it another")
        if whole.isSound, torn.isSound {
            precondition(whole.list == torn.list, "the list has other bytes")
            precondition(whole.mayEnd == torn.mayEnd, "the list has another end")
        }
    }

    /// A few bytes may unpack to very many.
    private static let unpackedLimit = 1 << 18

    private struct Unpacked {
        var list: [UInt8] = []
        var isSound = true
        var mayEnd = false
    }

    private static func unpack(
        _ packed: [UInt8], _ compression: ListCompression, inputSize: Int, outputSize: Int
    ) -> Unpacked {
        var decompressor = ListDecompressor(compression)
        var unpacked = Unpacked()
        // Memory of exactly this size, so that a write beyond it can be noticed.
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: outputSize, alignment: 1)
        defer { room.deallocate() }
        var offset = 0
        while unpacked.list.count < unpackedLimit {
            let piece = Array(packed[offset..<min(offset + inputSize, packed.count)])
            let step = Result { () throws(ListDecompressor.Fault) in
                try decompressor.decode(piece.span.bytes, into: room)
            }
            guard case .success(let progress) = step else {
                unpacked.isSound = false
                return unpacked
            }
            precondition(progress.consumed >= 0 && progress.consumed <= piece.count)
            precondition(progress.produced >= 0 && progress.produced <= outputSize)
            unpacked.list += room[..<progress.produced]
            offset += progress.consumed
            if progress.produced == 0, progress.consumed == 0 {
                precondition(piece.isEmpty, "nothing is taken, and nothing is said")
                break
            }
        }
        unpacked.mayEnd = decompressor.mayEnd
        return unpacked
    }
}
