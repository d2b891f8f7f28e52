import BroadsideTestSupport
import Foundation
import Testing

/// Four weeks of nights on a clock of their own: killed, stopped, refused, lost, started twice, across changes of the
/// clock. `Tests/Judge/nights.py` starts each, and judges it by its own reading of the rules.
@Suite(.timeLimit(.minutes(60)))
struct NightMonthTests {
    private static let seeds =
        ProcessInfo.processInfo.environment["BROADSIDE_LONG_TESTS"] == nil ? 1 : 20

    @Test(arguments: 1...seeds)
    func `Each night of a month sends its own list once, whatever happened in the others`(seed: Int)
        throws
    {
        let server = try RecordingServer()
        let refusing = try RecordingServer("forbidden")
        let campaign = try Campaign(rows: 150)
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
                "-B", "\(Tool.packageRoot)/Tests/Judge/nights.py", Broadside.path(), path,
                String(decoding: JSONEncoder().encode(settings), as: UTF8.self), server.recordPath,
                refusing.endpoint, campaign.list, "\(seed)", "\(tomorrow)", preload, killer,
            ], in: campaign.directory
        ).wait(limit: 900)
        #expect(judged.exitCode == 0, "\(judged.output)\(judged.errors)")
        #expect(judged.output.hasPrefix("nights "), "\(judged.output)")
    }
}
