import BroadsideSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// A list of 21 rows on lines 2, 4, 6, ...: the token of row r is r in sixteen digits.
struct TestList: LedgerListReader {
    static let rowCount: UInt64 = 21
    var isAvailable: Bool { true }

    func load(_ chunk: ChunkReservation, into rows: inout ListRows) throws(LedgerError) {
        guard chunk.hash == testChunk(chunk.firstRow, chunk.rowCount).hash else {
            throw LedgerError(.badList)
        }
        fill(&rows, chunk)
    }

    func loadNext(
        of gap: ListExtent, into rows: inout ListRows
    ) throws(LedgerError) -> ChunkReservation? {
        guard gap.firstRow < TestList.rowCount else { return nil }
        let end = min(gap.endRow ?? .max, TestList.rowCount, gap.firstRow + 2)
        let chunk = testChunk(gap.firstRow, Int(end - gap.firstRow))
        fill(&rows, chunk)
        return chunk
    }

    private func fill(_ rows: inout ListRows, _ chunk: ChunkReservation) {
        rows.begin(line: 2 * chunk.firstRow + 2)
        for row in chunk.rows {
            let digits = String(row, radix: 16)
            let text = String(repeating: "0", count: 16 - digits.count) + digits
            rows.append(line: 2 * row + 2, text: Array(text.utf8).rawSpan, isToken: true)
        }
    }
}

extension LedgerExport {
    /// Appends the next part, and forgets the text before it.
    mutating func next(
        list: inout some LedgerListReader, into output: inout [UInt8]
    ) throws(LedgerError) -> Bool {
        forgetText()
        let isMore = try next(list: &list)
        output.append(bytes)
        return isMore
    }
}

/// The apns-id of a row.
func testIdentifier(_ row: UInt64) -> String {
    let text = [UInt8](capacity: NotificationID.textCount) {
        NotificationID(campaign: testCampaign, row: row).write(into: &$0)
    }
    return String(decoding: text, as: UTF8.self)
}

