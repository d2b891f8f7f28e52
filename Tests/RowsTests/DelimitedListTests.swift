import BroadsideTestSupport
import Testing

@testable import BroadsideRows

@Suite struct DelimitedListTests {
    @Test func `Quoted fields, line breaks and short records of CSV are read as RFC 4180 says`()
        throws
    {
        let list =
            "id,\"token\", name \r\n1,aa,Ann\r\n\r\n2,\"bb\",\"two\r\nlines, \"\"quoted\"\"\"\r\n"
            + "3,cc,5\" disk\r\n4\r\n5,\"dd\"x,\r\n6,ee,\"\",more\n"
        let expected = [
            RowFacts(number: 0, line: 2, fields: ["aa", "Ann"]),
            RowFacts(number: 1, line: 4, fields: ["bb", "two\r\nlines, \"quoted\""]),
            RowFacts(number: 2, line: 6, fields: ["cc", "5\" disk"]),
            RowFacts(number: 3, line: 7, fields: [nil, nil]),
            RowFacts(number: 4, line: 8, fields: ["5,\"dd\"x,", "5,\"dd\"x,"]),
            RowFacts(number: 5, line: 9, fields: ["6,ee,\"\",more", "6,ee,\"\",more"]),
        ]
        for pieceSize in [1, 2, 5, 1_000] {
            for rowLimit in [1, 3, 100] {
                let found = try rows(
                    list, format: .csv, columns: ["token", "name"], rowLimit: rowLimit,
                    pieceSize: pieceSize)
                #expect(found == expected)
            }
        }
    }

