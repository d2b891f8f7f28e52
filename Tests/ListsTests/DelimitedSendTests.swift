import APNs
import Campaign
import Foundation
import Support
import TestSupport
import Testing

@testable import Lists

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
        #expect(none?.contains("no header") == true)
        let endless = message { () throws(BroadsideError) in
            try open("\"token\n" + String(repeating: "abc\n", count: 500_000))
        }
        #expect(endless?.contains("header is longer") == true)
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
    func `Chunks have the same place when they are read again`(rowLimit: Int) throws {
        let list = try open(text)
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(list: list, pool: pool, plan: nil, rowsLimit: nil)
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
                let gap = ListGap(
                    firstRow: reservation.rows.upperBound,
                    byteOffset: reservation.byteOffset + reservation.byteCount,
                    firstLine: reservation.firstLine + reservation.lineCount, endRow: nil,
                    endByteOffset: nil)
                if try reader.loadNext(of: gap, into: &part) != nil { inGaps += rows(part) }
            }
        }
        #expect(found == expected)
        #expect(inGaps == expected)
        #expect(source.openQuoteWarning == nil)
    }

    private func rows(_ part: borrowing ListRows) -> [String] {
        var rows: [String] = []
        for index in 0..<part.count {
            let token = String(decoding: [UInt8](part.text(of: index)), as: UTF8.self)
            rows.append("\(part.line(of: index)) \(token)")
        }
        return rows
    }

    @Test func `A list that ends inside quotes is told`() throws {
        let list = try open(text + "\n\"x\n\",\n\n\"y\nz\",\"\(hexToken(4))\n\n")
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(list: list, pool: pool, plan: nil, rowsLimit: nil)
        while let chunk = try source.next(rowLimit: 2) { pool.giveBack(chunk) }
        #expect(source.openQuoteWarning?.contains("open on line 15:") == true)
    }
}
