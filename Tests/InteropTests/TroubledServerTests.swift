import BroadsideTestSupport
import Testing

/// Whole campaigns to sound servers in trouble (`Tests/Servers/trouble.py`): every row arrives.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct TroubledServerTests {
    @Test(arguments: [
        "reset-each-thousand", "stall-for-good", "unavailable", "refuse-each-seventh",
        "changing-limit",
    ])
    func `A server in each kind of trouble accepts every row in the end`(behaviour: String) throws {
        let server = try RecordingServer(behaviour, script: "trouble.py")
        // Each behaviour begins within the first 1,000 requests, of a connection or of all.
        let rows = 2_400
        let campaign = try Campaign(rows: rows)
        // Where nothing is lost a short wait for answers would only tell how busy this machine is.
        let timeout = behaviour == "stall-for-good" ? "5s" : "60s"
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "2", "--on-lost", "resend", "--request-timeout", timeout,
                "--summary", "-",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == rows && summary.unknown == 0 && summary.failed == 0)
        let taken = try server.tally(campaign.tokens)
        #expect(taken.missing == 0 && taken.strangers == 0, "\(taken)")
        // Only a lost answer makes a row go out twice.
        let losesAnswers = ["reset-each-thousand", "stall-for-good"].contains(behaviour)
        #expect(losesAnswers || taken.repeated == 0, "\(taken)")
        // The server knows it: a run that lost a connection may end before it opens another.
        let events = try server.events()
        #expect(events.contains { $0.event == "trouble" }, "no connection was in trouble")
    }
}
