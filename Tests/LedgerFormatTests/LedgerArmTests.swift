import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Arms in a ledger: recorded with each verdict, counted, exported, and kept by a repair.
@Suite struct LedgerArmTests {
    private let split: ArmSplit
    private let token = Array(String(repeating: "ab", count: 32).utf8)

    init() throws { split = try ArmSplit("a=40,b=50", salt: "spring") }

    /// Rows 0 to 7: accepted in b at once, in a after 20 attempts, rejected in b with a reason in
    /// words, held out, invalid, accepted without an arm, unknown in a, in doubt.
    private func draft() -> SegmentDraft {
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 8), nowMilliseconds: testTime)
        draft.writer.accepted(
            row: 0, fingerprint: 5, attempts: 1, arm: 2, nowMilliseconds: testTime)
        draft.writer.accepted(
            row: 1, fingerprint: 6, attempts: 20, arm: 1, nowMilliseconds: testTime)
        func settle(
            _ row: UInt64, _ state: RowState, arm: UInt8, token: [UInt8], isText: Bool = false
        ) {
            draft.writer.settled(
                row: row, state: state, status: 0, reason: 7, attempts: 1,
                token: token.span.bytes, tokenIsText: isText, arm: arm, nowMilliseconds: testTime)
        }
        draft.rejectOddly(2, status: 0, arm: 2)
        settle(3, .skipped, arm: 3, token: token)
        settle(4, .invalid, arm: 0, token: Array("?".utf8), isText: true)
        accept(draft, 5)
        settle(6, .unknown, arm: 1, token: token)
        draft.write()
        return draft
    }

    private func arms(_ index: LedgerIndex) throws -> [UInt8] {
        var verdicts = ChunkVerdicts(of: index)
        try verdicts.load(chunk: 0)
        return verdicts.rows.map(\.arm)
    }

    @Test func `Each verdict has the arm with which it was recorded`() throws {
        let index = try draft().index(rows: 8)
        #expect(try arms(index) == [2, 1, 2, 3, 0, 0, 1, 0])
        let summary = try LedgerSummary(index)
        #expect(summary.count(.accepted) == 3 && summary.counts.reasons.texts == ["Odd": 1])
    }

    @Test func `Settled rows are counted by arm and state`() throws {
        let summary = try LedgerSummary(draft().index(rows: 8))
        let counts = summary.counts.arms
        #expect(counts[1, .accepted] == 1 && counts[2, .accepted] == 1 && counts[3, .skipped] == 1)
        #expect(counts[2, .rejected] == 1 && counts[1, .unknown] == 1)
        #expect((1...15).reduce(0) { $0 + counts.settled(UInt8($1)) } == 5)
        let kept = summary.kept(reopening: .unknown).arms
        #expect(kept[1, .unknown] == 0 && kept[1, .accepted] == 1)
        var both = summary
        both.add(summary)
        #expect(both.counts.arms[2, .rejected] == 2)
    }

    @Test func `Counts of the last arm are added, also to none`() {
        var counts = ArmCounts()
        counts.count(UInt8(ArmSplit.armLimit), .accepted, rows: 3)
        counts.count(1, .rejected)
        var sum = ArmCounts()
        sum.add(counts)
        #expect(sum == counts && sum.settled(UInt8(ArmSplit.armLimit)) == 3)
        sum.add(counts)
        #expect(sum[UInt8(ArmSplit.armLimit), .accepted] == 6 && sum[1, .rejected] == 2)
        var accepted = ArmCounts()
        accepted.add(sum, in: .accepted)
        #expect(accepted[UInt8(ArmSplit.armLimit), .accepted] == 6 && accepted.settled(1) == 0)
        accepted.add(ArmCounts())
        #expect(accepted.settled(UInt8(ArmSplit.armLimit)) == 6)
    }

    @Test func `The counts of a campaign without arms are empty`() {
        var counts = ArmCounts()
        counts.count(0, .accepted)
        counts.add(ArmCounts())
        #expect(counts.isEmpty && counts == ArmCounts())
    }

    private func export(_ format: ExportFormat, arm: String? = nil) throws -> [String] {
        try exportedLines(
            LedgerExport(
                of: try draft().index(rows: 8), states: Set(RowState.allCases), format: format,
                campaign: nil, split: split, arm: arm, reasonText: { "r\($0)" }))
    }

    @Test func `An export names the arm of each row in its last column`() throws {
        let lines = try export(.csv)
        #expect(lines[0].hasSuffix(",settled_at_ms,arm"))
        let arms: [String] = lines.dropFirst().map { line in
            String(line.split(separator: ",", omittingEmptySubsequences: false).last ?? "none")
        }
        #expect(arms == ["b", "a", "b", "holdout", "", "", "a", ""])
        let objects = try export(.jsonl)
        #expect(objects[0].hasSuffix(",\"arm\":\"b\"}") && objects[4].hasSuffix(",\"arm\":null}"))
    }

    @Test func `An export of one arm has its rows alone`() throws {
        #expect(try export(.csv, arm: "b").count == 3)
        #expect(try export(.csv, arm: "holdout").count == 2)
        #expect(try export(.jsonl, arm: "a").count == 2)
    }

    @Test func `A repair keeps the arms of the verdicts that it rewrites`() throws {
        let index = try draft().repaired().index(rows: 8)
        #expect(try arms(index) == [2, 1, 2, 3, 0, 0, 1, 0])
    }

    @Test func `A resume with another split or salt is another campaign`() throws {
        var (own, other) = (testIdentity, testIdentity)
        own.split = split
        other.split = try ArmSplit("a=40,b=50,holdout=10", salt: "spring")
        #expect(own.firstDifference(from: other) == nil)
        other.split = try ArmSplit("b=50,a=40", salt: "spring")
        #expect(
            own.firstDifference(from: other)?.contains("--split was a=40,b=50,holdout=10") == true)
        other.split = try ArmSplit("a=40,b=50", salt: "autumn")
        #expect(own.firstDifference(from: other)?.contains("--split-salt was 'spring'") == true)
        other.split = nil
        #expect(own.firstDifference(from: other)?.contains("now it is not set") == true)
    }
}
