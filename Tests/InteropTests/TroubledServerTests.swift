import TestSupport
import Testing

/// Whole campaigns to sound servers in trouble (`Tests/Servers/trouble.py`): every row arrives.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct TroubledServerTests {
    @Test(
        "Every row is accepted in the end",
        arguments: [
            "reset-each-thousand", "stall-for-good", "unavailable", "refuse-each-seventh",
            "changing-limit",
        ])
    func everyRowArrives(behaviour: String) throws {
        let server = try RecordingServer(behaviour, script: "trouble.py")
        // Only a lost answer makes a row go out twice.
        let losesAnswers = ["reset-each-thousand", "stall-for-good"].contains(behaviour)
        // Each reset has its address left alone for a while, longer each time: fewer of them here.
        let rows = behaviour == "reset-each-thousand" ? interopRows / 4 : interopRows
        let campaign = try Campaign(rows: rows)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "4", "--on-lost", "resend", "--request-timeout",
                // A slow machine is no lost answer.
                losesAnswers ? "5s" : "60s",
                "--summary", "-",
            ], limit: 120)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == rows && summary.unknown == 0 && summary.failed == 0)
        let taken = try server.tally(campaign.tokens)
        #expect(taken.missing == 0 && taken.strangers == 0, "\(taken)")
        #expect(losesAnswers || taken.repeated == 0, "\(taken)")
    }
}
