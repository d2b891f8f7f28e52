import Testing

@testable import BroadsideHygiene
@testable import BroadsideRows

/// What makes a list one that nobody can read on: found by cutter and pruner alike, whatever the pieces
/// in which it comes, with every row before it.
@Suite struct ListFaultTests {
    private static let token = String(repeating: "5a", count: 32)
    private static let other = String(repeating: "6b", count: 32)

    struct Case: Sendable, CustomTestStringConvertible {
        var format: ListFormat
        /// `T` and `U` stand for tokens, `t` for one of eight digits.
        var text: String
        var fault: ListFault?
        /// Rows before it.
        var rows: Int
        /// Names of the columns.
        var columns: [String]

        var testDescription: String { text }

        init(
            _ format: ListFormat, _ text: String, _ kind: ListFault.Kind?, _ line: UInt64,
            _ rows: Int, columns: [String] = ["token", "name"]
        ) {
            self.format = format
            self.columns = columns
            self.text = text
            fault = kind.map { ListFault($0, line: line) }
            self.rows = rows
        }

        var list: [UInt8] {
            text.flatMap { letter -> [UInt8] in
                switch letter {
                case "T": Array(ListFaultTests.token.utf8)
                case "U": Array(ListFaultTests.other.utf8)
                case "t": Array("5a5a5a5a".utf8)
                default: Array(String(letter).utf8)
                }
            }
        }
    }

    static let cases: [Case] = [
        // A quote that is never closed.
        Case(.csv, "T,N\nT,\"x\nU,y\n", .rowInQuotes, 2, 1),
        Case(.csv, "T,N\n\nT,\"x\ny\n", .openQuote, 3, 1),
        Case(.csv, "T,\"", .openQuote, 1, 0),
        Case(.csv, "T,\"a\nb\",\"c\n", .openQuote, 2, 0),
        Case(.semicolonCSV, "T;N\nT;\"x\nU;y\n", .rowInQuotes, 2, 1),
        Case(.csv, "T,\"x\nU\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\n<\(String(repeating: "5a 5a", count: 8))>,y\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\n  U  ,y\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\nt,y\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\nt\n\"\nT,N", nil, 0, 2),
        // A pair of stray quotes: the row is well-formed, or text follows the closing one.
        Case(.csv, "T,N\nT,\"x\nU,y\nT,\"\n", .rowInQuotes, 2, 1),
        Case(.csv, "T,\"x\nU,y\"\nT,N\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\nU,\"y\"\nT,N\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\n\"U\",y\nT,N\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\n\"U\",\"y\"", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\nU\"", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\nU\"\r\nT,N", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\nU\"\r", .rowInQuotes, 1, 0),
        Case(.csv, "\"T,x\nT,y\"\nT,N\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"U,y\nx\"\nT,N\n", .rowInQuotes, 1, 0),
        Case(.csv, "T,\"x\n\"\"U\"\",\"\"y, z\"\"\n\"\n", .rowInQuotes, 1, 0),
        // The quote opens between the row's first field and its token.
        behind("1,N,T,x\n2,\"R,T,x\n3,6'2\",U,x\n4,N,T,x\n", .rowInQuotes, 2, 1),
        behind("1,\"R,T,x\r\n2,y\",U,x\r\n", .rowInQuotes, 1, 0),
        behind("1,\"R,  T ,x\n2\",y,U,x\n", .rowInQuotes, 1, 0),
        behind("1,\"R,T\n2,y\",U\n", .rowInQuotes, 1, 0),
        behind("\"1\",\"R,T\n\n2,y\",U\n", .rowInQuotes, 1, 0),
        behind("\"1,\"\"0\",\"R,T\n2,y\",U\n", .rowInQuotes, 1, 0),
        behind("\"1\n0\",\"R,T\n2,y\",U\n", .rowInQuotes, 2, 0),
        behind("5\" 1,\"R,T\n2,y\",U\n", .rowInQuotes, 1, 0),
        behind("1,\"R,T\n2,y\" z,U\n3,N,T,x\n", .rowInQuotes, 1, 0),
        // Text of that field which is not a row together with the fields before it.
        behind("1,\"R, t, x\ny\",T,x\n2,N,T,x\n", nil, 0, 2),
        behind("1,\"R,T,x,y\nz\",U,x\n2,N,T,x\n", nil, 0, 2),
        behind("1,\"R,x,y,T\nz\",U,x\n2,\"T,x,y\nz\",U,x\n", nil, 0, 2),
        behind("1,\"R x\nR,T,y\",U,x\n2,N,T,x\n", nil, 0, 2),
        behind("1,\"R,<5a 5a>,y\nz\",U,x\n2,N,T,\"U,y\nz\"\n", nil, 0, 2),
        // A text that looks like the rest of a row is accepted without its line break.
        behind("1,\"old, T\nreplaced\",U,x\n2,N,T,x\n", .rowInQuotes, 1, 0),
        behind("1,\"old, T replaced\",U,x\n2,N,T,x\n", nil, 0, 2),
        // A token's field over several lines is not a token.
        behind("1,N,\"T\nU\",x\n2,N,\"T,U\ny\",x\n", nil, 0, 2),
        // Fields over several lines without a row in them.
        Case(.csv, "T,\"1 Long Road\nTown 0\"\nT,\"1234\n5678\"\n", nil, 0, 2),
        Case(.csv, "T,\"2000, Antwerp\nEd, Bea\"\nT,\"x\ny,U\"\n", nil, 0, 2),
        Case(.csv, "T,\"x\n\nt,y,z\n\"\nT,\"12345678 90\nt\"", nil, 0, 2),
        Case(.csv, "T,\"x\ny\"z\nT,N", nil, 0, 2),
        Case(.csv, "\"T\",\"x\"\n\"U\",\"y\"\n", nil, 0, 2),
        Case(.tsv, "T\t\"x\nT\ty\"\nT\t\"", nil, 0, 3),
        Case(.lines, "\"T\nU\n\"x", nil, 0, 3),
        // A carriage return alone.
        Case(.lines, "T\nT\rU\nT\n", .loneReturn, 2, 1),
        Case(.lines, "T\n\n \r \nT\n", .loneReturn, 3, 1),
        Case(.lines, "T\r\nT\r\r\nT\n", .loneReturn, 2, 1),
        Case(.lines, "T\r\nT\r\nT\r", nil, 0, 3),
        Case(.csv, "T,N\nT,x\ry\nT,N\n", .loneReturn, 2, 1),
        Case(.csv, "T,N\nT,\"x\"\rU,y\nT,N\n", .loneReturn, 2, 1),
        Case(.csv, "T,N\nT,\"x\"y\rU,y\nT,N\n", .loneReturn, 2, 1),
        Case(.csv, "T,N\nT,\"x\rz\r\ny\"\r\nT,N\r\nT,x\rU,y\r\n", .loneReturn, 5, 3),
        Case(.csv, "T,\"x\ny\",z\rU,y\n", .loneReturn, 2, 0),
        Case(.csv, "T,N\r\n\r\r\nT,N", .loneReturn, 2, 1),
        Case(.tsv, "T\tN\r\nT\tx\rU\ty\n", .loneReturn, 2, 1),
        Case(.jsonl, "{\"token\":\"T\"}\n{\"token\":\r\"T\"}\n", .loneReturn, 2, 1),
        Case(.jsonl, "{\"token\":\"T\"}\r\n{\"token\":\"T\"}\r", nil, 0, 2),
    ]

