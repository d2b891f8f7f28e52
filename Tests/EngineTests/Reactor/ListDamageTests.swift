import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Rows that are overwritten with zero bytes, in a list that nothing has read to its end before.
@Suite struct ListDamageTests {
    /// A list of 3,000 rows with zero bytes in place of some rows. The zero bytes begin in one row and
    /// end in another.
    private func list(_ damaged: [Range<Int>]) -> String {
        (0..<3_000).map { row in
            guard let hole = damaged.first(where: { $0.contains(row) }) else {
                return ScriptedRun.token(row) + "\n"
            }
            let token = ScriptedRun.token(row)
            let zeros = String(repeating: "\0", count: 65)
            if row == hole.lowerBound { return "\(token.prefix(30))\(zeros)" }
            return row == hole.upperBound - 1 ? "\(token.suffix(4))\n" : zeros
        }.joined()
    }

    private func run(_ text: String, reactors: Int = 1) throws -> (ScriptedRun, RunStatistics) {
        let run = try ScriptedRun(rows: 0, reactors: reactors, text: text)
        run.run()
        #expect(run.isFinished && run.coordinator.stopCause == nil)
        var statistics = RunStatistics()
        for reactor in run.reactors { statistics.add(reactor.machine.snapshot()) }
        return (run, statistics)
    }

    @Test(arguments: [1, 3])
    func `Overwritten rows are counted, and the first that is read is an event`(
        reactors: Int
    ) throws {
        let (run, statistics) = try run(list([1_500..<1_550, 2_000..<2_002]), reactors: reactors)
        #expect(statistics.overwritten.count == 2)
        #expect(statistics.overwritten.firstLine == 1_501)
        let events = run.events.filter { $0.kind == .listDamage }
        #expect(events.count == 1 && events.allSatisfy { $0.level == .warning })
        let message = try #require(events.first).message
        // With several reactors, the other row may be read first.
        let isOfRow = [1_501, 1_952].contains {
            message.hasPrefix("line \($0) of the list contains zero bytes")
        }
        #expect(isOfRow, "\(message)")
        #expect(try run.rows().count { $0.state == .invalid } == 2)
        #expect(run.requests.count == 2_948)
    }

    @Test func `The check before the run names rows among the first ones, so the run does not`()
        throws
    {
        let (run, statistics) = try run(list([500..<510]))
        #expect(try run.rows().count { $0.state == .invalid } == 1)
        #expect(statistics.overwritten == OverwrittenRows())
        #expect(!run.events.contains { $0.kind == .listDamage })
    }
}
