import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// An export's bytes, held against a plain way of writing rows that shares no code with it: ledgers
/// and lists with everything that may be in them.
@Suite struct ExportBytesTests {
    /// A row, as a ledger and a list know it.
    struct Row {
        var state = RowState.inDoubt
        var status: UInt16 = 0
        var reason: UInt8 = 0
        var reasonText: [UInt8] = []
        var attempts: UInt16 = 0
        var timestamp: UInt64?
        var settledAt: UInt64 = 0
        /// What the ledger has of its token, as an export shows it.
        var kept: [UInt8] = []
        var line: UInt64 = 0
        /// What the list has.
        var listed: [UInt8] = []
        var isToken = false
    }

    /// A list whose rows are given, in chunks so short that all texts fit.
    struct GivenList: LedgerListReader {
        let given: [Row]
        var isAvailable: Bool { true }

        func load(_ chunk: ChunkReservation, into rows: inout ListRows) throws(LedgerError) {
            rows.begin(line: given[Int(chunk.firstRow)].line)
            for row in given[Int(chunk.firstRow)..<Int(chunk.rows.upperBound)] {
                rows.append(line: row.line, text: row.listed.rawSpan, isToken: row.isToken)
            }
        }

        func loadNext(
            of gap: ListExtent, into rows: inout ListRows
        ) throws(LedgerError) -> ChunkReservation? {
            guard gap.firstRow < given.count else { return nil }
            let chunk = testChunk(gap.firstRow, min(250, given.count - Int(gap.firstRow)))
            try load(chunk, into: &rows)
            return chunk
        }
    }

    static let reserved = 3_000
    static let rowCount = 4_000
    /// Texts that spreadsheets, CSV, JSON or UTF-8 have something against, and some harmless ones.
    static let texts: [[UInt8]] =
        [
            "", "plain", "two words", "a-b_c.d:e/f", "-1", "=1+1", "+1", "@x", "\t1", "\r", "a,b",
            "\"",
            "a\"b", "a\nb", "\\", "\u{7f}", "\u{1}", "é", "🙂,", " ", "'", "a\0b",
        ].map { Array($0.utf8) } + [[0xC3], [0x61, 0xFF, 0x2C], [0xED, 0xA0, 0x80]]

    private static func digits(_ count: Int, _ random: inout SeededRandom) -> [UInt8] {
        (0..<count).map { _ in Array("0123456789abcdef".utf8).randomElement(using: &random)! }
    }

    private static func row(_ line: UInt64, _ random: inout SeededRandom) -> Row {
        var row = Row(line: line)
        row.isToken = Int.random(in: 0..<8, using: &random) > 0
        row.listed =
            row.isToken
            ? digits([2, 62, 64, 64, 64, 160, 200].randomElement(using: &random)!, &random)
            : texts.randomElement(using: &random)!
        return row
    }

    /// Settles a row in the draft, and notes what an export has to say of it.
    private static func settle(
        _ row: inout Row, _ number: UInt64, _ draft: SegmentDraft, _ random: inout SeededRandom
    ) {
        let now = testTime + UInt64.random(in: 0..<200_000, using: &random)
        let kind = Int.random(in: 0..<10, using: &random)
        if kind == 0 { return }
        row.settledAt = now
        row.attempts = UInt16([1, 1, 2, 9, 10, 15, 16, 99, 65_535].randomElement(using: &random)!)
        if kind < 5 {
            row.state = .accepted
            row.status = 200
            draft.writer.accepted(
                row: number, fingerprint: TokenText.fingerprint(row.listed.span.bytes),
                attempts: Int(row.attempts),
                nowMilliseconds: now)
            return
        }
        row.state = [.accepted, .rejected, .invalid, .skipped, .failed, .unknown].randomElement(
            using: &random)!
        row.status = [0, 7, 42, 200, 400, 410, 503, 65_535].randomElement(using: &random)!
        row.reason = UInt8.random(in: 0...255, using: &random)
        if Bool.random(using: &random) { row.reason = 0 }
        if kind == 5 {
            // More than 64 bytes are not kept.
            let text = Self.texts.randomElement(using: &random)!
            row.reasonText = Array((text + text + text).prefix(64))
        }
        if kind == 6 {
            row.timestamp = [0, 9, 1_700_000_000_123, .max].randomElement(using: &random)!
        }
        let isText = kind == 7
        row.kept =
            isText
            ? texts.randomElement(using: &random)!
            : digits([0, 2, 64, 200].randomElement(using: &random)!, &random)
        let (text, token) = (row.reasonText, row.kept)
        func settle(_ text: RawSpan?) {
            draft.writer.settled(
                row: number, state: row.state, status: row.status, reason: row.reason,
                reasonText: text, attempts: Int(row.attempts), timestamp: row.timestamp,
                token: token.rawSpan, tokenIsText: isText, nowMilliseconds: now)
        }
        if text.isEmpty { settle(nil) } else { settle(text.rawSpan) }
    }

    // MARK: The plain way