    /// A list whose token is the third of four columns.
    private static func behind(
        _ text: String, _ kind: ListFault.Kind?, _ line: UInt64, _ rows: Int
    ) -> Case {
        Case(.csv, text, kind, line, rows, columns: ["id", "name", "token", "x"])
    }

    private static func header(_ format: ListFormat, _ columns: [String]) -> String {
        columns.joined(separator: format.separator.map { String(Unicode.Scalar($0)) } ?? "")
    }

    private static func layout(
        _ format: ListFormat, _ columns: [String] = ["token", "name"]
    ) throws -> RowLayout {
        try RowLayout(
            format: format, names: ["token"], header: Array(header(format, columns).utf8))
    }

    /// With its header, where it has one.
    private static func whole(_ entry: Case, mark: Bool) -> [UInt8] {
        let header = entry.format.hasHeader ? header(entry.format, entry.columns) + "\n" : ""
        return (mark ? ListFormat.byteOrderMark : []) + Array(header.utf8) + entry.list
    }

    private static func found(_ entry: Case) -> ListFault? {
        entry.fault.map { ListFault($0.kind, line: $0.line + (entry.format.hasHeader ? 1 : 0)) }
    }

    @Test(arguments: [
        (ListFault.Kind.openQuote, "line 7 opens a quote that is never closed: close it, "),
        (.rowInQuotes, "line 7 opens a quote that is probably not closed before the next row, "),
        (.loneReturn, "line 7 has a carriage return without a line feed, "),
    ])
    func `Each kind of fault is reported with its line`(kind: ListFault.Kind, beginning: String) {
        #expect(ListFault(kind, line: 7).message.hasPrefix(beginning))
    }

