import BroadsideTestSupport
import Foundation
import Testing

/// Twenty nights on a clock of their own: killed, stopped, refused, lost, started twice, across changes of the
/// clock. Two scripts start each, and judge it by their own readings of the rules: `Tests/Judge/nights.py` which night is
/// sent and when, `Tests/Judge/filtered_nights.py` what becomes of each row.
@Suite(.timeLimit(.minutes(60)))
struct NightMonthTests {
    private static let seeds = TestSize.isLong ? 20 : 1

    @Test(arguments: 1...seeds)
    func `Each night of a month sends its own list once, whatever happened in the others`(seed: Int)
        throws
    {
        try judge("nights.py", seed: seed, rows: 150, by: RecordingServer())
    }

    @Test(arguments: 1...seeds)
    func `Rows of twenty nights end as filter, dead tokens, cap, opt-outs and duplicates say`(
        seed: Int
    ) throws {
        let directory = try TemporaryDirectory()
        let fates = try directory.write("{}", to: "fates.json")
        let server = try RecordingServer("mortal", ["--fates", fates], script: "mortal.py")
        try judge("filtered_nights.py", seed: seed, rows: 70, by: server, [fates])
    }

    /// Runs a script that starts the nights, with a campaign's credentials.
    private func judge(
        _ script: String, seed: Int, rows: Int, by server: RecordingServer, _ more: [String] = []
    ) throws {
        let refusing = try RecordingServer("forbidden")
        let campaign = try Campaign(rows: rows)
        let path = campaign.directory.path
        let settings: [String: String] = [
            "payload": campaign.payloadFile, "topic": Campaign.topic,
            "auth-key": campaign.authority.authKey, "key-id": Campaign.keyID,
            "team-id": Campaign.teamID, "endpoint": server.endpoint,
            "ca-file": campaign.authority.caFile, "connections": "1", "progress": "none",
        ]
        let killer = try Shim.compile("kill-at-call", in: campaign.directory)
        let preload = try #require(FakeTime.fixed("+0")["LD_PRELOAD"])
        let tomorrow = (Int(Date().timeIntervalSince1970) / 86_400 + 1) * 86_400
        let judged = try Subprocess(
            "python3",
            [
                "-B", "\(Tool.packageRoot)/Tests/Judge/\(script)", Broadside.path(), path,
                String(decoding: JSONEncoder().encode(settings), as: UTF8.self), server.recordPath,
            ] + more + [
                refusing.endpoint, campaign.list, "\(seed)", "\(tomorrow)", preload, killer,
            ], in: campaign.directory
        ).wait(limit: 900)
        #expect(judged.exitCode == 0, "\(judged.output)\(judged.errors)")
        #expect(judged.output.hasPrefix("nights "), "\(judged.output)")
    }
}
