import BroadsideLists
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideLedgers

@Suite struct ExclusionIndexTests {
    /// A list with opt-outs and copies, and what a slow and simple reading says of each row.
    private struct Place: ~Copyable {
        let path = FileManager.default.temporaryDirectory.path + "/skips-\(UUID().uuidString)"
        var suppress: String?
        var skipsDuplicates = false
        var expected: [RowDisposition] = []

        init(rows: Int, suppress: Int, duplicates: Bool) throws {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true)
            var text = ""
            var seen: Set<Int> = []
            for row in 0..<rows {
                let number = row % 3 == 0 ? Int.random(in: 0..<rows) : row
                if row % 11 == 5 {
                    text += "no token\n"
                    expected.append(.send)
                    continue
                }
                text += String(format: row % 2 == 0 ? "%08x\n" : "%08X\n", number)
                let isCopy = !seen.insert(number).inserted
                expected.append(
                    number < suppress
                        ? .skipped(.suppressed)
                        : isCopy && duplicates ? .skipped(.duplicate) : .send)
            }
            try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/list"))
            skipsDuplicates = duplicates
            if suppress > 0 {
                let lines = (0..<suppress).map { String(format: " %08X\n", $0) }.joined()
                try Data((lines + lines).utf8).write(to: URL(fileURLWithPath: path + "/opt-outs"))
                self.suppress = path + "/opt-outs"
            }
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        /// The search that the options ask for; for later copies too, or not.
        func search(duplicates: Bool? = nil) throws -> ExclusionScan? {
            try ExclusionScan(
                of: .file(path + "/list"), suppress: suppress,
                skipsDuplicates: duplicates ?? skipsDuplicates, tokenColumn: nil,
                payloads: PayloadSet(constant: []))
        }
    }

