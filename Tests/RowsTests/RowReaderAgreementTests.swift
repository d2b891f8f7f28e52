import BroadsideTestSupport
import Testing

@testable import BroadsideRows

/// The two ways on which each format's rows are read agree, whatever the rows are.
@Suite struct RowReaderAgreementTests {
    /// A row as a reader gives it, with the first of its fields.
    private struct Read: Equatable {
        var row: RowReader.Row
        var forms: [RowReader.Field.Form]
        var values: [[UInt8]]
    }

    private static let objects = [
        #"{"name":"Ada","token":"0123456789abcdef0123456789abcdef","city":"Paris"}"#,
        #"{"token": "aa", "name": "Zoë", "badge": -7.5e3}"#, #"{ "name" : null , "token":"aa" } "#,
        #"{"token":"aa","token":"bb","name":true,"name":false}"#, #"{"name":"","token":""}"#,
        #"{"\u0074oken":"aa","name":"\ud83c\udf89 \"x\" \\ \/"}"#, #"{"name":"\ud800"}"#,
        #"{"token":{"a":[1,{"b":"}"}],"c":"]"},"name":["x"]}"#, #"{}"#, #"[1]"#, #"7"#, "", "  ",
        #"{"a":[[[[[[[[1]]]]]]]],"token":"aa"}"#, #"{"name":"日本語 русский","token":"aa"}"#,
    ]
    private static let records = [
        "aa,Ada,Paris", "aa,\"Paris, \"\"France\"\"\",x", "\"aa\",\"b\nc\",\"d\"", ",,", "", "  ",
        "aa", "aa,b,c,d,\"e\",f\"g\"", "aa,5\" disk,\"x\"", "\"aa\"x,b,c", "aa,b,\"c\" ,d",
        "aa,b,\"open", "aa,b,c,\"d\r\ne\"", "aa,b,c,,\"\"",
        "0123456789abcdef0123456789abcdef,a name of more than sixteen bytes,and \"another\" one",
    ]
    private static let edits = Array(" \t\r\n\"\\,:{}[]0e\u{1}\u{7f}".utf8) + [0x80, 0xc3, 0xff]

    /// Some of the lines, most of them with a few bytes that were put in, replaced or left out.
    private static func list(_ lines: [String], _ random: inout SeededRandom) -> [UInt8] {
        var list: [UInt8] = []
        for _ in 0..<Int.random(in: 1...5, using: &random) {
            var line = Array(lines.randomElement(using: &random)!.utf8)
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let byte = edits.randomElement(using: &random)!
                let place = Int.random(in: 0...line.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: line.insert(byte, at: place)
                case 1 where place < line.count: line[place] = byte
                case 2 where place < line.count: line.remove(at: place)
                default: break
                }
            }
            let end = Bool.random(using: &random) ? "\n" : "\r\n"
            list += line + Array(end.utf8)
        }
        if Bool.random(using: &random) { list.removeLast() }
        return list
    }

    private static func read(
        _ list: [UInt8], _ layout: RowLayout, fields: Int
    ) -> [Read] {
        let pool = ChunkPool(limit: 2)
        // Rows behind a header: what comes before them does not matter here.
        var splitter = RowSplitter(
            format: layout.format, pool: pool, start: ListPosition(byteOffset: 1, row: 0, line: 2))
        var reader = RowReader(layout: layout)
        var found: [Read] = []
        cut(&splitter, pool: pool, pieces: [list]) { chunk in
            reader.open(chunk)
            var count = 0
            while let row = reader.next() {
                count += 1
                let read = (0..<fields).map { reader.field($0) }
                found.append(
                    Read(row: row, forms: read.map(\.form), values: read.map { reader.value($0) }))
            }
            #expect(count == chunk.rowCount)
            _ = reader.close()
        }
        return found
    }

    private static let seeds: Range<UInt64> = 0..<4_000

    @Test func `A column inside an object changes nothing about the other columns`() throws {
        // With a path every object is read token by token, otherwise most in one pass.
        let flat = try RowLayout(format: .jsonl, names: ["token", "name"])
        let general = try RowLayout(format: .jsonl, names: ["token", "name", "no.such"])
        for seed in Self.seeds {
            var random = SeededRandom(seed: seed)
            let list = Self.list(Self.objects, &random)
            #expect(
                Self.read(list, flat, fields: 2) == Self.read(list, general, fields: 2),
                "\(seed): \(String(decoding: list, as: UTF8.self))")
        }
    }

    @Test func `More columns change nothing about the first ones`() throws {
        let header = Array("a,b,c,d,e,f,g".utf8)
        // Behind the last wanted column only quotes and the row's end are looked for.
        let few = try RowLayout(format: .csv, names: ["a", "b"], header: header)
        let all = try RowLayout(
            format: .csv, names: ["a", "b", "c", "d", "e", "f", "g"], header: header)
        for seed in Self.seeds {
            var random = SeededRandom(seed: seed)
            let list = Self.list(Self.records, &random)
            #expect(
                Self.read(list, few, fields: 2) == Self.read(list, all, fields: 2),
                "\(seed): \(String(decoding: list, as: UTF8.self))")
        }
    }
}