    @Test func `The message about a row in quotes also has a fix for quotes that are correct`() {
        let advice = "; if the quotes are correct, replace line feeds and carriage returns between"
        #expect(ListFault(.rowInQuotes, line: 7).message.contains(advice))
    }

    @Test(arguments: cases)
    func `A splitter stops at a fault with all rows before it`(entry: Case) throws {
        let layout = try Self.layout(entry.format, entry.columns)
        for mark in [false, true] {
            let list = Self.whole(entry, mark: mark)
            for pieceSize in [1, 2, 3, 5, 7, 64, 1_000] {
                for rowLimit in [1, 2, .max] {
                    let pool = ChunkPool(limit: 2)
                    var cutter = RowSplitter(layout: layout, pool: pool, rowLimit: rowLimit)
                    var reader = RowReader(layout: layout)
                    var (rows, counted) = (0, 0)
                    cut(&cutter, pool: pool, pieces: split(list, pieceSize: pieceSize)) { chunk in
                        rows += chunk.rowCount
                        counted += reader.countRows(chunk)
                    }
                    let fault = cutter.fault
                    #expect(fault == Self.found(entry), "\(pieceSize) \(rowLimit)")
                    #expect(rows == entry.rows && counted == rows, "\(pieceSize) \(rowLimit)")
                }
            }
        }
    }

    @Test(arguments: cases)
    func `A pruner finds the same fault and consumes nothing behind it`(entry: Case) throws {
        for mark in [false, true] {
            let list = Self.whole(entry, mark: mark)
            for windowSize in [1, 3, 10, 100, 10_000] {
                var dead = DeadTokens()
                dead.seal()
                var pruner = ListPruner(
                    dead: dead, layout: try Self.layout(entry.format, entry.columns),
                    collectsRemoved: true, nowMilliseconds: 0)
                var removed: [UInt8] = []
                var (offset, size) = (0, windowSize)
                while offset < list.count, pruner.fault == nil {
                    let end = min(offset + size, list.count)
                    var window = Array(list[offset..<end])
                    let outcome = window.withUnsafeMutableBytes {
                        pruner.process($0, isLast: end == list.count, removed: &removed)
                    }
                    offset += outcome.consumedCount
                    size = outcome.consumedCount == 0 ? size * 2 : windowSize
                }
                let (fault, rows) = (pruner.fault, pruner.counts.rows)
                #expect(fault == Self.found(entry), "\(windowSize)")
                #expect(fault != nil || rows == entry.rows)
            }
        }
    }

    /// A row that is longer than rows may be is not stored: what is inside its quotes is looked at all the
    /// same.
    @Test(arguments: [100, 70_000, 1_048_500, 1_048_577, 1_500_000])
    func `A fault within a long row is found`(count: Int) throws {
        let layout = try Self.layout(.csv)
        let filler = String(repeating: "x y\n", count: count / 4)
        for (text, fault) in [
            ("\(Self.token),\"\(filler)\(Self.other),z\n", ListFault(.rowInQuotes, line: 3)),
            ("\(Self.token),\"\(filler)", ListFault(.openQuote, line: 3)),
            (
                "\(Self.token),\"\(filler)\" \r \n",
                ListFault(.loneReturn, line: 3 + UInt64(count / 4))
            ),
        ] {
            let list = Array("token,name\n\(Self.other),a\n\(text)".utf8)
            for pieceSize in [999, 100_000] {
                let pool = ChunkPool(limit: 2)
                var cutter = RowSplitter(layout: layout, pool: pool)
                var rows = 0
                cut(&cutter, pool: pool, pieces: split(list, pieceSize: pieceSize)) {
                    rows += $0.rowCount
                }
                let found = cutter.fault
                #expect(found == fault)
                #expect(rows == 1)
            }
        }
    }

    @Test func `A splitter that starts in the middle counts lines from there`() throws {
        let layout = try Self.layout(.csv)
        let list = Array("\(Self.token),a\n\(Self.token),\"b\n\(Self.other),c\n".utf8)
        let pool = ChunkPool(limit: 2)
        let start = ListPosition(byteOffset: 1_000, row: 10, line: 40)
        var cutter = RowSplitter(layout: layout, pool: pool, start: start)
        cut(&cutter, pool: pool, pieces: [list]) { _ in }
        let fault = cutter.fault
        #expect(fault == ListFault(.rowInQuotes, line: 41))
        // An earlier version read the quote to the list's end as one row.
        cutter = RowSplitter(layout: layout, pool: pool, start: start)
        cutter.endChunk(at: 1_000 + UInt64(list.count), isExact: true)
        var rows = 0
        cut(&cutter, pool: pool, pieces: [list]) { rows += $0.rowCount }
        let again = cutter.fault
        #expect(again == fault && rows == 1)
    }
}