@Suite struct LedgerExportTests {
    /// Rows 3 to 8 and 12 to 13 are reserved.
    func index() throws -> LedgerIndex {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(12, 2), nowMilliseconds: testTime)
        draft.writer.reserve(testChunk(3, 6), nowMilliseconds: testTime)
        draft.writer.accepted(row: 3, fingerprint: 0, attempts: 2, nowMilliseconds: testTime)
        let text = Array("New\"Reason\n".utf8)
        draft.writer.settled(
            row: 4, state: .rejected, status: 410, reason: 0, reasonText: text.span.bytes,
            attempts: 1, timestamp: 1_700_000_000_000, token: Array("00AB".utf8).span.bytes,
            tokenIsText: false, nowMilliseconds: testTime + 1)
        let malformed = Array("a,\"b\"".utf8)
        draft.writer.settled(
            row: 5, state: .invalid, status: 0, reason: 9, attempts: 0,
            token: malformed.span.bytes, tokenIsText: true, nowMilliseconds: testTime + 2)
        draft.writer.release(row: 7, count: 1, attempts: 1, nowMilliseconds: testTime)
        draft.writer.settled(row: 8, .unknown)
        draft.write()
        return try testIndex([draft])
    }

    func export(
        _ list: some LedgerListReader, _ format: ExportFormat, _ states: Set<RowState>? = nil
    ) throws -> [String] {
        var export = LedgerExport(
            of: try index(), states: states, format: format, campaign: testCampaign,
            reasonText: { "Reason\($0)" })
        var output: [UInt8] = []
        var list = list
        while try export.next(list: &list, into: &output) {}
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test(arguments: ExportFormat.allCases)
    func `A part of a merged export has no header and notes where each row ends`(
        format: ExportFormat
    ) throws {
        var export = LedgerExport(
            of: try index(), states: Set(RowState.allCases), format: format, isPart: true,
            notesRows: true, campaign: testCampaign, reasonText: { "Reason\($0)" })
        var list = TestList()
        var numbers: [UInt64] = []
        var text: [UInt8] = []
        while true {
            var output: [UInt8] = []
            let isMore = try export.next(list: &list, into: &output)
            let (rows, nextRow) = (export.rows, export.nextRow)
            #expect(rows.last?.end ?? 0 == output.count)
            for row in rows { #expect(output[row.end - 1] == 0x0a && row.number < nextRow) }
            numbers += rows.map(\.number)
            text += output
            guard isMore else { break }
        }
        #expect(numbers == (0..<21).map { $0 })
        let whole = try self.export(TestList(), format, Set(RowState.allCases))
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        #expect(lines == Array(whole.dropFirst(format == .csv ? 1 : 0)))
    }

    @Test func `Settled rows come in list order, as CSV`() throws {
        let header =
            "line,token,state,status,reason,apns_timestamp_ms,attempts,apns_id,settled_at_ms"
        let lines = try export(TestList(), .csv)
        #expect(
            lines == [
                header,
                "8,0000000000000003,accepted,200,,,2,\(testIdentifier(3)),1790000000000",
                "10,00ab,rejected,410,\"New\"\"Reason",
                "\",1700000000000,1,\(testIdentifier(4)),1790000000001",
                "12,\"a,\"\"b\"\"\",invalid,,Reason9,,0,\(testIdentifier(5)),1790000000002",
                "18,0000000000000008,unknown,,Reason7,,1,\(testIdentifier(8)),1790000000000",
            ])
        let without = try export(NoLedgerList(), .csv)
        #expect(without[1] == ",,accepted,200,,,2,\(testIdentifier(3)),1790000000000")
        #expect(without[2] == ",00ab,rejected,410,\"New\"\"Reason")
        #expect(without.count == 6)
    }

    /// Text, as a list or a server has it, and its cell.
    static let cells: [(bytes: [UInt8], token: String, reason: String)] = [
        (Array("plain".utf8), "plain", "plain"),
        (Array("=1+1".utf8), "'=1+1", "'=1+1"),
        (Array("+1".utf8), "'+1", "'+1"),
        (Array("-1".utf8), "'-1", "'-1"),
        (Array("@SUM(A1)".utf8), "'@SUM(A1)", "'@SUM(A1)"),
        (Array("\t=1".utf8), "'\t=1", "'\t=1"),
        (Array("\r=1".utf8), "\"'\r=1\"", "\"'\r=1\""),
        (Array("=\"a\",b".utf8), "\"'=\"\"a\"\",b\"", "\"'=\"\"a\"\",b\""),
        (Array("1=1".utf8), "1=1", "1=1"),
        (Array("é,".utf8), "\"é,\"", "\"é,\""),
        // A character that was cut off, one of Latin-1, and a lone surrogate.
        ([0x61, 0xC3], "a\u{FFFD}", "a\u{FFFD}"),
        ([0xE9, 0x2C], "\"\u{FFFD},\"", "\"\u{FFFD},\""),
        ([0xED, 0xA0, 0x80], "\u{FFFD}\u{FFFD}\u{FFFD}", "\u{FFFD}\u{FFFD}\u{FFFD}"),
    ]

    @Test(arguments: cells)
    func `Cells are UTF-8, and neither a server's nor a list's are formulas`(
        cell: (bytes: [UInt8], token: String, reason: String)
    ) {
        var row = ExportRow()
        row.token = cell.bytes
        row.reason = cell.bytes
        var output: [UInt8] = []
        ExportFormat.csv.append(row, to: &output)
        #expect(
            String(validating: output, as: UTF8.self)
                == ",\(cell.token),remaining,,\(cell.reason),,0,,\n")
    }

    @Test func `Rows without a reason are found by the name that they are counted under`() throws {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(3, 6), nowMilliseconds: testTime)
        draft.writer.accepted(row: 3, fingerprint: 9, attempts: 1, nowMilliseconds: testTime)
        for (row, reason) in [(4, 0), (5, 9), (6, 0)] as [(UInt64, UInt8)] {
            let token = Array("00AB".utf8)
            draft.writer.settled(
                row: row, state: .rejected, status: 410, reason: reason, attempts: 1,
                token: token.span.bytes, tokenIsText: false, nowMilliseconds: testTime)
        }
        draft.write()
        let index = try testIndex([draft])
        let counted = try LedgerSummary(index).counts.reasons.named { "Reason\($0)" }
        #expect(counted == [ReasonCounts.noReason: 2, "Reason9": 1])
        for (reasons, states, lines) in [
            ([ReasonCounts.noReason], nil, ["10", "14"]),
            ([ReasonCounts.noReason, "Reason9"], nil, ["10", "12", "14"]),
            ([ReasonCounts.noReason], [.accepted, .inDoubt, .remaining], []),
        ] as [(Set<String>, Set<RowState>?, [String])] {
            var export = LedgerExport(
                of: index, states: states, reasons: reasons, format: .csv, campaign: nil,
                reasonText: { "Reason\($0)" })
            var output: [UInt8] = []
            var list = TestList()
            while try export.next(list: &list, into: &output) {}
            let found = String(decoding: output, as: UTF8.self).split(separator: "\n").dropFirst()
            #expect(found.map { $0.prefix { $0 != "," } } == lines.map { $0[...] })
        }
    }

    @Test func `Settled rows come as JSON Lines`() throws {
        let lines = try export(TestList(), .jsonl, [.rejected, .invalid])
        #expect(
            lines == [
                """
                {"line":10,"token":"00ab","state":"rejected","status":410,\
                "reason":"New\\"Reason\\u000a","apns_timestamp_ms":1700000000000,"attempts":1,\
                "apns_id":"\(testIdentifier(4))","settled_at_ms":1790000000001}
                """,
                """
                {"line":12,"token":"a,\\"b\\"","state":"invalid","status":null,\
                "reason":"Reason9","apns_timestamp_ms":null,"attempts":0,\
                "apns_id":"\(testIdentifier(5))","settled_at_ms":1790000000002}
                """,
            ])
    }

    @Test func `Open rows are found in the ledger and in the list between its chunks`() throws {
        let doubt = try export(TestList(), .csv, [.inDoubt])
        #expect(doubt.dropFirst().map { $0.split(separator: ",")[0] } == ["14", "26", "28"])
        #expect(doubt[1] == "14,0000000000000006,in-doubt,,,,0,\(testIdentifier(6)),")
        let remaining = try export(TestList(), .csv, [.remaining])
        let rows = [0, 1, 2, 7, 9, 10, 11, 14, 15, 16, 17, 18, 19, 20]
        #expect(
            remaining.dropFirst().map { $0.split(separator: ",")[0] }
                == rows.map { "\(2 * $0 + 2)" })
        #expect(remaining[4] == "16,0000000000000007,remaining,,,,1,\(testIdentifier(7)),")
        // Without the list only what the ledger knows of is left.
        #expect(try export(NoLedgerList(), .csv, [.remaining]).count == 2)
    }

    @Test func `A resume takes gaps and chunks in list order`() throws {
        var plan = ResumePlan(index: try index(), lostRows: .record, reopens: .failed)
        var seen: [String] = []
        while let work = try plan.next() {
            switch work {
            case .gap(let gap):
                seen.append(
                    """
                    rows \(gap.firstRow)-\(gap.endRow ?? 0) bytes \(gap.byteOffset)-\
                    \(gap.endByteOffset ?? 0) line \(gap.firstLine)
                    """)
            case .chunk(let work):
                #expect(work.chunk.reopens == .failed)
                seen.append(
                    """
                    chunk \(work.chunk.firstRow) \(work.dispositions.map(\.digit)) \
                    \(work.attempts) \(work.sendCount) \(work.unsentCount)
                    """)
            }
        }
        #expect(
            seen == [
                "rows 0-3 bytes 0-195 line 1",
                "chunk 3 [1, 1, 1, 2, 0, 1] [0, 0, 0, 1, 1, 0] 1 1",
                "rows 9-12 bytes 585-780 line 10",
                "chunk 12 [2, 2] [1, 1] 0 2",
                "rows 14-0 bytes 910-0 line 15",
            ])
        var retry = ResumePlan(index: try index(), lostRows: .record, reopens: .unknown)
        _ = try retry.next()
        guard case .chunk(let work) = try retry.next() else {
            Issue.record("no chunk")
            return
        }
        // Rows whose answer was lost are sent again, and stay in doubt until they are.
        #expect(work.dispositions.map(\.digit) == [1, 1, 1, 3, 0, 3])
    }

    @Test func `A new ledger has all rows of the list open`() throws {
        let index = try LedgerIndex(segments: [], campaign: testCampaign)
        var plan = ResumePlan(index: index, lostRows: .record, reopens: [])
        guard case .gap(let gap) = try plan.next() else {
            Issue.record("no gap")
            return
        }
        #expect(gap == .wholeList)
        let rest = try plan.next()
        if rest != nil { Issue.record("more than the list") }
    }

    @Test func `Reasons are counted, by code and by text`() throws {
        let summary = try LedgerSummary(index())
        #expect(summary.reservedRowCount == 8 && summary.count(.inDoubt) == 3)
        #expect(summary.counts.reasons.codes == [9: 1, 7: 1])
        #expect(summary.counts.reasons.texts == ["New\"Reason\n": 1])
        #expect(summary.count(.accepted) == 1 && summary.count(.remaining) == 1)
        #expect(RowState.allCases.allSatisfy { RowState(name: $0.name) == $0 })
        #expect(RowState(name: "gone") == nil)
    }

    @Test(
        arguments: [
            ("a.csv", .format(.csv)), ("a.CSV.gz", .format(.csv)), ("a.jsonl", .format(.jsonl)),
            ("d.json/a.ndjson.zst", .format(.jsonl)), ("a.json", .unknown(ending: ".json")),
            ("a.tsv.gz", .unknown(ending: ".tsv")), ("a.Parquet", .unknown(ending: ".parquet")),
            ("a.xlsx", .unknown(ending: ".xlsx")), ("a.txt", nil), ("csv", nil), ("a.gz", nil),
            ("d.csv/a", nil), ("/dev/stdout", nil), ("", nil),
        ] as [(String, ExportFormat.Implied?)])
    func `A file's name implies the format of an export`(
        name: String, implied: ExportFormat.Implied?
    ) {
        #expect(ExportFormat.implied(by: name) == implied)
    }
}
