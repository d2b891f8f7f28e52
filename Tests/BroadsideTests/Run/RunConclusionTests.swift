import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideObservability
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// How a run ends, by what all passes of its process and earlier runs of its campaign have sent.
@Suite struct RunConclusionTests {
    private static let invalid = StopCause.tooManyInvalid(count: 5, rows: 9)

    /// A pass whose requests all have responses, and are accepted if `accepts` says so.
    private static func pass(_ requests: UInt64, accepts: Bool = true) -> RunStatistics {
        var statistics = RunStatistics()
        statistics.requests = requests
        statistics.untimedResponses = requests
        if accepts { statistics.counts[.accepted] = requests }
        return statistics
    }

    private static func conclusion(
        _ stop: StopCause, _ passes: [RunStatistics], earlier: RowCounts = RowCounts()
    ) -> RunConclusion {
        let all = RunPasses(nil, isDueLeft: true, now: 0)
        for pass in passes { all.add(pass, LatencyCounts(), seconds: 1) }
        return RunConclusion(
            stop: stop, passes.last ?? RunStatistics(), of: all, earlier: earlier, isWhole: false,
            RunCoordinator(
                authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: 50,
                maxBadTokensPercent: 50, sign: nil))
    }

    private static func code(_ conclusion: RunConclusion) -> Int32 {
        conclusion.exitCode(Summary(campaign: 1, outcome: .complete))
    }

    @Test(arguments: [invalid, .listFaulty(detail: "line 9")])
    func `A list that is wrong from its second wave on is exit 4, because the first wave was sent`(
        cause: StopCause
    ) {
        let sent = Self.conclusion(cause, [Self.pass(10), Self.pass(0)])
        #expect(!sent.isWrongList && Self.code(sent) == ExitCode.refused)
        #expect(sent.outcome(Summary(campaign: 1, outcome: .complete)) == .aborted)
        #expect(!sent.discardsLedger(isExpected: false))
        let unsent = Self.conclusion(cause, [Self.pass(0), Self.pass(0)])
        #expect(unsent.isWrongList && Self.code(unsent) == ExitCode.badRequest)
        #expect(unsent.discardsLedger(isExpected: false))
    }

    @Test(arguments: RowState.allCases)
    func `A resume of a wrong list is exit 4 if earlier runs may have sent rows`(state: RowState) {
        var earlier = RowCounts()
        earlier[state] = 1
        let conclusion = Self.conclusion(Self.invalid, [Self.pass(0)], earlier: earlier)
        let isUnsent = [.invalid, .skipped, .remaining].contains(state)
        #expect(conclusion.isWrongList == isUnsent)
        #expect(Self.code(conclusion) == (isUnsent ? ExitCode.badRequest : ExitCode.refused))
    }

    @Test(
        arguments: [
            .gaveUp(.init(.connect, "refused")), .noResponse(seconds: 60, last: nil),
        ] as [StopCause])
    func `A network that fails after a wave had responses is exit 3, and without any exit 1`(
        cause: StopCause
    ) {
        let reached = Self.conclusion(cause, [Self.pass(10, accepts: false), Self.pass(0)])
        #expect(reached.wasAnswered && Self.code(reached) == ExitCode.rowsRemain)
        #expect(reached.outcome(Summary(campaign: 1, outcome: .complete)) == .stopped)
        let silent = Self.conclusion(cause, [Self.pass(0), Self.pass(0)])
        #expect(!silent.wasAnswered && Self.code(silent) == ExitCode.failure)
        // The exit code is about this process. The rows of earlier runs stay settled.
        var earlier = RowCounts()
        earlier[.accepted] = 10
        let resumed = Self.conclusion(cause, [Self.pass(0)], earlier: earlier)
        #expect(Self.code(resumed) == ExitCode.failure)
        #expect(!resumed.discardsLedger(isExpected: false))
    }

    @Test(arguments: [false, true])
    func `A server that breaks after a wave is exit 3 if rows of the wave were accepted`(
        accepts: Bool
    ) {
        let conclusion = Self.conclusion(
            .brokenServer(.init(.protocol, "x")), [Self.pass(10, accepts: accepts), Self.pass(0)])
        #expect(Self.code(conclusion) == (accepts ? ExitCode.rowsRemain : ExitCode.failure))
    }
}
