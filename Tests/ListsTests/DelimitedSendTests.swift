import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLists

/// A list with columns on its way to the reactors, and back into an export.
@Suite struct DelimitedSendTests {
    private func open(
        _ text: String, name: String = "list.csv", format: TokenListFormat? = nil,
        tokenColumn: String? = nil
    ) throws(BroadsideError) -> TokenList {
        let directory = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString)"
        try! FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try! FileManager.default.removeItem(atPath: directory) }
        let path = directory + "/" + name
        _ = FileManager.default.createFile(atPath: path, contents: Data(text.utf8))
        // The list stays readable after its name is gone.
        return try TokenList(.file(path), format: format, tokenColumn: tokenColumn)
    }

    private func message(_ body: () throws(BroadsideError) -> TokenList) -> String? {
        do throws(BroadsideError) {
            _ = try body()
            return nil
        } catch {
            #expect(error.exitCode == 2)
            return error.message
        }
    }

    @Test func `Format and column come from options, name and content`() throws {
        #expect(try open("token\nab\n").format == .csv)
        #expect(try open("a\ttoken\n", name: "list.tsv").format == .tsv)
        #expect(try open("token\nab\n", name: "list.txt").format == .csv)
        #expect(try open("ab\n", name: "list.txt").format == .lines)
        #expect(try open("{\"token\":\"ab\"}\n", name: "list.txt").format == .jsonl)
        #expect(try open("token,x\nab\n", format: .lines).layout == .lines)
        let list = try open("\u{feff}\n\n\"a,b\",\"de\nvice\"\r\n", tokenColumn: "de\nvice")
        #expect(list.layout.names == ["de\nvice"])
    }

    @Test func `A list that lacks the column is refused, with the columns there are`() {
        let missing = message { () throws(BroadsideError) in try open("a,b\n1,2\n") }
        #expect(missing?.contains("no column 'token': its columns are a, b") == true)
        let none = message { () throws(BroadsideError) in try open("\n \n") }
        #expect(none?.contains("contains no rows") == true)
        let endless = message { () throws(BroadsideError) in
            try open(String(repeating: "token,", count: 400_000))
        }
        #expect(endless?.contains("header is longer") == true)
        for count in [1, 500_000, 600_000] {
            let unclosed = message { () throws(BroadsideError) in
                try open("\n\"token\n" + String(repeating: "abc\n", count: count))
            }
            #expect(unclosed?.contains("line 2 opens a quote that is never closed") == true)
        }
        let lines = message { () throws(BroadsideError) in
            try open("ab\n", name: "list.txt", tokenColumn: "device")
        }
        #expect(lines?.contains("--format csv") == true)
    }

    /// Rows over several lines, in quotes, without the column, with blank lines between them.
    private let text =
        "\u{feff}name,token,n\r\n\"a\nb\",\(hexToken(1)),1\r\n\r\n\"c\",\"\(hexToken(2).uppercased())\"\n"
        + "short\n\"\n\n\",\"a\"\"b\",\"\"\nd,\(hexToken(3))"
    private let expected = [
        "2 \(hexToken(1))", "5 \(hexToken(2))", "6 ", "7 a\"b", "10 \(hexToken(3))",
    ]

    @Test(arguments: [1, 2, 3, 100])
    func `Chunks have the same bounds when they are read again`(rowLimit: Int) throws {
        let list = try open(text)
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection())
        var reader = ListPartReader(list: list)
        var part = ListRows()
        var found: [String] = []
        var inGaps: [String] = []
        while let chunk = try source.next(rowLimit: rowLimit) {
            let reservation = chunk.reservation
            pool.giveBack(chunk)
            try reader.load(reservation, into: &part)
            #expect(part.count == reservation.rowCount)
            found += rows(part)
            // What follows the chunk, as an export finds it where a run never came so far.
            if inGaps.isEmpty {
                inGaps = found
                let gap = ListExtent(
                    firstRow: reservation.rows.upperBound,
                    byteOffset: reservation.byteOffset + reservation.byteCount,
                    firstLine: reservation.firstLine + reservation.lineCount, endRow: nil,
                    endByteOffset: nil)
                if try reader.loadNext(of: gap, into: &part) != nil { inGaps += rows(part) }
            }
        }
        #expect(found == expected)
        #expect(inGaps == expected)
    }

    private func rows(_ part: borrowing ListRows) -> [String] {
        var rows: [String] = []
        for index in 0..<part.count {
            let token = String(decoding: [UInt8](part.text(of: index)), as: UTF8.self)
            rows.append("\(part.line(of: index)) \(token)")
        }
        return rows
    }

    /// Rows that no look at the first ones reaches.
    private let many = (0..<1_500).map { "x,\(hexToken($0)),1\n" }.joined()

    @Test(arguments: [2, .max], ["\"\(hexToken(4))\n\n", "\"\n,\(hexToken(4))\n"])
    func `A list is read up to a quote that is not closed`(rowLimit: Int, rest: String) throws {
        let list = try open(text + "\n" + many + "\"x\n\",\n\n\"y\nz\",\(rest)")
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection())
        var rows = 0
        let error = #expect(throws: BroadsideError.self) {
            while let chunk = try source.next(rowLimit: rowLimit) {
                rows += chunk.rowCount
                pool.giveBack(chunk)
            }
        }
        #expect(error?.message.contains("line 1515 opens a quote") == true, "\(error as Any)")
        #expect(error?.exitCode == 2 && error?.isFaultyList == true)
        #expect(rows == 1_506)
        // Nothing comes behind it.
        #expect(throws: BroadsideError.self) { try source.next(rowLimit: rowLimit) }
        // A part of the list that is read in its place.
        var reader = ListPartReader(list: list)
        var part = ListRows()
        let gap = ListExtent(
            firstRow: 0, byteOffset: 0, firstLine: 1, endRow: nil, endByteOffset: nil)
        var found = 0
        let failure = #expect(throws: LedgerError.self) {
            var left: ListExtent? = gap
            while let now = left, let chunk = try reader.loadNext(of: now, into: &part) {
                found += part.count
                left = now.rest(behind: chunk)
            }
        }
        #expect("\(failure as Any)".contains("line 1515") && found == 1_506)
    }

    @Test func `A list whose first line ends with a carriage return ends all lines so`() throws {
        let rows = [
            "x,\(hexToken(1)),\"a\nb\"", "", "y,\(hexToken(2)),\"c\rd\"", "z,\(hexToken(3)),",
        ]
        let list = try open("name,token,n\r" + rows.joined(separator: "\r") + "\r")
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection())
        var reader = ListPartReader(list: list)
        var part = ListRows()
        var found: [String] = []
        while let chunk = try source.next(rowLimit: 2) {
            let reservation = chunk.reservation
            pool.giveBack(chunk)
            try reader.load(reservation, into: &part)
            found += self.rows(part)
        }
        #expect(found == ["2 \(hexToken(1))", "5 \(hexToken(2))", "7 \(hexToken(3))"])
    }

    /// A carriage return is the last byte of what is read at once, and the first of the next.
    @Test(arguments: [0, 1, 2])
    func `Line ends are read alike however the bytes arrive`(shift: Int) throws {
        let count = (ListCursor.readSize / 66 + 2) * 2
        let ends = ["\r", "\r\n"]
        for first in [0, 1] {
            var text = "\r" + String(repeating: " ", count: shift) + "\r\n"
            for row in 0..<count { text += hexToken(row) + ends[(row + first) % 2] }
            let list = try open(text, name: "list.txt")
            let pool = ChunkPool(limit: 3)
            let source = try ListSource(
                list: list, pool: pool, plan: nil, selection: ListSelection())
            var (rows, last) = (0, UInt64(0))
            while let chunk = try source.next(rowLimit: .max) {
                rows += chunk.rowCount
                last = chunk.end.line
                pool.giveBack(chunk)
            }
            #expect(rows == count && last == UInt64(count) + 3)
        }
    }
}
