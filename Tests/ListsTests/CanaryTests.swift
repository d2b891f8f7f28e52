import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideLists

/// Which rows a canary takes, what is left, and how it is judged.
@Suite struct CanaryTests {
    private let pool = ChunkPool(limit: 8)

    private func source(rows: Int, gate: CanaryGate, limit: UInt64? = nil) throws -> ListSource {
        let text = (0..<rows).map { _ in String(repeating: "ab", count: 32) + "\n" }.joined()
        return try ListSource(
            list: TokenList(lines: Array(text.utf8)), pool: pool, plan: nil,
            selection: ListSelection(rows: CampaignRows(limit: limit)),
            canary: gate)
    }

    private func rows(_ source: ListSource, atMost: Int = .max) throws -> [Range<UInt64>] {
        var found: [Range<UInt64>] = []
        while let chunk = try source.next(rowLimit: atMost) {
            found.append(chunk.start.row..<chunk.end.row)
            #expect(chunk.start.line == chunk.start.row + 1)
            pool.giveBack(chunk)
        }
        return found
    }

    private func count(_ ranges: [Range<UInt64>]) -> Int { ranges.reduce(0) { $0 + $1.count } }

    @Test(arguments: [(10_000, 250), (10_000, 7), (300, 100), (50, 50), (20, 60), (5000, 1)])
    func `Canary rows come from all over the list, each once`(size: Int, canary: Int) throws {
        let gate = CanaryGate(rows: UInt64(canary), maximumRefusedPercent: 20)
        let source = try source(rows: size, gate: gate)
        let first = try rows(source)
        #expect(count(first) == min(size, canary))
        #expect(source.isHeld)
        if canary > 5, canary < size {
            let widest = zip(first, first.dropFirst()).map { $1.lowerBound - $0.upperBound }.max()!
            #expect(Int(widest) < 4 * size / min(canary, 100))
        }
        let done = UInt64(min(size, canary))
        #expect(gate.note(done: done, answered: done, refused: 0, lost: 0) == .passed)
        // What was said of the call before stays true: nobody takes a list that was held for one that
        // is over.
        #expect(source.isHeld)
        let rest = try rows(source)
        #expect(!source.isHeld)
        let all = (first + rest).sorted { $0.lowerBound < $1.lowerBound }
        #expect(count(all) == size)
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
        #expect(try source.countRows { false } == UInt64(size))
    }

    @Test func `A canary whose rows are handed out asks for no more until it is decided`() throws {
        let gate = CanaryGate(rows: 10, maximumRefusedPercent: 20)
        let source = try source(rows: 1000, gate: gate)
        #expect(!gate.isHolding)
        #expect(try count(rows(source)) == 10 && gate.isHolding)
        #expect(gate.note(done: 9, answered: 9, refused: 0, lost: 0) == .pending && gate.isHolding)
        #expect(gate.note(done: 1, answered: 1, refused: 0, lost: 0) == .passed)
        #expect(!gate.isHolding)
    }

    @Test func `With a limit the canary takes the first rows`() throws {
        let gate = CanaryGate(rows: 10, maximumRefusedPercent: 20)
        let source = try source(rows: 1000, gate: gate, limit: 100)
        #expect(try rows(source) == [0..<10])
    }

    @Test func `A list that is given up half way is counted whole`() throws {
        let gate = CanaryGate(rows: 10, maximumRefusedPercent: 20)
        let source = try source(rows: 1000, gate: gate)
        if let chunk = try source.next(rowLimit: .max) { pool.giveBack(chunk) }
        #expect(try source.countRows { false } == 1000)
    }

    @Test func `More than P percent refused stop the canary, and P percent do not`() {
        for (refused, verdict) in [
            (20, CanaryGate.Verdict.passed), (21, .refused(count: 21, answered: 100)),
        ] {
            let gate = CanaryGate(rows: 100, maximumRefusedPercent: 20)
            gate.handedOut(100)
            #expect(gate.note(done: 60, answered: 60, refused: 0, lost: 0) == .pending)
            gate.exhausted(isListOver: false)
            #expect(gate.note(done: 39, answered: 39, refused: 10, lost: 0) == .pending)
            #expect(
                gate.note(done: 1, answered: 1, refused: UInt64(refused - 10), lost: 0) == verdict)
            #expect(!gate.isPending)
        }
    }

    @Test func `Rows that are sent again are not awaited if they can't change the decision`() {
        func gate(refused: UInt64, open: UInt64, postponed: UInt64) -> CanaryGate.Verdict {
            let gate = CanaryGate(rows: 100, maximumRefusedPercent: 20)
            gate.handedOut(100)
            gate.exhausted(isListOver: false)
            let done = 100 - open
            return gate.note(
                done: done, answered: done, refused: refused, lost: 0, postponed: postponed)
        }
        #expect(gate(refused: 10, open: 10, postponed: 10) == .passed)
        // If all open rows were refused, they would be too many.
        #expect(gate(refused: 11, open: 10, postponed: 10) == .pending)
        // Rows in flight are awaited.
        #expect(gate(refused: 0, open: 10, postponed: 9) == .pending)
        #expect(gate(refused: 0, open: 1, postponed: 0) == .pending)
    }

    @Test func `Responses of an earlier run count for the canary and are not asked for again`() {
        let gate = CanaryGate(
            rows: 100, maximumRefusedPercent: 20, answered: 100, refused: 30)
        #expect(gate.rowsWanted == 0)
        gate.exhausted(isListOver: false)
        #expect(
            gate.note(done: 0, answered: 0, refused: 0, lost: 0)
                == .refused(count: 30, answered: 100))
    }

    @Test func `Canary rows that could not be sent are replaced`() throws {
        let gate = CanaryGate(rows: 10, maximumRefusedPercent: 20)
        let source = try source(rows: 1000, gate: gate)
        let first = try rows(source)
        #expect(gate.note(done: 10, answered: 6, refused: 0, lost: 1) == .pending)
        #expect(!gate.isHolding)
        let second = try rows(source)
        #expect(count(second) == 3 && Set(first).isDisjoint(with: Set(second)))
        #expect(gate.note(done: 3, answered: 3, refused: 0, lost: 0) == .passed)
        #expect(count(first + second + (try rows(source))) == 1000)
    }

    @Test(arguments: [
        // What was lost counts against it; what is refused comes first.
        (0, 20, CanaryGate.Verdict.passed), (0, 21, .unanswered), (0, 50, .unanswered),
        (10, 10, .passed), (10, 11, .unanswered), (19, 5, .refused(count: 19, answered: 90)),
    ])
    func `Canary rows without response are not a success`(
        refused: Int, lost: Int, verdict: CanaryGate.Verdict
    ) {
        let rows: UInt64 = refused == 19 ? 95 : 100
        let gate = CanaryGate(rows: rows, maximumRefusedPercent: 20)
        gate.handedOut(Int(rows))
        gate.exhausted(isListOver: false)
        #expect(
            gate.note(
                done: rows, answered: rows - UInt64(lost), refused: UInt64(refused),
                lost: UInt64(lost)) == verdict)
    }

    @Test func `A canary without any response does not pass`() {
        let gate = CanaryGate(rows: 2, maximumRefusedPercent: 100)
        gate.handedOut(2)
        gate.exhausted(isListOver: false)
        #expect(gate.note(done: 2, answered: 0, refused: 0, lost: 2) == .unanswered)
    }
}
