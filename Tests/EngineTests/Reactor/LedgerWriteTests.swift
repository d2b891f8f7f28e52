import BroadsideHygiene
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// When the ledger is written, and what of that is worth a turn.
@Suite(.timeLimit(.minutes(60)))
struct LedgerWriteTests {
    /// A run that answers its first row at once and sends its other ones at the given rate.
    private func run(requestsPerSecond rate: UInt64, for time: UInt64) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 50) { $0.milliRatePerConnection = rate * 1000 }
        run.run { run.requests.count == 1 }
        run.run(for: time)
        return run
    }

    @Test func `Verdicts are written with a turn that comes anyway after 5 ms`() throws {
        let run = try ScriptedRun(rows: 5000) { $0.milliRatePerConnection = 1_000_000 }
        run.run(for: 4 * second)
        // By then a reservation covers so many rows that most writes are of verdicts alone.
        let late = run.writes.map(\.time).filter { $0 > 3 * second }
        let gaps = zip(late.dropFirst(), late).map { $0 - $1 }
        #expect(gaps.count { $0 == 5 * millisecond } > gaps.count * 3 / 4)
    }

    @Test func `Without another turn verdicts are written after 6 ms`() throws {
        let run = try run(requestsPerSecond: 10, for: 50 * millisecond)
        try #require(run.writes.count == 2)
        #expect(run.writes[1].time - run.writes[0].time == 6 * millisecond)
    }

    @Test func `Rows wait for the write of their reservation, and nothing waits for verdicts`()
        throws
    {
        let run = try run(requestsPerSecond: 10, for: 50 * millisecond)
        try #require(run.writes.count == 2)
        #expect(!run.writes[0].isQuiet)
        #expect(run.writes[1].isQuiet)
    }

    @Test func `After the disk failed verdicts cause no turns`() throws {
        let run = try ScriptedRun(rows: 5000) { $0.milliRatePerConnection = 1_000_000 }
        run.reply = { ScriptedRun.row($0) % 2 == 0 ? .status(200) : .silence }
        run.run(for: second)
        run.holdsSyncs = true
        run.run { !run.heldSyncs.isEmpty }
        // Verdicts come meanwhile, and wait for others to share a write with.
        let settled = run.settled
        run.run { run.settled > settled + 1 }
        run.failSyncs(errno: 5)
        run.run { run.coordinator.isStopping }
        try #require(run.requests.count > run.settled)
        let before = run.turns
        run.run(for: 10 * second) { run.turns - before >= 300 }
        // Timers that need no precision are looked at 20 times a second.
        #expect(run.turns - before < 300)
    }

    @Test func `Rows whose reservation may be unknown to a newer attempt are not sent`() throws {
        let run = try ScriptedRun(rows: 5000) { $0.milliRatePerConnection = 1_000_000 }
        run.run(for: second)
        run.holdsSyncs = true
        run.run { !run.heldSyncs.isEmpty }
        // Rows of earlier reservations are sent until none is left.
        run.run(for: second)
        let (requests, writes) = (run.requests.count, run.writes.count)
        #expect(requests < 5000)
        run.supersede()
        run.run { run.coordinator.isStopping }
        #expect(run.coordinator.stopCause == .superseded)
        run.run(for: 10 * second)
        #expect(run.requests.count == requests && run.writes.count == writes)
    }

    @Test func `Connections wait for a slow disk, and that is reported`() throws {
        let run = try ScriptedRun(rows: 3000) { $0.limits.ledgerBacklog = 1000 }
        run.run { run.requests.count >= 100 }
        run.holdsWrites = true
        run.run(for: second)
        let (count, before) = (run.requests.count, run.time(limitedBy: .socket))
        #expect(count < 3000)
        run.run(for: 10 * second)
        #expect(run.requests.count == count)
        #expect(run.time(limitedBy: .socket) - before > 9 * second)
    }
}
