import Testing

@testable import BroadsideRows

@Suite struct ListDecompressorTests {
    /// Text that packs well in places and badly in others.
    private static func text(_ count: Int) -> [UInt8] {
        var state: UInt64 = 7
        return (0..<count).map { place in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return place % 1_000 < 300 ? 0x61 : UInt8(truncatingIfNeeded: state >> 56)
        }
    }

    private func pack(_ bytes: [UInt8], _ compression: ListCompression) -> [UInt8] {
        var compressor = ListCompressor(compression)
        var packed: [UInt8] = []
        let (whole, half) = (bytes.span.bytes, bytes.count / 2)
        for (part, isLast) in [(0..<half, false), (half..<bytes.count, true)] {
            compressor.encode(whole.extracting(part), isLast: isLast) { piece in
                piece.withUnsafeBytes { packed += $0 }
            }
        }
        return packed
    }

    private enum End: Equatable {
        case whole([UInt8])
        case cutOff([UInt8])
        case fault([UInt8], ListDecompressor.Fault)
    }

    private func unpack(
        _ packed: [UInt8], _ compression: ListCompression, input: Int = 4_096, output: Int = 5_000
    ) -> End {
        var decompressor = ListDecompressor(compression)
        var result: [UInt8] = []
        var room = [UInt8](repeating: 0, count: output)
        var offset = 0
        var isAtEnd = false
        while true {
            let piece = Array(packed[offset..<min(offset + input, packed.count)])
            isAtEnd = piece.isEmpty
            do throws(ListDecompressor.Fault) {
                let step = room.withUnsafeMutableBytes { target in
                    Result { () throws(ListDecompressor.Fault) in
                        try decompressor.decode(piece.span.bytes, into: target)
                    }
                }
                let progress = try step.get()
                result += room[..<progress.produced]
                offset += progress.consumed
                if isAtEnd, progress.produced == 0 {
                    return decompressor.mayEnd ? .whole(result) : .cutOff(result)
                }
            } catch {
                return .fault(result, error)
            }
        }
    }

    @Test(arguments: ListCompression.allCases, [0, 1, 5, 4_999, 5_000, 5_001, 300_000])
    func `A compressed list is decompressed into the original`(
        compression: ListCompression, count: Int
    ) {
        let text = Self.text(count)
        let packed = pack(text, compression)
        #expect(ListCompression.detect(Array(packed.prefix(4))) == compression)
        #expect(unpack(packed, compression) == .whole(text))
        #expect(unpack(packed, compression, input: 1 << 20, output: 1 << 20) == .whole(text))
    }

    @Test(arguments: ListCompression.allCases)
    func `Pieces of any size decompress alike`(compression: ListCompression) {
        let text = Self.text(3_000)
        let packed = pack(text, compression) + pack([], compression) + pack([1], compression)
        for input in [1, 2, 3, 7, 100] {
            for output in [1, 2, 13, 4_000] {
                #expect(
                    unpack(packed, compression, input: input, output: output) == .whole(text + [1]))
            }
        }
    }

    @Test(arguments: ListCompression.allCases)
    func `Members and frames are decompressed one after the other`(compression: ListCompression) {
        var text: [UInt8] = []
        var packed: [UInt8] = []
        for number in 0..<20 {
            let part = Self.text(number * 700)
            text += part
            packed += pack(part, compression)
            if compression == .zstd {
                // A skippable frame (RFC 8878, section 3.1.2) of five bytes.
                packed += [0x50 + UInt8(number % 16), 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 9, 9, 9, 9, 9]
            }
        }
        #expect(unpack(packed, compression) == .whole(text))
    }

    @Test(arguments: ListCompression.allCases)
    func `A compressed list cut at any byte is an error after the right prefix`(
        compression: ListCompression
    ) {
        let text = Self.text(2_000)
        let first = pack(text, compression)
        let packed = first + pack(text, compression)
        for count in 0..<packed.count where count != first.count {
            guard case .cutOff(let bytes) = unpack(Array(packed[..<count]), compression) else {
                Issue.record("\(count) of \(packed.count) bytes are taken for all")
                return
            }
            #expect((text + text).starts(with: bytes))
        }
        #expect(unpack(first, compression) == .whole(text))
    }

    @Test(arguments: ListCompression.allCases)
    func `Damage in a compressed list is never read as the list`(compression: ListCompression) {
        let text = Self.text(3_000)
        let packed = pack(text, compression)
        for place in packed.indices {
            for bit in [0, 4, 7] {
                var damaged = packed
                damaged[place] ^= 1 << UInt8(bit)
                // Some bits mean nothing: a time in a header, what fills the last byte.
                if case .whole(let bytes) = unpack(damaged, compression) {
                    #expect(bytes == text, "byte \(place), bit \(bit)")
                }
            }
        }
    }

    @Test func `Only zeros or another member may follow gzip data`() {
        let text = Self.text(100)
        let packed = pack(text, .gzip)
        #expect(unpack(packed + [0, 0, 0], .gzip) == .whole(text))
        for tail: [UInt8] in [[1], [0, 0x1f, 0x8b], Array("token\n".utf8)] {
            let fault = ListDecompressor.Fault.corrupt("other data follows its gzip data")
            let end = unpack(packed + tail, .gzip)
            guard case .fault(_, fault) = end else {
                Issue.record("\(end)")
                continue
            }
        }
    }

    @Test(arguments: ListCompression.allCases)
    func `A fault at the end comes after all bytes, also if one call decompresses them`(
        compression: ListCompression
    ) {
        let text = Self.text(3_000)
        let packed = pack(text, compression) + Array("\n\n\n\n".utf8)
        var decompressor = ListDecompressor(compression)
        var output = [UInt8](repeating: 0, count: 2 * text.count)
        var fault: ListDecompressor.Fault?
        output.withUnsafeMutableBytes { room in
            do throws(ListDecompressor.Fault) {
                _ = try decompressor.decode(packed.span.bytes, into: room)
            } catch {
                fault = error
            }
        }
        let lostCount = decompressor.lostCount
        #expect(fault != nil && lostCount == text.count)
    }

    @Test func `A zstd frame with a too large window is refused`() {
        // A frame header (RFC 8878, section 3.1.1.1) with a window of 2^24 bytes, and one of 2^23.
        let mark: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd, 0x00]
        let emptyBlock: [UInt8] = [0x01, 0x00, 0x00]
        #expect(unpack(mark + [14 << 3] + emptyBlock, .zstd) == .fault([], .windowTooLarge))
        #expect(unpack(mark + [13 << 3] + emptyBlock, .zstd) == .whole([]))
    }

    @Test func `Names and first bytes tell the compression`() {
        #expect(ListCompression.named("a.CSV.GZ") == .gzip)
        #expect(ListCompression.named("a.zst") == .zstd)
        #expect(ListCompression.named("gz") == nil)
        #expect(ListCompression.detect([0x5f, 0x2a, 0x4d, 0x18]) == .zstd)
        #expect(ListCompression.detect(Array("aabb".utf8)) == nil)
        #expect(ListCompression.detect([0x1f]) == nil)
    }
}