    @Test func `Tab-separated rows are read with blank fields and quotes`() throws {
        let found = try rows(
            "\u{feff}\n name\ttoken\nAnn, B.\taa\n\t\n\"t\tb\"\t\"bb\"", format: .tsv,
            columns: ["token", "name"])
        #expect(
            found == [
                RowFacts(number: 0, line: 3, fields: ["aa", "Ann, B."]),
                RowFacts(number: 1, line: 4, fields: ["", ""]),
                RowFacts(number: 2, line: 5, fields: ["bb", "t\tb"]),
            ])
    }

    @Test(
        arguments: [
            ("aa,Ann,Rometoken,city,name", "token city name", false),
            ("aa,Ann,RomeToken,NAME,city", "Token NAME city", true),
            ("aa,Ann,\"Rome\"token,name,city", "token name city", true),
            ("aa,Ann,Rome\"token\",\"city\"", "token city", false),
            ("aa,Ann,Rome\u{feff}token,name", "token name", true),
            ("aa,Ann,Rome,city", nil, false), ("aa,Ann,Rometoken,town", nil, false),
            ("aa,Ann,Romecity,name", nil, false), ("aa,\"Ann\"x,token", nil, false),
        ] as [(String, String?, Bool)])
    func `A header after a row on the same line is found`(
        row: String, columns: String?, isSame: Bool
    ) throws {
        let layout = try RowLayout(
            format: .csv, names: ["token"], header: Array("token,name,city".utf8))
        let pool = ChunkPool(limit: 2)
        var splitter = RowSplitter(format: .csv, pool: pool)
        var reader = RowReader(layout: layout)
        var found: [RepeatedHeader?] = []
        let list = Array("token,name,city\nbb,Bo,Oslo\n\(row)\n".utf8)
        cut(&splitter, pool: pool, pieces: [list]) { chunk in
            reader.open(chunk)
            while reader.next() != nil { found.append(reader.repeatedHeader) }
            _ = reader.close()
        }
        let header = columns.map { text in
            RepeatedHeader(
                line: 3, columns: text.split(separator: " ").map(String.init), isSame: isSame,
                isJoined: true)
        }
        #expect(found == [nil, header])
    }

    @Test(arguments: [
        (#"aa,"Jim \"JJ\" Doe""#, true), (#""a \"b, c\"",aa"#, true), (#"aa,"x"y"#, false),
        (#"aa,5\" disk,more"#, false), (#""C:\",aa,more"#, false), (#"aa,"C:\"","x"y"#, false),
        (#"aa,bb,more"#, false),
    ])
    func `A malformed row of CSV is known to escape quotes with backslashes`(
        row: String, escapes: Bool
    ) throws {
        for format in [ListFormat.csv, .tsv] {
            let separator = format == .csv ? "," : "\t"
            let text = row.replacing(",", with: separator)
            let layout = try RowLayout(
                format: format, names: ["token"], header: Array("token\(separator)name".utf8))
            let pool = ChunkPool(limit: 2)
            var splitter = RowSplitter(format: format, pool: pool)
            var reader = RowReader(layout: layout)
            var found: [Bool] = []
            let list = Array("token\(separator)name\n\(text)\n".utf8)
            cut(&splitter, pool: pool, pieces: [list]) { chunk in
                reader.open(chunk)
                while let row = reader.next() { found.append(reader.escapesQuotes(row)) }
                _ = reader.close()
            }
            #expect(found == [escapes && format == .csv])
        }
    }

    @Test(
        arguments: [
            (#"aa,{"a":1,"b":2},Rome"#, 1), (#"aa,{x,y},Rome"#, 1), (#"aa,[1,[2,3]],Rome"#, 1),
            (#"[1,2],{"a":"},{","b":2},"x,y""#, 0), (#"aa,Rome,{"a":"\"x","b":[1,2]}"#, 2),
            // The braces do not explain the number of fields.
            (#"aa,{"a":1,"b":2},Rome,more"#, nil), (#"aa,{x},Rome,more"#, nil),
            (#"aa,{x,Rome,more"#, nil), (#"aa,{x,y}z,Rome"#, nil), (#"aa,"x"y,Rome"#, nil),
            ("aa,b,c,d", nil),
        ] as [(String, Int?)])
    func `An object or array without quotes is found if it explains the number of fields`(
        row: String, field: Int?
    ) throws {
        let layout = try RowLayout(
            format: .csv, names: ["token"], header: Array("token,meta,city".utf8))
        let pool = ChunkPool(limit: 2)
        var splitter = RowSplitter(format: .csv, pool: pool)
        var reader = RowReader(layout: layout)
        var found: [Int?] = []
        cut(&splitter, pool: pool, pieces: [Array("token,meta,city\n\(row)\n".utf8)]) { chunk in
            reader.open(chunk)
            while let row = reader.next() { found.append(reader.unquotedBrackets(row)) }
            _ = reader.close()
        }
        #expect(found == [field])
    }

    @Test func `A column that the header lacks is named with the columns there are`() {
        #expect(
            throws: RowLayout.HeaderError.missing("device", columns: ["token", "name"])
        ) { try rows("token,name\naa,b\n", format: .csv, columns: ["device"]) }
        #expect(
            RowLayout.columns(Array("a,\"b,\"\"c\",\td ,\"e \"".utf8), separator: 0x2c) == [
                "a", "b,\"c", "d", "e",
            ])
    }

    @Test func `A header longer than the limit is marked, and the next row starts behind it`() {
        let header = [UInt8](repeating: 0x78, count: 1_100_000)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .csv, pool: pool)
        var starts: [ListPosition] = []
        cut(&cutter, pool: pool, pieces: [header + Array("\naa\n".utf8)]) {
            starts.append($0.start)
        }
        let isOverlong = cutter.isHeaderOverlong
        #expect(isOverlong)
        #expect(starts == [ListPosition(byteOffset: 1_100_001, row: 0, line: 2)])
    }

    @Test func `A quote that is never closed is a fault with its line`() {
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .csv, pool: pool)
        var count = 0
        cut(&cutter, pool: pool, pieces: [Array("token\n\"aa\nbb\n".utf8)]) { count += $0.rowCount }
        let fault = cutter.fault
        #expect(fault == ListFault(.openQuote, line: 2))
        #expect(count == 0)
    }

    @Test(
        arguments: [
            ("\"aa\nbb\n", 2), ("aa\n\"b\nb\",\"c\nd", 4), ("aa\n\nb,\"x\n\n", 4),
            ("\"a\n\n\"\n\"b\n\",c\nd,\"e", 7), ("\"a\n\",\"b\n\n\",\"c\n", 5), ("a\n\"", 3),
            ("\"a\nb\",c\n", nil), ("a\n\"b\nb\"x,\"\n", nil), ("5\" disk", nil), ("", nil),
        ] as [(String, UInt64?)])
    func `An unclosed quote is reported with the line on which it opens`(
        rows: String, line: UInt64?
    ) {
        let list = Array("token,name\n\(rows)".utf8)
        for pieceSize in [1, 3, 1_000] {
            for rowLimit in [1, .max] {
                let pool = ChunkPool(limit: 2)
                var cutter = RowSplitter(format: .csv, pool: pool, rowLimit: rowLimit)
                cut(&cutter, pool: pool, pieces: split(list, pieceSize: pieceSize)) { _ in }
                let found = cutter.fault
                #expect(found == line.map { ListFault(.openQuote, line: $0) })
            }
        }
    }

    /// Records written by the grammar and read again, with any chunk limit and any pieces.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `Records written by the grammar are read back with any chunk limit and pieces`(
        seed: UInt64
    ) throws {
        var random = SeededRandom(seed: seed)
        let (format, separator): (ListFormat, Character) =
            Bool.random(using: &random) ? (.csv, ",") : (.tsv, "\t")
        var list = ["a", "token", "z"].joined(separator: String(separator)) + "\n"
        var expected: [RowFacts] = []
        var line: UInt64 = 2
        for number in 0..<UInt64(Int.random(in: 1...200, using: &random)) {
            var texts: [String] = []
            var written: [String] = []
            let first = line
            for _ in 0..<3 {
                // A line with tabs is a row, whatever quotes it has.
                let lineEnd: Character = format == .tsv ? "x" : "\n"
                let characters: [Character] = ["x", "1", "\"", separator, lineEnd, " ", "é"]
                let isQuoted = Bool.random(using: &random)
                let text = String(
                    (0..<Int.random(in: 0...6, using: &random)).map { _ in
                        characters.randomElement(using: &random)!
                    }.filter { isQuoted || ($0 != "\"" && $0 != separator && $0 != "\n") })
                let doubled = text.split(separator: "\"", omittingEmptySubsequences: false)
                    .joined(separator: "\"\"")
                texts.append(text)
                written.append(isQuoted ? "\"" + doubled + "\"" : text)
                line += isQuoted ? UInt64(text.filter { $0 == "\n" }.count) : 0
            }
            line += 1
            list += written.joined(separator: String(separator)) + "\n"
            expected.append(RowFacts(number: number, line: first, fields: [texts[1], texts[2]]))
        }
        for _ in 0..<3 {
            let found = try rows(
                list, format: format, columns: ["token", "z"],
                rowLimit: Int.random(in: 1...50, using: &random),
                pieceSize: Int.random(in: 1...100, using: &random))
            #expect(found == expected)
        }
    }

    @Test func `JSON Lines are read by key, and a line that is not an object is its own token`()
        throws
    {
        let list =
            "{\"name\":\"A\\n\",\"token\":\"aa\",\"x\":{\"token\":\"no\"}}\n\n"
            + "{\"token\":null}\r\n{\"token\":7,\"name\":[1]}\nnonsense\n"
        let found = try rows(list, format: .jsonl, columns: ["token", "name"], pieceSize: 9)
        #expect(
            found == [
                RowFacts(number: 0, line: 1, fields: ["aa", "A\n"]),
                RowFacts(number: 1, line: 3, fields: [nil, nil]),
                RowFacts(number: 2, line: 4, fields: ["7", "["]),
                RowFacts(number: 3, line: 5, fields: ["nonsense", "nonsense"]),
            ])
    }

    @Test func `The format follows the file's name, else its first bytes`() {
        func detect(_ name: String, _ content: String) -> ListFormat {
            ListFormat.detect(
                fileName: name, firstBytes: Array(content.utf8), tokenColumn: "token")
        }
        #expect(detect("a.csv", "aabb\n") == .csv)
        #expect(detect("A.TSV.gz", "") == .tsv)
        #expect(detect("a.ndjson.zst", "") == .jsonl)
        #expect(detect("a.txt", "\u{feff}\n{\"token\":1}") == .jsonl)
        #expect(detect("-", "id,token\n1,aa\n") == .csv)
        #expect(detect("-", "id\ttoken\n1\taa\n") == .tsv)
        #expect(detect("-", "token\naabb\n") == .csv)
        #expect(detect("-", "\"token\"\r\naabb\n") == .csv)
        #expect(detect("-", "\taabb\t\n") == .lines)
        #expect(detect("-", "<aabb ccdd>\n") == .lines)
        // Blanks alone end a word.
        #expect(detect("-", "\taa!bb\t\n") == .lines)
        #expect(detect("-", "") == .lines)
    }
}
