import Testing

@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// The rules of the documents for rows that break the grammar of their format, as tables.
@Suite struct RowGrammarTests {
    /// What a row is: its line, and its fields; nil where it is malformed.
    private struct Expected: Equatable {
        var line: UInt64
        var fields: [String?]?

        init(_ line: UInt64, _ fields: [String?]?) {
            self.line = line
            self.fields = fields
        }
    }

    private static let delimited: [(text: String, rows: [Expected])] = [
        // The row ends at its line break, and those behind it are rows of their own.
        (
            "A,\"Bob\nB\",\"x\n\"Bob\nB,Cy\nC,\"Di\"\nD,\"E\"\"e\"\n",
            [
                .init(2, nil), .init(5, ["B", "Cy"]), .init(6, ["C", "Di"]),
                .init(7, ["D", "E\"e"]),
            ]
        ),
        ("\"Bob\"x,\"\nB,Cy\n", [.init(2, nil), .init(3, ["B", "Cy"])]),
        ("A,\"a\nb\"x\"\nB,y\n", [.init(2, nil), .init(4, ["B", "y"])]),
        ("A,\"b\" \nB,y", [.init(2, nil), .init(3, ["B", "y"])]),
        ("\"A\" ,b\nB,y", [.init(2, nil), .init(3, ["B", "y"])]),
        ("\"A\"\"\"x,b\nB,y", [.init(2, nil), .init(3, ["B", "y"])]),
        // A carriage return is part of a line break; inside quotes it is text.
        ("A,\"b\"\r\nB,y\r\n", [.init(2, ["A", "b"]), .init(3, ["B", "y"])]),
        ("A,\"b\"\r\nB,y\r", [.init(2, ["A", "b"]), .init(3, ["B", "y"])]),
        ("A,b\nB,\"y\rz\"\n", [.init(2, ["A", "b"]), .init(3, ["B", "y\rz"])]),
        // Quotes elsewhere are text.
        ("A,5\" disk\nB, \"y\"\n", [.init(2, ["A", "5\" disk"]), .init(3, ["B", " \"y\""])]),
        ("A,\"\"\nB,\"\"\"\"\n", [.init(2, ["A", ""]), .init(3, ["B", "\""])]),
        // So is one with more fields than the header, whatever is in quotes.
        ("A,b,\nB,y", [.init(2, nil), .init(3, ["B", "y"])]),
        (
            "A,\"b\",c\r\nB,\"y\nz\",\"\"\nC,z,,\nD,w",
            [
                .init(2, nil), .init(3, nil), .init(5, nil), .init(6, ["D", "w"]),
            ]
        ),
        ("A,\"b\"", [.init(2, ["A", "b"])]), ("A,\"b\"x", [.init(2, nil)]),
        ("A\n,\n\n\"\"\n", [.init(2, ["A", nil]), .init(3, ["", ""]), .init(5, ["", nil])]),
    ]

    @Test(arguments: delimited.indices, [ListFormat.csv, .semicolonCSV])
    private func `Malformed rows end at their line break`(
        index: Int, format: ListFormat
    ) throws {
        let separator = String(Unicode.Scalar(format.separator!))
        func written(_ text: String) -> String {
            text.split(separator: ",", omittingEmptySubsequences: false)
                .joined(separator: separator)
        }
        let entry = Self.delimited[index]
        let list = Array(written("a,b\n" + entry.text).utf8)
        for pieceSize in [1, 2, 3, 7, 1_000] {
            for rowLimit in [1, 2, .max] {
                let found = try read(list, format, ["a", "b"], pieceSize, rowLimit)
                #expect(found == entry.rows)
            }
        }
    }

