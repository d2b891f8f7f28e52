import BroadsideTestSupport
import Foundation
import Testing

/// Nothing that is told delays what decides: a run whose output nobody takes is stopped as if nobody
/// were in the way.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct StalledOutputTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var place: String
        var event: String
        var options: [String] = []
        var testDescription: String { "\(place), \(event)\(options.isEmpty ? "" : ", more")" }
    }

    static let talk = ["--progress", "json", "--log", "json"]
    /// Each place, event and output.
    static let fewCases: [Case] = [
        Case(place: "pipe", event: "int"),
        Case(place: "pipe", event: "int-twice", options: talk),
        Case(place: "pipe", event: "term", options: talk + ["--summary", "-"]),
        Case(place: "pty", event: "deadline"),
        Case(place: "pty", event: "control"),
        Case(place: "fifo", event: "term", options: talk),
    ]
    static let otherCases: [Case] = [
        Case(place: "pipe", event: "deadline", options: talk),
        Case(place: "pipe", event: "control", options: talk),
        Case(place: "pty", event: "int"),
        Case(place: "pty", event: "int-twice"),
        Case(place: "fifo", event: "deadline"),
    ]

    @Test(arguments: TestSize.cases(fewCases + otherCases, otherwise: fewCases))
    func `Signals, deadline and control work while output is blocked`(_ stalled: Case) throws {
        // Responses take so long that the second signal comes before the last one.
        let isTwice = stalled.event == "int-twice"
        let server = try Simulation(["--latency", isTwice ? "2s" : "1ms"])
        let campaign = try Campaign(rows: 20_000)
        let summary = "\(campaign.directory.path)/summary.json"
        var options =
            try server.credentials() + stalled.options + [
                "--rate", "800", "--connections", "1", "--control",
                "\(campaign.directory.path)/control",
            ]
        if !options.contains("--summary") { options += ["--summary", summary] }
        if stalled.event == "deadline" { options += ["--deadline", "8s"] }
        let arguments = campaign.arguments(to: server.endpoint, options).filter {
            stalled.options.isEmpty ? $0 != "none" && $0 != "--progress" : true
        }
        let script = "\(Tool.packageRoot)/Tests/Reference/stalled_output.py"
        let judged = try Subprocess(
            "python3",
            [script, stalled.place, stalled.event, try Broadside.path()] + arguments,
            in: campaign.directory
        ).wait(limit: 240)
        #expect(judged.output == "3\n", "\(judged.output)\(judged.errors)")

        let statistics = try campaign.statistics()
        #expect(statistics.outcome == "stopped" && statistics.accepted >= 300)
        if !stalled.options.contains("--summary") {
            let written = try SendSummary(
                json: String(contentsOfFile: summary, encoding: .utf8))
            #expect(written.accepted == statistics.accepted)
            // A second signal cuts counting short.
            #expect(
                isTwice || written.accepted + written.unknown + (written.remaining ?? 0) == 20_000)
            #expect(isTwice || written.unknown == 0)
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
    }
}