    private func dispositions(
        _ list: TokenList, _ skips: ExclusionIndex?, rowLimit: Int
    ) throws -> [RowDisposition] {
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection(skips: skips))
        var found: [RowDisposition] = []
        while let chunk = try source.next(rowLimit: rowLimit) {
            found +=
                chunk.dispositions
                ?? Array(repeating: .send, count: chunk.rowCount)
            pool.giveBack(chunk)
        }
        return found
    }

    @Test(
        arguments: [(0, true), (1, false), (700, false), (700, true)], [1, 7, 1_000, Int.max])
    func `Each skipped row is marked as a plain reading marks it`(
        what: (suppress: Int, duplicates: Bool), rowLimit: Int
    ) throws {
        let place = try Place(rows: 5_000, suppress: what.suppress, duplicates: what.duplicates)
        let list = try TokenList(.file(place.path + "/list"), format: nil, tokenColumn: nil)
        let search = try #require(try place.search())
        let skips = try search.listAside(of: list)
        #expect(try dispositions(list, skips, rowLimit: rowLimit) == place.expected)
        // Again from the start, as a list that goes back has to.
        #expect(try dispositions(list, skips, rowLimit: 100) == place.expected)
    }

    @Test func `A saved index is used again unless it is damaged or another list's`() throws {
        let place = try Place(rows: 500, suppress: 50, duplicates: true)
        let list = try TokenList(.file(place.path + "/list"), format: nil, tokenColumn: nil)
        let search = try #require(try place.search())
        let directory = try LedgerDirectory.create(place.path + "/ledger")
        _ = try search.list(in: directory, of: list, isNew: true)
        let file = place.path + "/ledger/skips"
        let written = try #require(FileManager.default.contents(atPath: file))
        func take(_ search: ExclusionScan) throws -> ExclusionIndex? {
            try ExclusionIndex(descriptor: open(file, O_RDONLY), name: file, search: search)
        }
        #expect(try take(search) != nil)
        #expect(try take(#require(try place.search(duplicates: false))) == nil)
        for offset in stride(from: 0, to: written.count, by: 5) {
            var damaged = written
            damaged[offset] ^= 4
            try damaged.write(to: URL(fileURLWithPath: file))
            #expect(try take(search) == nil, "byte \(offset)")
        }
        try written.dropLast(8).write(to: URL(fileURLWithPath: file))
        #expect(try take(search) == nil)
        let again = try search.list(in: directory, of: list, isNew: false)
        #expect(try dispositions(list, again, rowLimit: 64) == place.expected)
        #expect(FileManager.default.contents(atPath: file) == written)
    }

    @Test func `A suppression list without any token is refused`() throws {
        let place = try Place(rows: 5, suppress: 1, duplicates: false)
        try Data("name\nmail\n".utf8).write(to: URL(fileURLWithPath: place.path + "/opt-outs"))
        let list = try TokenList(.file(place.path + "/list"), format: nil, tokenColumn: nil)
        let search = try #require(try place.search())
        var message = ""
        do throws(BroadsideError) { _ = try search.listAside(of: list) } catch {
            message = error.message
        }
        #expect(message.contains("--suppress") && message.contains("line 1"), "\(message)")
    }

    @Test func `A suppression list with a row that is overwritten with zero bytes is refused`()
        throws
    {
        let tokens = (0..<9).map { String(format: "%064x", $0) }
        let zeros = String(repeating: "\0", count: 512)
        let error = #expect(throws: BroadsideError.self) {
            try warnings(optOuts: [tokens[3], tokens[4] + zeros, tokens[5]], tokens: tokens)
        }
        #expect(
            error?.exitCode == 2
                && error?.message.contains("the row on line 2 contains zero bytes") == true)
    }

    @Test func `A suppression list that was cut off is refused, unless its campaign has begun`()
        throws
    {
        let tokens = (0..<9).map { String(format: "%064x", $0) }
        let optOuts = ["\(tokens[1]),x", "\(tokens[2]),x", tokens[3]]
        let error = #expect(throws: BroadsideError.self) {
            try warnings(optOuts: optOuts, tokens: tokens, header: true, end: "")
        }
        #expect(error?.exitCode == 2 && error?.message.contains("cut off") == true)
        let begun = try warnings(optOuts: optOuts, tokens: tokens, header: true, end: "") {
            $0.isBegun = true
        }
        #expect(begun.count == 1 && begun.first?.contains("cut off") == true, "\(begun)")
        // With a line break, the row is whole.
        #expect(try warnings(optOuts: optOuts, tokens: tokens, header: true) == [])
        #expect(try warnings(optOuts: [tokens[3]], tokens: tokens, end: "") == [])
    }

    /// What a scan of a list of these tokens says about a suppression list.
    private func warnings(
        optOuts: [String], tokens: [String], header: Bool = false, end: String = "\n",
        _ change: (inout ExclusionScan) -> Void = { _ in }
    ) throws -> [String] {
        let place = try Place(rows: 1, suppress: 1, duplicates: false)
        let first = header ? ["token,x"] : []
        for (name, lines) in [("list", tokens), ("opt-outs", first + optOuts)] {
            let text = lines.joined(separator: "\n") + (name == "list" ? "\n" : end)
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(place.path)/\(name)"))
        }
        let list = try TokenList(.file(place.path + "/list"), format: nil, tokenColumn: nil)
        let lines = Mutex<[String]>([])
        let host = HostedRun { line in lines.withLock { $0.append(line) } }
        try HostedRun.$current.withValue(host) {
            var search = try #require(try place.search())
            change(&search)
            _ = try search.listAside(of: list)
        }
        return lines.withLock { $0 }.map { line in
            line.replacing("--suppress \(place.path)/opt-outs", with: "OUT")
                .replacing("--tokens \(place.path)/list", with: "LIST")
                .replacing("broadside: warning: ", with: "")
        }
    }

    @Test func `Suppressions whose length no token of the list has are a warning`() throws {
        let tokens = (0..<40).map { String(format: "%064x", $0) }
        #expect(try warnings(optOuts: [tokens[3]], tokens: tokens) == [])
        #expect(
            try warnings(optOuts: [tokens[3], tokens[4] + tokens[5]], tokens: tokens) == [
                "OUT: the token on line 2 suppresses no row, because it has a number of digits that no "
                    + "token of LIST has (128): if tokens were cut off or joined, correct the list, "
                    + "because these devices get the push"
            ])
        let cut = (10..<17).map { String(tokens[$0].dropFirst(2 * ($0 - 9))) }
        let told = try warnings(optOuts: [tokens[0]] + cut, tokens: tokens)
        #expect(told.count == 1, "\(told)")
        #expect(
            told.first?.hasPrefix(
                "OUT: 7 tokens, the first on line 2, suppress no row, because they have a number of "
                    + "digits that no token of LIST has (50, 52, 54, 56 and others): ") == true,
            "\(told)")
        // An app may have tokens of another length, too.
        let long = (0..<8).map { String(format: "%0160x", $0) }
        #expect(try warnings(optOuts: [tokens[0]] + long, tokens: tokens) == [])
        // Enough tokens of the usual length show that two were joined.
        let joined = try warnings(
            optOuts: tokens[0..<8] + [tokens[8] + tokens[9]], tokens: tokens)
        #expect(joined.count == 1 && joined[0].contains("as many as two tokens of 64"), "\(joined)")
    }

    @Test func `A large suppression list of which no token is in the list is a warning`() throws {
        let tokens = (0..<40).map { String(format: "%064x", $0) }
        let others = (100..<140).map { String(format: "%064x", $0) }
        let told = try warnings(optOuts: others, tokens: tokens)
        #expect(
            told == [
                "no row is suppressed, because none of the 40 tokens of OUT is in LIST: are they of the "
                    + "same app and environment?"
            ])
        #expect(try warnings(optOuts: Array(others[..<9]), tokens: tokens) == [])
        #expect(try warnings(optOuts: others, tokens: Array(tokens[..<39])) == [])
        #expect(try warnings(optOuts: others + [tokens[7]], tokens: tokens + tokens) == [])
        let part = try warnings(optOuts: others, tokens: tokens) { $0.isPart = true }
        #expect(part == [])
        // With few tokens in place of device tokens, the length alone is reported.
        let identifiers = try warnings(
            optOuts: others[..<9].map { String($0.suffix(32)) }, tokens: tokens)
        #expect(
            identifiers.count == 1
                && identifiers[0].hasSuffix(
                    "has (32): if these are not device tokens, or were cut off, correct the list, "
                        + "because these devices get the push"),
            "\(identifiers)")
    }

    @Test func `Ten suppressions of which none has a length of the list's tokens are refused`()
        throws
    {
        let tokens = (0..<40).map { String(format: "%064x", $0) }
        func ids(_ digits: Int, _ count: Int = 60) -> [String] {
            (0..<count).map { String(format: "%0\(digits)x", $0) }
        }
        for (optOuts, counts) in [
            (ids(8), "8"), (ids(32, 10), "32"), (ids(160), "160"),
            (ids(8, 9) + ids(32, 9), "8, 32"),
        ] {
            do {
                _ = try warnings(optOuts: optOuts, tokens: tokens)
                Issue.record("\(optOuts.count) suppressions of \(counts) digits are accepted")
            } catch let error as BroadsideError {
                #expect(error.exitCode == 2)
                #expect(
                    error.message.contains("its \(optOuts.count) tokens are not device tokens of")
                        && error.message.contains(
                            ". They have \(counts) digits, and the tokens of that "),
                    "\(error.message)")
            }
        }
        #expect(try warnings(optOuts: ids(8) + [tokens[0]], tokens: tokens).count == 1)
        #expect(try warnings(optOuts: ids(8), tokens: tokens + ["00000005"]) == [])
        for change: (inout ExclusionScan) -> Void in [{ $0.isPart = true }, { $0.isBegun = true }] {
            let told = try warnings(optOuts: ids(8), tokens: tokens) { change(&$0) }
            #expect(told.count == 1 && told[0].contains("has (8): if these are not"), "\(told)")
        }
    }

    @Test func `A header in a suppression list is a warning, and another header is refused`() throws
    {
        let tokens = (0..<4).map { String(format: "%064x", $0) }
        let rows = tokens.map { $0 + ",1" }
        #expect(
            try warnings(optOuts: [rows[0], "token,x", rows[1]], tokens: tokens, header: true)
                == [
                    "OUT: line 3 repeats the header and is not a device: join files without their "
                        + "headers"
                ])
        let both = try warnings(
            optOuts: [rows[0], "token,x", "none,1"], tokens: tokens, header: true)
        #expect(both.count == 2 && both[1].contains("2 of 3 rows contain no"), "\(both)")
        let begun = try warnings(
            optOuts: [rows[0], "x,token", "1,\(tokens[1])"], tokens: tokens, header: true
        ) { $0.isBegun = true }
        #expect(
            begun.first?.hasPrefix("OUT: line 3 is another header, with the columns x, token: ")
                == true, "\(begun)")
        do {
            _ = try warnings(optOuts: [rows[0], "x,token", rows[1]], tokens: tokens, header: true)
            Issue.record("opt-outs after another header are lost")
        } catch let error as BroadsideError {
            #expect(error.exitCode == 2)
            #expect(error.message.contains("line 3 is another header, with the columns x, token"))
        }
    }

    @Test func `A pending signal ends the search for skipped rows`()
        throws
    {
        let place = try Place(rows: 100, suppress: 10, duplicates: true)
        let list = try TokenList(.file(place.path + "/list"), format: nil, tokenColumn: nil)
        let search = try #require(try place.search())
        let shard = try #require(ListShard("2/2"))
        func code(_ work: () throws -> Void) -> Int32? {
            do { try work() } catch { return (error as? BroadsideError)?.exitCode }
            return nil
        }
        var (found, cut) = (Int32?.none, Int32?.none)
        let stillWaits = withWaitingStop {
            found = code { _ = try search.listAside(of: list) }
            cut = code { _ = try list.part(of: shard) }
        }
        #expect(stillWaits)
        #expect(found == 3 && cut == 3)
        _ = try search.listAside(of: list)
        _ = try list.part(of: shard)
    }
}
