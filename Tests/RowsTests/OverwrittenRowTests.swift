import Testing

@testable import BroadsideRows

/// Rows with zero bytes in place of other rows.
@Suite struct OverwrittenRowTests {
    private static let token = String(repeating: "a1", count: 32)
    private static let formats: [(format: ListFormat, header: String, row: String)] = [
        (.lines, "", token), (.csv, "token,name\n", "\(token),Ann"),
        (.csv, "token,name\n", "\(token),\"Ann\nB\""),
        (.csv, "token,name\n", "\"\(token)\",\"Ann\""), (.tsv, "token\tname\n", "\(token)\tAnn"),
        (.jsonl, "", "{\"token\":\"\(token)\",\"name\":\"Ann\"}"),
    ]

    /// Forms of the token's field, and the rows that are counted as overwritten.
    private func read(
        _ text: String, _ format: ListFormat, header: String, rowLimit: Int = .max
    ) throws -> (forms: [RowReader.Field.Form], lines: [UInt64], overwritten: OverwrittenRows) {
        let names = format == .lines ? ["token"] : ["token", "name"]
        let columns = header.isEmpty ? nil : Array(header.utf8.dropLast())
        let layout = try RowLayout(format: format, names: names, header: columns)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool, rowLimit: rowLimit)
        var reader = RowReader(layout: layout)
        var forms: [RowReader.Field.Form] = []
        var lines: [UInt64] = []
        var (overwritten, noted) = (OverwrittenRows(), OverwrittenRows())
        cut(&cutter, pool: pool, pieces: [Array((header + text).utf8)]) { chunk in
            reader.open(chunk)
            var count = 0
            while let row = reader.next() {
                count += 1
                forms.append(reader.field(0).form)
                lines.append(row.line)
                overwritten.take(row, of: reader)
                if let line = reader.overwrittenLine { noted.add(OverwrittenRows(line: line)) }
            }
            #expect(count == chunk.rowCount)
            _ = reader.close()
        }
        #expect(noted == overwritten)
        return (forms, lines, overwritten)
    }

    @Test(arguments: formats.indices)
    func `A row in which zero bytes may hide a token is malformed, and the other rows are read`(
        index: Int
    ) throws {
        let (format, header, row) = Self.formats[index]
        let zeros = String(repeating: "\0", count: 512)
        for end in ["", "\n"] {
            // The row ends where another row ends that it hides.
            let found = try read(
                "\(row)\n\(row)\(zeros)\(row.suffix(2))\n\(row)\(end)", format, header: header)
            #expect(found.forms == [.plain, .malformed, .plain], "\(found.forms)")
            #expect(found.overwritten.count == 1)
            #expect(found.overwritten.firstLine == found.lines[1])
        }
        let last = try read("\(row)\n\(row)\(zeros)", format, header: header)
        #expect(last.forms == [.plain, .malformed] && last.overwritten.count == 1)
    }

    @Test func `Counts of parts of a list add up to its count, with the first line of all`() {
        var rows = OverwrittenRows()
        rows.add(OverwrittenRows())
        #expect(rows == OverwrittenRows())
        for line in [7, 3, 9] as [UInt64] { rows.add(OverwrittenRows(line: line)) }
        #expect(rows.count == 3 && rows.firstLine == 3)
    }

    @Test(arguments: formats.indices)
    func `A short run of zero bytes is not text if it ends in the middle of a field`(
        index: Int
    ) throws {
        let (format, header, row) = Self.formats[index]
        // The end of a list that lost its last bytes; other rows were appended to it.
        let zeros = String(repeating: "\0", count: 64)
        for lost in [1, row.utf8.count - 2, row.utf8.count + 1] {
            let found = try read(
                ("\(row)\n\(row)\n".dropLast(lost)) + "\(zeros)\(row)\n\(row)\n", format,
                header: header)
            #expect(found.overwritten.count == 1, "\(lost) bytes")
            #expect(found.forms.contains(.malformed) && found.forms.last == .plain)
        }
    }

    @Test(arguments: ["\0", "Ann" + String(repeating: "\0", count: 252)])
    func `Zero bytes that stand for an empty text or fill a text are text`(name: String) throws {
        for (format, text) in [
            (ListFormat.csv, "\(name),\(Self.token)"), (.csv, "\(Self.token),\(name)"),
            (.csv, "\"\(Self.token)\",\"\(name)\""), (.csv, "\"\(name)\",\"\(Self.token)\""),
            (.semicolonCSV, "\(name);\(Self.token)"),
            (.tsv, "\(name)\t\(Self.token)"), (.tsv, "\(Self.token)\t\(name)"),
        ] {
            let header = text.replacing(name, with: "name").replacing(Self.token, with: "token")
            for end in ["\n", "\r\n"] {
                let found = try read(text + end + text + end + text, format, header: header + "\n")
                #expect(found.forms == [.plain, .plain, .plain], "\(text)")
                #expect(found.overwritten == OverwrittenRows())
            }
        }
    }

    @Test func `Zero bytes inside a text hide a row only if a device token has room in them`()
        throws
    {
        for (count, form) in [(63, RowReader.Field.Form.plain), (64, .malformed)] {
            let name = "A" + String(repeating: "\0", count: count) + "B"
            let found = try read("\(name),\(Self.token)\n", .csv, header: "name,token\n")
            #expect(found.forms == [form])
            #expect(found.overwritten.count == (form == .plain ? 0 : 1))
        }
    }

    @Test(arguments: [formats[0], formats[5]])
    func `Zero bytes at the end of a line hide a row if the format has no fields`(
        format: ListFormat, header: String, row: String
    ) throws {
        let zeros = String(repeating: "\0", count: 64)
        for end in ["\n", "\r\n"] {
            for text in [zeros, row + zeros] {
                let found = try read(row + end + text + end + row + end, format, header: header)
                #expect(found.forms == [.plain, .malformed, .plain], "\(found.forms)")
                #expect(found.overwritten == OverwrittenRows(line: 2))
            }
        }
    }

    @Test func `A row in the chunk after an overwritten row is not overwritten`() throws {
        let zeros = String(repeating: "\0", count: 512)
        let found = try read(
            "\(Self.token)\n\(zeros)\nx\n\(Self.token)\n", .lines, header: "", rowLimit: 1)
        #expect(found.forms == [.plain, .malformed, .plain, .plain])
        #expect(found.overwritten == OverwrittenRows(line: 2))
    }

    @Test func `A row of zero bytes that exceeds the maximum length is counted`() throws {
        let zeros = String(repeating: "\0", count: 3 << 19)
        let found = try read("\(Self.token)\n\(zeros)\n\(Self.token)\n", .lines, header: "")
        #expect(found.forms == [.plain, .malformed, .plain])
        #expect(found.overwritten == OverwrittenRows(line: 2))
    }

    @Test func `A fixed length of a sector or more is taken for damage`() throws {
        let name = String(repeating: "\0", count: 512)
        let found = try read("\(Self.token),\(name)\n", .csv, header: "token,name\n")
        #expect(found.forms == [.malformed] && found.overwritten.count == 1)
    }
}