    /// Lines with tabs, and what is in their columns.
    private static let tabbed: [(text: String, rows: [Expected])] = [
        // As `mysql -B` and `COPY` write them: quotes are text.
        ("A\t\"b\nB\tc\"\n", [.init(2, ["A", "\"b"]), .init(3, ["B", "c\""])]),
        ("\"A\t5\"\nB\t\"x\" y\n", [.init(2, ["\"A", "5\""]), .init(3, ["B", "\"x\" y"])]),
        ("A\t\"\nB\t\"a\"b\"\n", [.init(2, ["A", "\""]), .init(3, ["B", "\"a\"b\""])]),
        ("A\t\\N\n\\N\t\\NN\n", [.init(2, ["A", nil]), .init(3, [nil, "\\NN"])]),
        // As spreadsheets and Python write them.
        ("\"A\"\t\"b \"\"c\"\"\"\r\n", [.init(2, ["A", "b \"c\""])]),
        ("A\t\"\\N\"\nB\t\"\"\n", [.init(2, ["A", "\\N"]), .init(3, ["B", ""])]),
        ("A\t\"b\tc\"\n\"A\tB\"\t\"\"\n", [.init(2, ["A", "b\tc"]), .init(3, ["A\tB", ""])]),
        // Where the fields are as many as the header's, tabs are none of their text.
        ("\"A\tb\"\n", [.init(2, ["\"A", "b\""])]),
        // Too many, whatever is in quotes.
        ("A\tb\tc\nB\ty\t\n", [.init(2, nil), .init(3, nil)]),
        ("A\t\"b\t\"c\nB\ty", [.init(2, nil), .init(3, ["B", "y"])]),
        (
            "A\n\t\n  \n\r\nB\ty\r",
            [
                .init(2, ["A", nil]), .init(3, ["", ""]), .init(6, ["B", "y"]),
            ]
        ),
    ]

    @Test(arguments: tabbed.indices)
    private func `Quotes in tab-separated rows never span lines`(index: Int) throws {
        let entry = Self.tabbed[index]
        for pieceSize in [1, 2, 3, 1_000] {
            for rowLimit in [1, .max] {
                let found = try read(
                    Array("a\tb\n\(entry.text)".utf8), .tsv, ["a", "b"], pieceSize, rowLimit)
                #expect(found == entry.rows)
            }
        }
    }

    @Test func `A text too long for a token is cut so that it is not one`() {
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(layout: .lines, pool: pool)
        let texts = [200, 201, 202, 400].map { String(repeating: "a", count: $0) }
        var rows = ListRows()
        cut(&cutter, pool: pool, pieces: [Array(texts.joined(separator: "\n").utf8)]) {
            rows.read($0, layout: .lines)
        }
        let found = (0..<rows.count).map {
            String(decoding: array(rows.text(of: $0)), as: UTF8.self)
        }
        let marked = String(repeating: "a", count: 197) + "…"
        #expect(found == [texts[0], marked, marked, marked])
        // As ledgers of earlier versions have it.
        var text = Array(texts[0].utf8)
        TextExcerpt.mark(&text)
        #expect(text == Array(marked.utf8))
    }

    @Test func `A header with tabs has quoted names, or quotes in names`() {
        func columns(_ header: String) -> [String] {
            RowLayout.columns(Array(header.utf8), separator: 0x09)
        }
        #expect(columns("token\t\"na\"\"me\"\t x \r") == ["token", "na\"me", "x"])
        #expect(columns("\"token\tname") == ["\"token", "name"])
        #expect(columns("\"a\tb\"\t\"\t") == ["a\tb", "\"", ""])
    }

