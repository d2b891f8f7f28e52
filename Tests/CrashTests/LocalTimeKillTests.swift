import BroadsideTestSupport
import Foundation
import Testing

/// Campaigns at local times, stopped and killed between and inside of waves: each row has the outcome that Python's
/// `zoneinfo` says, once, and not before its time.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LocalTimeKillTests {
    private static let seeds = TestSize.isLong ? Array(1...40) : [1, 2]
    /// In odd seeds devices are erased, in even ones the ledger keeps no tokens.
    private static let daySeeds = 1...(TestSize.isLong ? 20 : TestSize.isFull ? 3 : 2)

    @Test(arguments: seeds)
    func `Rows are sent once and at their time, however often a run is stopped`(seed: Int) throws {
        let directory = try TemporaryDirectory()
        let finished = try Subprocess(
            "timeout",
            [
                "500", Tool.path(of: "python3"), "-B",
                "\(Tool.packageRoot)/Tests/Judge/local_times.py", Broadside.path(), directory.path,
                "\(seed)", "2000", "5",
            ], in: directory
        ).wait(limit: 520)
        #expect(
            finished.exitCode == 0 && finished.output.contains("sound:"),
            "\(finished.output.suffix(2_000))\(finished.errors.suffix(2_000))")
    }

    @Test(arguments: daySeeds)
    func `Rows of a day with arms, cap and filter end as Python says, however often it is stopped`(
        seed: Int
    ) throws {
        let directory = try TemporaryDirectory()
        let finished = try Subprocess(
            "timeout",
            [
                "1500", Tool.path(of: "python3"), "-B",
                "\(Tool.packageRoot)/Tests/Judge/campaign_day.py", Broadside.path(), directory.path,
                "\(seed)", "4000", TestSize.cases("30", otherwise: "15"), "5",
            ], in: directory
        ).wait(limit: 1_520)
        #expect(
            finished.exitCode == 0 && finished.output.contains("sound:"),
            "\(finished.output.suffix(3_000))\(finished.errors.suffix(2_000))")
    }
}
