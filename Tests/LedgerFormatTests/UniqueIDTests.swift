import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// The apns-unique-id of accepted rows: recorded, exported, found, and kept by a repair.
@Suite struct UniqueIDTests {
    private static let ids = [
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "", "9f1c2d3e-0b7a-4c55-8e21-6d4f0ba9b87c", "", "",
    ]

    /// Rows 0 to 4: accepted with an ID, accepted without, accepted with one in an arm, rejected
    /// with a reason in words, in doubt.
    private func draft(keepsTokens: Bool = true) -> SegmentDraft {
        let draft = testDraft(keepsTokens: keepsTokens)
        draft.writer.reserve(testChunk(0, 5), nowMilliseconds: testTime)
        for (row, arm) in [(0, 0), (2, 2)] as [(Int, UInt8)] {
            let id = Array(Self.ids[row].utf8)
            draft.writer.accepted(
                row: UInt64(row), fingerprint: 5, attempts: 1, arm: arm, uniqueID: id.span.bytes,
                nowMilliseconds: testTime)
        }
        accept(draft, 1)
        draft.rejectOddly(3, status: 400)
        draft.write()
        return draft
    }

    private func ids(_ draft: SegmentDraft) throws -> [String] {
        var verdicts = ChunkVerdicts(of: try draft.index(rows: 5))
        try verdicts.load(chunk: 0)
        return verdicts.rows.indices.map {
            String(decoding: verdicts.uniqueID(ofRow: $0) ?? [], as: UTF8.self)
        }
    }

    @Test(arguments: [true, false])
    func `An accepted row has the apns-unique-id with which it was recorded, and no reason`(
        keepsTokens: Bool
    ) throws {
        let draft = draft(keepsTokens: keepsTokens)
        #expect(try ids(draft) == Self.ids)
        let index = try draft.index(rows: 5)
        var verdicts = ChunkVerdicts(of: index)
        try verdicts.load(chunk: 0)
        guard case .fingerprint(let fingerprint) = verdicts.rows[0].token else {
            Issue.record("no fingerprint")
            return
        }
        #expect(fingerprint == (keepsTokens ? 5 : 0))
        #expect(verdicts.rows.map(\.arm) == [0, 0, 2, 0, 0])
        #expect(verdicts.reasonText(ofRow: 0) == nil)
        #expect(verdicts.reasonText(ofRow: 3) == Array("Odd".utf8))
        let summary = try LedgerSummary(index)
        #expect(summary.count(.accepted) == 3 && summary.counts.reasons.texts == ["Odd": 1])
    }

    @Test func `An accepted row without an apns-unique-id has the bytes that it always had`() {
        let (plain, other) = (testDraft(), testDraft())
        for draft in [plain, other] {
            draft.writer.reserve(testChunk(0, 1), nowMilliseconds: testTime)
        }
        plain.writer.accepted(
            row: 0, fingerprint: 5, attempts: 1, arm: 2, nowMilliseconds: testTime)
        let none: [UInt8] = []
        other.writer.accepted(
            row: 0, fingerprint: 5, attempts: 1, arm: 2, uniqueID: none.span.bytes,
            nowMilliseconds: testTime)
        plain.write()
        other.write()
        #expect(plain.bytes == other.bytes)
    }

    private func export(
        _ format: ExportFormat, _ columns: Set<ExportColumn>, reasons: Set<String> = []
    ) throws -> [String] {
        try exportedLines(
            LedgerExport(
                of: try draft().index(rows: 5), states: Set(RowState.allCases), reasons: reasons,
                format: format, campaign: nil, columns: columns, reasonText: { "r\($0)" }))
    }

    @Test func `An export has the column unique_id last, and only if it is asked for`() throws {
        let (usual, more) = (try export(.csv, []), try export(.csv, [.uniqueID]))
        #expect(more[0] == usual[0] + ",unique_id" && !usual[0].contains("unique"))
        for (index, id) in Self.ids.enumerated() {
            #expect(more[index + 1] == usual[index + 1] + "," + id)
        }
        #expect(usual.allSatisfy { !$0.contains(Self.ids[0]) && !$0.contains(Self.ids[2]) })
        let objects = try export(.jsonl, [.uniqueID])
        #expect(objects[0].hasSuffix(",\"unique_id\":\"\(Self.ids[0])\"}"))
        #expect(objects[1].hasSuffix(",\"unique_id\":null}"))
        #expect(try export(.csv, [], reasons: ["Odd"]).count == 2)
        #expect(try export(.csv, [], reasons: [Self.ids[0]]).count == 1)
    }

    @Test func `A repair keeps the apns-unique-ids of the verdicts that it rewrites`() throws {
        #expect(try ids(draft().repaired()) == Self.ids)
    }
}
