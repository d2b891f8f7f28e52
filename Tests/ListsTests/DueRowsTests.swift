import BroadsideAPNs
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideLists
@testable import BroadsideRows

/// Rows that are due in a pass over a list, by the zone of each.
@Suite struct DueRowsTests {
    private let pool = ChunkPool(limit: 8)
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func list(_ zones: [String]) throws -> TokenList {
        let text = zones.enumerated().map { index, zone in
            let digits = String(index, radix: 16)
            return String(repeating: "0", count: 64 - digits.count) + digits + "," + zone + "\n"
        }.joined()
        let path = try directory.write("token,tz\n" + text, to: "list.csv")
        return try TokenList(
            .file(path), format: nil, tokenColumn: nil, wanted: [("tz", "--zone-column")])
    }

    private func zones(
        _ list: TokenList, _ selection: ListSelection = ListSelection(), default zone: String? = nil
    ) throws -> RowZones {
        try RowZones(
            list, selection,
            rule: .init(column: "tz", defaultZone: zone) { $0.hasPrefix("Zone/") })
    }

    @Test func `Each zone has its rows, and unknown ones are counted with the first line`() throws {
        let list = try list(["Zone/A", "Zone/B", "", "Zone/A", "nowhere", "Zone/C"])
        let found = try zones(list)
        #expect(found.zones.map(\.name) == ["Zone/A", "Zone/B", "Zone/C"])
        #expect(found.zones.map(\.rows) == [2, 1, 1] && found.endRow == 6)
        #expect(found.unknownRows == 2 && found.firstUnknown?.line == 4)
        #expect(try found.numbers(of: 0..<6) == [2, 3, 1, 2, 1, 4])
        #expect(try found.numbers(of: 4..<9) == [1, 4] && found.numbers(of: 6..<9).isEmpty)
        let filled = try zones(list, default: "Zone/C")
        #expect(filled.zones.map(\.rows) == [3, 2, 1] && filled.unknownRows == 0)
    }

    @Test func `A misspelled zone and a missing one get the default, and are counted apart`() throws
    {
        let long = String(repeating: "x", count: 65)
        let list = try list(["Zone/A", " Zone/B ", "zone/a", "", "Zone/A\t", "zone/a", long, "  "])
        let found = try zones(list, default: "Zone/C")
        #expect(found.zones.map(\.name) == ["Zone/C", "Zone/A", "Zone/B"])
        #expect(found.zones.map(\.rows) == [5, 2, 1])
        #expect(found.misnamedRows == 3 && found.unnamedRows == 2 && found.unknownRows == 0)
        #expect(found.firstMisnamed?.line == 4 && found.firstMisnamed?.text == "zone/a")
        let strict = try zones(list)
        #expect(strict.unknownRows == 5 && strict.misnamedRows == 0 && strict.unnamedRows == 0)
        #expect(try strict.numbers(of: 0..<8) == [2, 3, 1, 1, 2, 1, 1, 1])
    }

    @Test func `Invisible characters around a zone are ignored, and those in it are shown`()
        throws
    {
        let list = try list([
            "Zone/A\u{a0}", "\u{feff}Zone/A", "Zone/A \u{200b}", "\u{a0}", "Zone/A",
            "Zo\u{200b}ne/A",
        ])
        let found = try zones(list, default: "Zone/C")
        #expect(found.zones.map(\.name) == ["Zone/C", "Zone/A"])
        #expect(found.zones.map(\.rows) == [2, 4])
        #expect(found.unnamedRows == 1 && found.misnamedRows == 1)
        #expect(found.firstMisnamed?.text == "Zo\\u{200b}ne/A")
        let strict = try zones(list)
        #expect(strict.unknownRows == 2 && strict.firstUnknown?.line == 5)
    }

