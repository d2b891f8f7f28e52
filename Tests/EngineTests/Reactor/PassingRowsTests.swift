import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Rows that need no request go by at the speed of the list: for them nobody waits for a sync.
@Suite struct PassingRowsTests {
    /// Bytes that the list's source hands out at once, at most.
    private static let chunkBytes = RowChunk.capacity

    private func run(_ text: String, selection: RowSelection = .all) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 0, text: text, selection: selection)
        run.run()
        #expect(run.isFinished && run.coordinator.stopCause == nil)
        return run
    }

    private func chunks(_ text: String) -> Int { text.utf8.count / Self.chunkBytes + 1 }

    @Test func `A chunk of invalid rows only is full and needs no sync but the last`() throws {
        let line = String(repeating: "x", count: 64) + "\n"
        let text = String(repeating: line, count: 100_000)
        let run = try run(text)
        let rows = try run.rows()
        #expect(rows.count == 100_000 && rows.allSatisfy { $0.state == .invalid })
        #expect(run.requests.isEmpty)
        #expect(run.syncs <= 2, "\(run.syncs)")
        // Chunks grow to their full size within few.
        #expect(run.chunkRequests < 2 * chunks(text), "\(run.chunkRequests)")
        // Several go by in a turn.
        #expect(run.turns < chunks(text) / 2, "\(run.turns)")
    }

    @Test func `A kill in the middle leaves no chunk in doubt behind the one in use`() throws {
        let line = String(repeating: "x", count: 64) + "\n"
        let run = try ScriptedRun(
            rows: 0, text: String(repeating: line, count: 100_000))
        for part in 1...9 as ClosedRange<UInt64> {
            run.run { run.settled >= part * 10_000 }
            let states = try run.rows().map(\.state)
            #expect(states.count > 0 && states.allSatisfy { $0 == .invalid || $0 == .inDoubt })
            // One that is passed is not recorded to its end.
            let inDoubt = states.count { $0 == .inDoubt }
            #expect(inDoubt <= RowChunk.capacity / line.utf8.count, "\(inDoubt)")
        }
    }

    @Test func `Chunks behind rows without requests are not reserved yet`() throws {
        // More rows in a chunk than go by in a turn, so that chunks wait.
        let text = String(repeating: "x\n", count: 400_000)
        let run = try ScriptedRun(rows: 0, text: text)
        for part in 2...9 as ClosedRange<UInt64> {
            run.run { run.settled >= part * 40_000 }
            let inDoubt = try run.rows().count { $0.state == .inDoubt }
            #expect(inDoubt <= Self.chunkBytes / 2, "\(inDoubt)")
        }
        // The list is read while chunks wait.
        #expect(run.asksWhileChunksWait > 10, "\(run.asksWhileChunksWait)")
    }

    @Test func `From the first sent row on as many chunks are reserved as share a sync`()
        throws
    {
        let text =
            String(repeating: "x\n", count: 200_000)
            + (0..<200_000).map { ScriptedRun.token($0) + "\n" }.joined()
        let run = try ScriptedRun(rows: 0, text: text)
        run.reply = { _ in .silence }
        run.run(for: second) { run.requests.count > 0 }
        let inDoubt = try run.rows().count { $0.state == .inDoubt }
        // The chunk in use and those that share a sync; invalid rows are settled.
        let rows = (1 + ChunkQueue.aheadMin) * (Self.chunkBytes / 65 + 1)
        #expect(inDoubt > 0 && inDoubt <= rows, "\(inDoubt)")
        #expect(run.asksWhileChunksWait > 0)
    }

    @Test func `Rows of other parts count among those that a turn settles`() throws {
        let text = String(repeating: "x\n", count: 400_000)
        let run = try run(text, selection: RowSelection(divisor: 2, remainder: 1))
        #expect(run.settled == 200_000)
        #expect(run.turns >= 400_000 / RowSupply.unsentLimit, "\(run.turns)")
    }

    @Test func `A row in a hundred of another part costs the others nothing`() throws {
        let text = (0..<100_000).map { ScriptedRun.token($0) + "\n" }.joined()
        let run = try run(text, selection: RowSelection(divisor: 100, remainder: 7))
        #expect(run.requests.count == 1_000)
        #expect(run.requests.allSatisfy { ScriptedRun.row($0) % 100 == 7 })
        #expect(run.chunkRequests < 2 * chunks(text), "\(run.chunkRequests)")
        #expect(run.syncs < chunks(text), "\(run.syncs)")
    }

    @Test func `A few sendable rows among many others are each sent once`() throws {
        let bad = String(repeating: "x\n", count: 500)
        let text = (0..<200).map { bad + ScriptedRun.token($0) + "\n" }.joined()
        let run = try run(text)
        #expect(run.requests.map(ScriptedRun.row).sorted() == Array(0..<200))
        let rows = try run.rows()
        #expect(rows.count == 100_200)
        #expect(rows.count { $0.state == .accepted } == 200)
        #expect(rows.count { $0.state == .invalid } == 100_000)
    }

    @Test func `Rows without requests wait for no connection`() throws {
        let text = String(repeating: "x\n", count: 50_000) + ScriptedRun.token(1) + "\n"
        let run = try ScriptedRun(rows: 0, text: text)
        run.opening = { _ in .silent }
        run.run(for: 5 * second)
        #expect(run.settled == 50_000 && run.requests.isEmpty)
    }

    @Test(arguments: [1, 2, 3])
    func `--max-invalid stops a run at the row where it is judged`(reactors: Int) throws {
        // Every seventh row is invalid, and from row 15,000 on all are.
        let text = (0..<40_000).map {
            ($0 % 7 == 0 || $0 >= 15_000 ? "x" : ScriptedRun.token($0)) + "\n"
        }.joined()
        let run = try ScriptedRun(rows: 0, reactors: reactors, text: text, maxInvalid: 20)
        run.run()
        guard case .tooManyInvalid(let count, let rows)? = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(rows >= 21_000 && rows <= 21_000 + (reactors == 1 ? 0 : UInt64(reactors)))
        #expect(Double(count) > 0.2 * Double(rows))
        // What was read before is settled, and nothing behind it is.
        let states = try run.rows().map(\.state)
        #expect(states.count { $0 == .invalid } == Int(count))
        #expect(states.count { $0.isSettled } <= Int(rows))
        #expect(run.requests.count <= Int(rows - count))
        #expect(!states.contains(.inDoubt))
    }
}
