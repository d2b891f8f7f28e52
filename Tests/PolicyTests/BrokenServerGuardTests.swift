import BroadsidePolicy
import Testing

/// Connections that end by the server's protocol errors end the run before the list is used up.
@Suite struct BrokenServerGuardTests {
    private let second: UInt64 = 1_000_000_000

    /// What each of some connections that broke leads to.
    private func verdicts(
        _ guardian: inout BrokenServerGuard, _ times: [UInt64], accepted: Bool = false
    ) -> [Bool] {
        times.map {
            if accepted { guardian.noteAccepted() }
            return guardian.noteBroken($0)
        }
    }

    @Test func `Three violations in a row stop a run, and an accepted row restarts the count`() {
        var guardian = BrokenServerGuard()
        for start in [0, 1000, 2000] as [UInt64] {
            let both = verdicts(&guardian, [start * second, (start + 100) * second])
            #expect(both == [false, false])
            guardian.noteAccepted()
        }
        let last = verdicts(&guardian, [3000, 3100, 3200].map { $0 * second })
        #expect(last == [false, false, true])
    }

    @Test(arguments: [(60, true), (61, false)] as [(UInt64, Bool)])
    func `Ten violations within a minute stop a run, whatever came between`(
        span: UInt64, isEnough: Bool
    ) {
        var guardian = BrokenServerGuard()
        // Long ago, and not within a minute.
        let early = verdicts(
            &guardian, (0..<5).map { $0 * 100 * second }, accepted: true)
        let start = 1000 * second
        let nine = verdicts(&guardian, (0..<9).map { start + $0 * second }, accepted: true)
        #expect(!early.contains(true) && !nine.contains(true))
        // The oldest is forgotten, not the newest.
        let last = verdicts(
            &guardian, [span, 61, 200].map { start + $0 * second }, accepted: true)
        #expect(last == [isEnough, true, false])
    }

    @Test func `A time slightly before the last one changes nothing`() {
        var guardian = BrokenServerGuard()
        let nine = verdicts(&guardian, (0..<9).map { 100 * second - $0 }, accepted: true)
        let tenth = verdicts(&guardian, [99 * second], accepted: true)
        #expect(!nine.contains(true) && tenth == [true])
    }
}
