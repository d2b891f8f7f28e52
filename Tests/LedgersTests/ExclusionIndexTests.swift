import BroadsideLists
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
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
            list: list, pool: pool, plan: nil, rows: CampaignRows(),
            skips: skips)
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
