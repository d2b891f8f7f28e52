import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideRows

@Suite struct RowSplitterTests {
    @Test func `Blank lines are not rows, and lines still count them`() throws {
        let list = "\n  \naa\r\n\r\n\t\nbb\n\ncc"
        let expected = [
            RowFacts(number: 0, line: 3, fields: ["aa"]),
            RowFacts(number: 1, line: 6, fields: ["bb"]),
            RowFacts(number: 2, line: 8, fields: ["cc"]),
        ]
        for pieceSize in [1, 2, 3, 7, 100] {
            for rowLimit in [1, 2, 100] {
                #expect(try rows(list, rowLimit: rowLimit, pieceSize: pieceSize) == expected)
            }
        }
        #expect(try rows("") == [])
        #expect(try rows("\n\r\n \n") == [])
        #expect(cut(Array("\n\n".utf8)) == [])
    }

    @Test func `A byte order mark is skipped at the start of the list only`() throws {
        for pieceSize in [1, 2, 3, 100] {
            #expect(
                try rows("\u{feff}aa\n\u{feff}bb\n", pieceSize: pieceSize) == [
                    RowFacts(number: 0, line: 1, fields: ["aa"]),
                    RowFacts(number: 1, line: 2, fields: ["\u{feff}bb"]),
                ])
        }
        let mark: [UInt8] = [0xef, 0xbb, 0xbf]
        #expect(cut(mark) == [])
        #expect(cut(mark + [0x61])[0].start == ListPosition(byteOffset: 3))
        // Two bytes of a mark are text.
        for pieceSize in [1, 2, 100] {
            #expect(cut([0xef, 0xbb], pieceSize: pieceSize).map(\.bytes) == [[0xef, 0xbb]])
            #expect(
                cut([0xef, 0xbb, 0x61, 0x0a], pieceSize: pieceSize).map(\.bytes)
                    == [[0xef, 0xbb, 0x61, 0x0a]])
        }
    }

    @Test func `A first line sep=; is skipped before the header, and only there`() throws {
        for mark in ["", "\u{feff}"] {
            for pieceSize in [1, 2, 3, 7, 100] {
                for rowLimit in [1, 100] {
                    func read(_ list: String) throws -> [RowFacts] {
                        try rows(
                            mark + list, format: .semicolonCSV, rowLimit: rowLimit,
                            pieceSize: pieceSize)
                    }
                    let expected = [
                        RowFacts(number: 0, line: 3, fields: ["aa"]),
                        RowFacts(number: 1, line: 4, fields: ["sep="]),
                    ]
                    #expect(try read("sep=;\r\nid;token\r\n1;aa\r\n;sep=\r\n") == expected)
                    #expect(try read("\"SEP=;\"\nid;token\n1;aa\n;sep=\n") == expected)
                    // The second one is a header, whose column has another name.
                    #expect(throws: RowLayout.HeaderError.self) { try read("sep=;\nsep=;\n") }
                    #expect(throws: RowLayout.HeaderError.self) { try read("sep=,\nid;token\n") }
                }
            }
        }
    }

    /// A list of lines of all kinds; some lists hold a line that is longer than a chunk.
    func anyList(_ random: inout SeededRandom) -> [UInt8] {
        var list: [UInt8] = Bool.random(using: &random) ? [0xef, 0xbb, 0xbf] : []
        for _ in 0..<Int.random(in: 0...3_000, using: &random) {
            switch Int.random(in: 0..<2_000, using: &random) {
            case 0:
                list += [UInt8](
                    repeating: 0x61, count: Int.random(in: 60_000...200_000, using: &random))
            case 1:
                list += [UInt8](repeating: 0x0a, count: Int.random(in: 0...70_000, using: &random))
            case 2..<60: list += [0x20, 0x20]
            default:
                list += (0..<Int.random(in: 0...90, using: &random)).map { _ in
                    UInt8.random(in: 0x30...0x39, using: &random)
                }
            }
            list += Bool.random(using: &random) ? [0x0a] : [0x0d, 0x0a]
        }
        if Bool.random(using: &random), !list.isEmpty { list.removeLast() }
        return list
    }

    /// Non-blank lines with their numbers, by the plainest means.
    func plainRows(_ list: [UInt8]) -> [RowFacts] {
        var text = list[...]
        if text.starts(with: [0xef, 0xbb, 0xbf]) { text = text.dropFirst(3) }
        var rows: [RowFacts] = []
        for (index, line) in text.split(separator: 0x0a, omittingEmptySubsequences: false)
            .enumerated()
        {
            if line.allSatisfy({ $0 == 0x20 || $0 == 0x0d || $0 == 0x09 }) { continue }
            rows.append(RowFacts(number: UInt64(rows.count), line: UInt64(index + 1), fields: []))
        }
        return rows
    }

    @Test(arguments: 0..<12 as Range<UInt64>)
    func `Chunks of a list are the same however the bytes arrive`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let list = anyList(&random)
        let rowLimit = [1, 7, 300, .max].randomElement(using: &random)!
        let whole = cut(list, rowLimit: rowLimit)
        for pieceSize in [Int.random(in: 1...50, using: &random), 4_095, 4_097, 65_537] {
            #expect(cut(list, rowLimit: rowLimit, pieceSize: pieceSize) == whole)
        }

        // Chunks follow each other; between them lie blank lines only.
        var row: UInt64 = 0
        var end = list.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        for chunk in whole {
            #expect(chunk.start.row == row)
            let gap = list[end..<Int(chunk.start.byteOffset)]
            #expect(gap.allSatisfy { $0 == 0x20 || $0 == 0x0d || $0 == 0x0a })
            row = chunk.end.row
            end = Int(chunk.end.byteOffset)
            #expect(chunk.end.row - chunk.start.row <= UInt64(rowLimit))
            let covered = list[Int(chunk.start.byteOffset)..<end]
            #expect(covered.starts(with: chunk.bytes))
            #expect(chunk.isOverlong == (covered.count > RowChunk.rowByteCountMax))
        }
        #expect(list[end...].allSatisfy { $0 == 0x20 || $0 == 0x0d || $0 == 0x0a })
        #expect(row == UInt64(plainRows(list).count))
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `Rows and lines are numbered as a plain reader numbers them`(seed: UInt64) throws {
        var random = SeededRandom(seed: 100 + seed)
        let list = anyList(&random)
        let found = try rows(String(decoding: list, as: UTF8.self), rowLimit: 100, pieceSize: 1_000)
        #expect(found.map(\.number) == plainRows(list).map(\.number))
        #expect(found.map(\.line) == plainRows(list).map(\.line))
    }

    /// A resumed run cuts the chunks of the first run again, whatever its own limits are.
    @Test(arguments: 0..<12 as Range<UInt64>)
    func `A resumed run cuts the chunks of the first run again with other limits`(seed: UInt64) {
        var random = SeededRandom(seed: 200 + seed)
        let list = anyList(&random)
        let known = cut(list, rowLimit: [50, 1_000, .max].randomElement(using: &random)!)
        guard let from = known.indices.randomElement(using: &random) else { return }

        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .lines, pool: pool, start: known[from].start, rowLimit: 13)
        var wanted = from
        var offset = 0
        let rest = Array(list[Int(known[from].start.byteOffset)...])
        var again: [ChunkFacts] = []
        while wanted < known.count {
            // Blank lines between chunks are a chunk of no rows when they have to be cut exactly.
            let position = cutter.position.byteOffset
            let gapEnd = known[wanted].start.byteOffset
            cutter.endChunk(
                at: position < gapEnd ? gapEnd : known[wanted].end.byteOffset, isExact: true)
            guard case .chunk(let chunk) = cutter.next(rest.span.bytes, at: &offset) else {
                Issue.record("no chunk")
                return
            }
            if position == gapEnd {
                again.append(facts(chunk))
                wanted += 1
            }
            pool.giveBack(chunk)
        }
        #expect(again == Array(known[from...]))
    }

    @Test func `A chunk ends at a boundary that is asked for`() {
        let list = Array(String(repeating: "abcdefgh\n", count: 100).utf8)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .lines, pool: pool, rowLimit: 7)
        cutter.endChunk(at: 90, isExact: false)
        var counts: [Int] = []
        cut(&cutter, pool: pool, pieces: [list]) { counts.append($0.rowCount) }
        #expect(counts.prefix(3) == [7, 3, 7])
        #expect(counts.reduce(0, +) == 100)
    }

    @Test func `Without a free chunk the splitter waits for the pool`() {
        let list = [UInt8](repeating: 0x61, count: 40_000) + [0x0a]
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .lines, pool: pool)
        let input = list + list + list + list
        var offset = 0
        guard case .chunk(let first) = cutter.next(input.span.bytes, at: &offset) else {
            Issue.record("no chunk")
            return
        }
        guard case .poolEmpty = cutter.next(input.span.bytes, at: &offset) else {
            Issue.record("the pool has a third chunk")
            return
        }
        pool.giveBack(first)
        guard case .chunk(let second) = cutter.next(input.span.bytes, at: &offset) else {
            Issue.record("no second chunk")
            return
        }
        #expect(second.start.row == 1)
        #expect(array(second.bytes) == list)
        pool.giveBack(second)
    }

    @Test func `The hash of a chunk differs if a byte differs, and never changes between versions`()
    {
        let long = [UInt8](repeating: 0x61, count: 100_000)
        var other = long
        other[99_999] = 0x62
        #expect(cut(long)[0].hash != cut(other)[0].hash)
        #expect(cut(Array("aa\nbb\n".utf8))[0].hash != cut(Array("aa\nbc\n".utf8))[0].hash)
        // On disk in ledgers: never changes.
        #expect(cut(Array("ab".utf8))[0].hash == 408_522_047_510_455_992)
    }
}