    /// The text of a reason's code, some of them odd.
    static func reasonText(_ code: UInt8) -> String {
        switch code {
        case 1: "=formula"
        case 2: "a,\"b\""
        case 3: String(repeating: "long ", count: 30)
        default: "Reason\(code)"
        }
    }

    private static func cell(_ text: [UInt8]) -> String {
        var text = String(decoding: text, as: UTF8.self)
        if let first = text.unicodeScalars.first, "=+-@\t\r".unicodeScalars.contains(first) {
            text = "'" + text
        }
        guard text.unicodeScalars.contains(where: { ",\"\n\r".unicodeScalars.contains($0) }) else {
            return text
        }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" { quoted += "\"" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }

    private static func string(_ text: [UInt8]) -> String {
        guard !text.isEmpty else { return "null" }
        var written = "\""
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C: written += "\\"
            case 0..<0x20, 0x7F:
                let digits = String(scalar.value, radix: 16)
                written += "\\u00" + (digits.utf8.count == 1 ? "0" : "") + digits
                continue
            default: break
            }
            written.unicodeScalars.append(scalar)
        }
        return written + "\""
    }

    private static func line(
        _ row: Row, _ number: Int, _ format: ExportFormat, hasList: Bool, campaign: UInt64?,
        acceptsBySilence: Bool
    ) -> String {
        let token = row.kept.isEmpty && hasList ? row.listed : row.kept
        let hasStatus = row.status != 0 && !(acceptsBySilence && row.state == .accepted)
        let reason =
            row.reasonText.isEmpty && row.reason != 0
            ? Array(reasonText(row.reason).utf8) : row.reasonText
        let identifier = campaign == nil ? [] : Array(testIdentifier(UInt64(number)).utf8)
        let numbers: [UInt64?] = [
            hasList ? row.line : nil, hasStatus ? UInt64(row.status) : nil, row.timestamp,
            row.state.isSettled ? row.settledAt : nil,
        ]
        if format == .csv {
            let text = numbers.map { $0.map { "\($0)" } ?? "" }
            return "\(text[0]),\(cell(token)),\(row.state.name),\(text[1]),\(cell(reason)),"
                + "\(text[2]),\(row.attempts),\(cell(identifier)),\(text[3])\n"
        }
        let text = numbers.map { $0.map { "\($0)" } ?? "null" }
        return "{\"line\":\(text[0]),\"token\":\(string(token)),\"state\":\"\(row.state.name)\","
            + "\"status\":\(text[1]),\"reason\":\(string(reason)),\"apns_timestamp_ms\":\(text[2]),"
            + "\"attempts\":\(row.attempts),\"apns_id\":\(string(identifier)),"
            + "\"settled_at_ms\":\(text[3])}\n"
    }

    // MARK: Both

    @Test(arguments: UInt64(0)..<8, ExportFormat.allCases)
    func `The fast export writes each row as the plain one does`(seed: UInt64, format: ExportFormat)
        throws
    {
        var random = SeededRandom(seed: seed)
        var rows: [Row] = []
        var line: UInt64 = [1, 900, 999_990, 4_000_000_000].randomElement(using: &random)!
        for _ in 0..<Self.rowCount {
            rows.append(Self.row(line, &random))
            line += UInt64.random(in: 1...3, using: &random)
        }
        let draft = testDraft()
        for first in stride(from: 0, to: Self.reserved, by: 300) {
            draft.writer.reserve(testChunk(UInt64(first), 300), nowMilliseconds: testTime)
        }
        for number in 0..<Self.reserved {
            Self.settle(&rows[number], UInt64(number), draft, &random)
        }
        draft.write()
        for number in Self.reserved..<Self.rowCount { rows[number].state = .remaining }
        let index = try testIndex([draft])
        let (hasList, hasIDs) = (seed % 4 != 0, seed % 3 != 0)
        let campaign = hasIDs ? testCampaign : nil
        var export = LedgerExport(
            of: index, states: Set(RowState.allCases), format: format, isPart: true,
            campaign: campaign, acceptsBySilence: seed == 5, reasonText: Self.reasonText)
        var list = GivenList(given: rows)
        var none = NoLedgerList()
        var found: [UInt8] = []
        var isMore = true
        while isMore {
            isMore = try hasList ? export.next(list: &list) : export.next(list: &none)
            if export.hasRoom && isMore && seed % 2 == 0 { continue }
            found.append(export.bytes)
            export.forgetText()
        }
        var rest = found[...]
        for number in 0..<(hasList ? Self.rowCount : Self.reserved) {
            let expected = Self.line(
                rows[number], number, format, hasList: hasList, campaign: campaign,
                acceptsBySilence: seed == 5)
            try #require(
                rest.starts(with: expected.utf8),
                "row \(number): \(String(decoding: rest.prefix(300), as: UTF8.self)) is not \(expected)"
            )
            rest = rest.dropFirst(expected.utf8.count)
        }
        #expect(rest.isEmpty)
    }
}