    @Test func `The longest name of a zone is one, and a longer one is not looked for`() throws {
        let name = "Zone/" + String(repeating: "x", count: 59)
        let found = try zones(try list([name, name + "x", "\t" + name]))
        #expect(found.zones.map(\.name) == [name] && found.zones[0].rows == 1)
        #expect(found.unknownRows == 2, "blanks count for the limit")
    }

    @Test func `As many zones as there may be have numbers, and a further one is unknown`() throws {
        let names = (0...RowZones.zonesLimit).map { "Zone/\($0)" }
        let found = try zones(try list(names + ["Zone/1"]))
        #expect(found.zones.count == RowZones.zonesLimit && found.unknownRows == 1)
        #expect(found.zones.last?.name == "Zone/\(RowZones.zonesLimit - 1)")
        #expect(found.zones[1].rows == 2)
    }

    @Test func `A range of rows has their numbers, up to the last row, in a list of any length`()
        throws
    {
        let count = 70_000
        let found = try zones(try list((0..<count).map { "Zone/\($0 % 7)" }))
        #expect(found.endRow == UInt64(count) && found.zones.count == 7)
        for row in [0, 1, 65_534, 65_535, 65_536, count - 1] {
            #expect(
                try found.numbers(of: UInt64(row)..<UInt64(row + 1))
                    == [RowZones.firstZone + UInt16(row % 7)], "\(row)")
        }
        #expect(try found.numbers(of: UInt64(count)..<UInt64(count + 1)).isEmpty)
    }

    @Test func `A part of a list that begins behind its first row has its own rows' zones`() throws
    {
        let list = try list((0..<9).map { "Zone/\($0 % 3)" })
        let part = try list.part(of: ListShard("2/2"))
        let first = Int(part.firstRow)
        #expect(first > 0 && first < 8)
        let found = try zones(list, ListSelection(rows: CampaignRows(part: part)))
        #expect(found.endRow == 9 && found.zones.reduce(0) { $0 + $1.rows } == UInt64(9 - first))
        for row in first..<9 {
            let number = try found.numbers(of: UInt64(row)..<UInt64(row + 1))
            let name = try #require(
                number.first.map { found.zones[Int($0 - RowZones.firstZone)].name })
            #expect(name == "Zone/\(row % 3)", "\(row)")
        }
        #expect(try found.numbers(of: 0..<1).isEmpty)
    }

    @Test func `Rows that are skipped have no zone, and a chunk of unknown ones has work`() throws {
        let list = try list(["nowhere", "Zone/A"])
        let found = try zones(list)
        let waits = DueRows(found) { _ in .wait }
        #expect(try waits.hasAny(in: 0..<1) && !waits.hasAny(in: 1..<2))
        let missed = DueRows(found) { _ in .skip }
        #expect(try missed.hasAny(in: 1..<2), "they are settled as late")
    }

    @Test func `Rows of other shards and behind a limit belong to no zone`() throws {
        let list = try list(Array(repeating: "Zone/A", count: 10))
        let rows = CampaignRows(selection: RowSelection(divisor: 3, remainder: 1), limit: 8)
        let found = try zones(list, ListSelection(rows: rows))
        #expect(found.zones.map(\.rows) == [3])
        #expect(try found.numbers(of: 0..<10) == [0, 2, 0, 0, 2, 0, 0, 2])
    }

    /// A ledger in which a run reserved rows 1 to 3, and settled rows 1 and 3.
    private func index() throws -> LedgerIndex {
        var writer = LedgerWriter(campaign: 7, epoch: 1, reactor: 0, keepsTokens: true)
        writer.reserve(
            ChunkReservation(
                firstRow: 1, rowCount: 3, byteOffset: 100, byteCount: 300, firstLine: 3,
                lineCount: 3, hash: 0, reopens: []), nowMilliseconds: 1_790_000_000_000)
        writer.accepted(
            row: 1, fingerprint: 1, attempts: 1, nowMilliseconds: 1_790_000_000_000)
        let token: [UInt8] = []
        writer.settled(
            row: 3, state: .failed, status: 0, reason: 7, attempts: 1, token: token.span.bytes,
            tokenIsText: false, nowMilliseconds: 1_790_000_000_000)
        var bytes: [UInt8] = []
        while let (pending, _) = writer.nextWrite() {
            bytes.append(contentsOf: pending)
            writer.writeCompleted(pending.count)
        }
        return try LedgerIndex(
            segments: [LedgerSegment(epoch: 1, reactor: 0, bytes: LedgerMemory(bytes))],
            campaign: 7, rows: CampaignRows())
    }

    @Test func `The rows of each zone that are left are those that the next run sends`() throws {
        let list = try list(["Zone/A", "Zone/A", "Zone/B", "Zone/B", "unknown", "Zone/C"])
        let found = try zones(list)
        func left(
            _ lostRows: LostResponsePolicy, _ reopens: ReopenedStates = []
        ) throws -> [UInt64] {
            try found.rowCounts(
                ResumePlan(index: try index(), lostRows: lostRows, reopens: reopens))
        }
        // Row 2 is in doubt.
        #expect(try left(.record) == [1, 0, 1])
        #expect(try left(.resend) == [1, 1, 1])
        #expect(try left(.resend, [.failed]) == [1, 2, 1])
    }

    @Test func `Rows of erased devices belong to no zone, and none of them is left to be sent`()
        throws
    {
        let list = try list(["Zone/A", "Zone/A", "Zone/B", "Zone/B", "unknown", "Zone/C"])
        var index = try index()
        index.erasedRows = ErasedRows([0, 2, 4, 5])
        let found = try zones(list, ListSelection(erased: index.erasedRows))
        #expect(found.zones.map(\.rows) == [1, 1, 0] && found.usedNames == ["Zone/A", "Zone/B"])
        #expect(found.zones.map(\.erasedRows) == [1, 1, 1] && found.unknownRows == 0)
        #expect(try found.numbers(of: 0..<6) == [0, 2, 0, 3, 0, 0])
        // Row 3 has failed.
        let left = ResumePlan(index: index, lostRows: .resend, reopens: .failed)
        #expect(try found.rowCounts(left) == [0, 1, 0])
    }

    @Test func `A row of an erased device is settled in the first pass, and never sent`() throws {
        let list = try list(["Zone/A", "Zone/A", "Zone/B", "unknown"])
        var selection = ListSelection(erased: ErasedRows([1, 2, 3]))
        let found = try zones(list, selection)
        selection.due = DueRows(found) { $0 == 0 ? .skip : .wait }
        let source = try ListSource(list: list, pool: pool, plan: nil, selection: selection)
        let chunk = try #require(try source.next(rowLimit: .max))
        let unsent = RowDisposition.erased(mayHaveBeenSent: false)
        #expect(chunk.dispositions == [.skipped(.late), unsent, unsent, unsent])
        // Of the rows in doubt, an earlier run can have sent only the one that was not late.
        let inDoubt = RowDisposition.erased(mayHaveBeenSent: true)
        chunk.dispositions = [.settled, inDoubt, inDoubt, inDoubt]
        selection.due = DueRows(found) { $0 == 0 ? .skip : .send }
        try selection.mark(chunk)
        #expect(chunk.dispositions == [.settled, unsent, inDoubt, unsent])
        pool.giveBack(chunk)
    }

    /// Passes over a list in which each zone is due once hand out each row once.
    @Test(arguments: [1, 7, 100, 5_000])
    func `Passes hand out each row once, when its zone is due`(rowLimit: Int) throws {
        var random = SeededRandom(seed: UInt64(rowLimit))
        let names = (0..<3_000).map { _ in
            let number = random.next() % 9
            return number < 8 ? "Zone/\(number)" : "unknown"
        }
        let list = try list(names)
        let found = try zones(list)
        var sent: [UInt64: Int] = [:]
        var invalid: Set<UInt64> = []
        for pass in found.zones.indices {
            let due = DueRows(found) { $0 == pass ? .send : .wait }
            let source = try ListSource(
                list: list, pool: pool, plan: nil, selection: ListSelection(due: due))
            while let chunk = try source.next(rowLimit: rowLimit) {
                let dispositions =
                    chunk.dispositions ?? Array(repeating: .send, count: chunk.rowCount)
                for (index, disposition) in dispositions.enumerated() {
                    let row = chunk.start.row + UInt64(index)
                    switch disposition {
                    case .send: sent[row, default: 0] += 1
                    case .invalid(.badZone): invalid.insert(row)
                    default: #expect(disposition == .notDue)
                    }
                    if disposition == .send {
                        #expect(names[Int(row)] == found.zones[pass].name)
                    }
                }
                pool.giveBack(chunk)
            }
            #expect(source.progress.isAtEnd && source.progress.rows == 3_000)
        }
        #expect(sent.count + invalid.count == 3_000 && sent.values.allSatisfy { $0 == 1 })
        #expect(invalid.count == Int(found.unknownRows))
    }

    @Test(arguments: [0, 2_940])
    func `Rows of one zone that lie together are handed out by the limit`(first: Int) throws {
        let list = try list(
            (0..<3_000).map { (first..<first + 60).contains($0) ? "Zone/A" : "Zone/B" })
        let zones = try zones(list)
        let due = DueRows(zones) { zones.zones[$0].name == "Zone/A" ? .send : .wait }
        func sent(_ source: ListSource) throws -> [Int] {
            var counts: [Int] = []
            while let chunk = try source.next(rowLimit: 25) {
                let wanted = chunk.dispositions?.count { $0 == .send } ?? chunk.rowCount
                if wanted > 0 { counts.append(wanted) }
                pool.giveBack(chunk)
            }
            return counts
        }
        let gate = CanaryGate(rows: 10, maximumRefusedPercent: 20)
        let withCanary = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection(due: due),
            canary: gate)
        #expect(try sent(withCanary).reduce(0, +) == 10)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection(due: due))
        #expect(try sent(source) == [25, 25, 10])
    }

    @Test func `A late row is skipped, also in doubt, and a waiting one in doubt stays so`() throws
    {
        let list = try list(["Zone/A", "Zone/B", "Zone/A", "Zone/B"])
        let due = DueRows(try zones(list)) { $0 == 0 ? .skip : .wait }
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection(due: due))
        let chunk = try #require(try source.next(rowLimit: .max))
        #expect(chunk.dispositions == [.skipped(.late), .notDue, .skipped(.late), .notDue])
        chunk.dispositions = [.settled, .sendAgain, .sendAgain, .becomesUnknown]
        try ListSelection(due: due).mark(chunk)
        #expect(chunk.dispositions == [.settled, .settled, .skipped(.late), .becomesUnknown])
        chunk.dispositions = [.becomesUnknown, .send, .beyondLimit, .beyondLimit]
        try ListSelection(due: due).mark(chunk)
        #expect(chunk.dispositions == [.skipped(.late), .notDue, .beyondLimit, .beyondLimit])
        pool.giveBack(chunk)
    }

    @Test func `A row of an unknown zone is never sent, whatever an earlier run left of it`() throws
    {
        let list = try list(["nowhere", "nowhere", "nowhere", "nowhere", "Zone/A"])
        let due = DueRows(try zones(list)) { _ in .send }
        let source = try ListSource(
            list: list, pool: pool, plan: nil, selection: ListSelection(due: due))
        let chunk = try #require(try source.next(rowLimit: .max))
        chunk.dispositions = [.send, .sendAgain, .becomesUnknown, .settled, .sendAgain]
        try ListSelection(due: due).mark(chunk)
        let invalid = RowDisposition.invalid(.badZone)
        #expect(chunk.dispositions == [invalid, invalid, invalid, .settled, .sendAgain])
        pool.giveBack(chunk)
    }
}