    @Test func `Two columns of one name are found among many`() {
        var names = (0..<200_000).map { "c\($0)" } + ["token"]
        names.append("c7")
        #expect(throws: RowLayout.HeaderError.twice("c7")) {
            try RowLayout(
                format: .csv, names: ["token"], header: Array(names.joined(separator: ",").utf8))
        }
    }

    /// Rows of JSON Lines, and what the column `a.b` of each is.
    private static let objects: [(text: String, value: String?)] = [
        (#"{"a":{"b":"x"}}"#, "x"), (#"{"a.b":"x"}"#, "x"), (#"{"a.b":"x","a":{"b":"y"}}"#, "x"),
        (#"{"a":{"b":"y"},"a.b":"x"}"#, "x"), (#"{"a":{"b":"y"},"a.b":null}"#, nil),
        (#"{"a":{"b":"x"},"a":{"c":1}}"#, nil), (#"{"a":{"b":"x"},"a":7}"#, nil),
        (#"{"a":{"b":"x","b":"y"}}"#, "y"), (#"{"a":{"c":{"b":"x"}}}"#, nil),
        (#"{"a":[{"b":"x"}]}"#, nil), (#"{"x":{"a":{"b":"x"}}}"#, nil), (#"{"b":"x"}"#, nil),
        (#"{"x":{"b":"n"},"a":{"x":[{"b":"n"}],"b":7,"y":{"b":"n"}}}"#, "7"),
        (#"{"\u0061":{"\u0062":"\u0078\u00e9\ud83c\udf89\n\/"}}"#, "x\u{e9}\u{1f389}\n/"),
        (#"{"a":{"b":"x"},"\u0061.b":"y"}"#, "y"), (#"{"a":{"b":""}}"#, ""),
    ]

    @Test(arguments: objects.indices)
    private func `Keys may be paths, with escapes`(index: Int) throws {
        let entry = Self.objects[index]
        let found = try read(Array(entry.text.utf8), .jsonl, ["z", "a.b"], 1_000, .max)
        #expect(found == [Expected(1, [nil, entry.value])])
    }

    @Test func `The last of equal keys counts, however it is escaped`() throws {
        for (text, value) in [
            (#"{"token":"A","\u0074oken":"B"}"#, "B"), (#"{"\u0074oken":"B","token":"A"}"#, "A"),
            (#"{"token":"A","token":null}"#, nil), (#"{"token":"\u002B\u0041"}"#, "+A"),
            (#"{"t\u00f6ken":"A","tok":"B"}"#, nil),
        ] as [(String, String?)] {
            let found = try read(Array(text.utf8), .jsonl, ["token"], 1_000, .max)
            #expect(found == [Expected(1, [value])])
        }
        // A surrogate that stands alone is not text.
        let line = Array(#"{"token":"\ud800"}"#.utf8)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .jsonl, pool: pool)
        cut(&cutter, pool: pool, pieces: [line]) { chunk in
            var reader = RowReader(layout: try! RowLayout(format: .jsonl, names: ["token"]))
            reader.open(chunk)
            _ = reader.next()
            #expect(reader.field(0).form == .unusable)
            _ = reader.close()
        }
    }

    @Test(arguments: ["\n", "\r\n"], [ListFormat.lines, .jsonl])
    func `A row of lines is all of its line but the end`(
        end: String, format: ListFormat
    ) throws {
        let lines = [#"{"token":"aa"}"#, "oops", #"["x"]"#]
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool)
        var texts: [String] = []
        let list = Array(lines.joined(separator: end).utf8) + Array(end.utf8)
        cut(&cutter, pool: pool, pieces: [list]) { chunk in
            var reader = RowReader(layout: try! RowLayout(format: format, names: ["token"]))
            reader.open(chunk)
            while let row = reader.next() {
                let bytes = array(chunk.bytes).dropFirst(row.start).prefix(row.count)
                texts.append(String(decoding: bytes, as: UTF8.self))
            }
            _ = reader.close()
        }
        #expect(texts == lines)
    }

    @Test func `A row that is too long counts where it begins`() throws {
        let good = String(repeating: "ab", count: 32) + "\n"
        let long = String(repeating: "x", count: RowChunk.rowByteCountMax + 1) + "\n"
        let chunks = cut(Array((good + "\n" + good + long + long + good).utf8))
        let start = UInt64(2 * good.utf8.count + 1)
        let starts = chunks.filter(\.isOverlong).map(\.start)
        #expect(
            starts == [
                ListPosition(byteOffset: start, row: 2, line: 4),
                ListPosition(byteOffset: start + UInt64(long.utf8.count), row: 3, line: 5),
            ])
    }

    @Test(arguments: [65_535, 65_536, 65_537, 130_000, 1_048_575, 1_048_576, 1_048_577, 1_200_000])
    func `A row has at most 1 MiB`(count: Int) throws {
        let isTooLong = count > 1 << 20
        let digits = String(repeating: "ab", count: 32)
        for format in [ListFormat.lines, .csv, .jsonl] {
            for end in ["\n", ""] {
                let (head, stop) =
                    switch format {
                    case .lines: (digits, "")
                    case .jsonl: ("{\"token\":\"\(digits)\",\"name\":\"", "\"}")
                    default: ("\(digits),\"", "\n\"")
                    }
                let filler = String(
                    repeating: " ", count: count - head.utf8.count - stop.utf8.count)
                let header = format == .csv ? "token,name\n" : ""
                let list = Array((header + head + filler + stop + end).utf8)
                let pieces = split(list, pieceSize: 100_000)
                let pool = ChunkPool(limit: 2)
                var cutter = RowSplitter(format: format, pool: pool)
                var survey = ListSurvey()
                let layout = try RowLayout(
                    format: format, names: ["token"], header: Array("token,name".utf8))
                var reader = RowReader(layout: layout)
                var start = ListPosition()
                cut(&cutter, pool: pool, pieces: pieces) { chunk in
                    start = chunk.start
                    #expect(chunk.isOverlong == isTooLong)
                    reader.open(chunk)
                    while let row = reader.next() { _ = survey.take(row, of: reader) }
                    _ = reader.close()
                }
                #expect(survey.counts.rows == 1)
                #expect(survey.counts.valid == (isTooLong ? 0 : 1))
                #expect(survey.counts.malformedRows == (isTooLong ? 1 : 0))
                // As a resume reads it: up to where the ledger says that the row ends.
                cutter = RowSplitter(format: format, pool: pool, start: start)
                cutter.endChunk(at: UInt64(list.count), isExact: true)
                let rest = split(Array(list[Int(start.byteOffset)...]), pieceSize: 100_000)
                cut(&cutter, pool: pool, pieces: rest) { chunk in
                    #expect(chunk.isOverlong == isTooLong && chunk.rowCount == 1)
                }
            }
        }
    }

    @Test func `A column is found in another case if only one matches`() throws {
        func layout(_ header: String, _ names: [String]) throws(RowLayout.HeaderError) -> RowLayout
        {
            try RowLayout(format: .csv, names: names, header: Array(header.utf8))
        }
        #expect(try layout("id,Device Token", ["device token"]).columnIndices == [1])
        #expect(try layout("Token,token", ["token"]).columnIndices == [1])
        let both = try layout("x,Token", ["token", "x", "TOKEN"])
        #expect(both.names == ["token", "x"] && both.field(named: "TOKEN") == 0)
        #expect(both.field(named: "x") == 1 && both.field(named: "y") == nil)
        for (header, error) in [
            ("Token,TOKEN", RowLayout.HeaderError.ambiguous("token", columns: ["Token", "TOKEN"])),
            ("token,a,a", .twice("a")), ("token,\"a\",a", .twice("a")),
            ("token,\"a\"x", .malformed), ("\"token", .malformed),
            ("id", .missing("token", columns: ["id"])),
        ] {
            #expect(throws: error) { try layout(header, ["token"]) }
        }
        // Spreadsheets leave columns without a name.
        #expect(try layout("token,,", ["token"]).columnIndices == [0])
    }

    @Test func `A semicolon is found as separator in the header outside quotes`() {
        for (header, format) in [
            ("id;token\n1,2", ListFormat.semicolonCSV), ("id,token\n1;2", .csv),
            ("\"a;b\",token\n", .csv), ("\"a,b\";token\n", .semicolonCSV), ("token\n1;2", .csv),
            ("a;b,token\n", .csv), ("a,b;token\n", .semicolonCSV),
            ("\u{feff}\na;token", .semicolonCSV),
            ("  \n \n id;token\n1,2", .semicolonCSV),
            ("a,b;c\n", .csv), ("\"a\nb\";token\n", .semicolonCSV),
        ] {
            #expect(
                ListFormat.separator(Array(header.utf8), tokenColumn: "token") == format,
                "\(header)")
        }
    }

    private func read(
        _ list: [UInt8], _ format: ListFormat, _ columns: [String], _ pieceSize: Int,
        _ rowLimit: Int
    ) throws -> [Expected] {
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool, rowLimit: rowLimit)
        let separator = format.separator.map { String(Unicode.Scalar($0)) } ?? ""
        let layout = try RowLayout(
            format: format, names: columns, header: Array(columns.joined(separator: separator).utf8)
        )
        var reader = RowReader(layout: layout)
        var found: [Expected] = []
        cut(&cutter, pool: pool, pieces: split(list, pieceSize: pieceSize)) { chunk in
            reader.open(chunk)
            var count = 0
            while let row = reader.next() {
                count += 1
                let fields = columns.indices.map { reader.field($0) }
                let texts = fields.map {
                    $0.form == .missing ? nil : String(decoding: reader.value($0), as: UTF8.self)
                }
                found.append(Expected(row.line, fields[0].form == .malformed ? nil : texts))
            }
            #expect(count == chunk.rowCount)
            _ = reader.close()
        }
        return found
    }
}
