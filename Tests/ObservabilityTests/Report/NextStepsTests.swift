import BroadsideLedgerFormat
import BroadsideSupport
import Testing

@testable import BroadsideObservability

/// The next steps of a report.
@Suite struct NextStepsTests {
    /// Next steps as text.
    private static func steps(_ data: ReportData) -> String {
        ReportPage(data: data).nextSteps.replacing(/<[^>]*>/, with: "")
    }

    @Test func `A complete campaign that reached no device warns in its first step and its card`() {
        var data = ReportPageTests.data(skipped: 5)
        data.summary.counts.reasons.add(text: "Suppressed", count: 5)
        let steps = Self.steps(data)
        let words = "No row was left to send: 5 of the 5 rows are skipped (5 Suppressed)"
        #expect(steps.hasPrefix("What to do next\n\(words)"), "\(steps)")
        #expect(steps.contains("check --suppress.\n"), "\(steps)")
        #expect(ReportPage(data: data).refusals.contains("on the suppression list, or erased by"))
        data.summary.hasSuppressionList = false
        let forgotten = Self.steps(data)
        #expect(
            forgotten.contains("campaign: ledger forget erased the devices of these rows."),
            "\(forgotten)")
        #expect(
            ReportPage(data: data).refusals.contains("the device was erased by ledger forget:"))
        let cards = ReportPage(data: data).cards
        #expect(
            cards.contains("<li class=\"alarm\"><b>0</b><span>rows need a decision"), "\(cards)")
        #expect(cards.contains("see what to do next"), "\(cards)")
        data.isInProgress = true
        #expect(!Self.steps(data).contains("No row was left"))
        let sent = ReportPage(data: ReportPageTests.data(accepted: 5)).cards
        #expect(sent.contains("nothing is left to decide"), "\(sent)")
    }

    /// Next steps of a campaign with a dead token that was sent by a program.
    private static func steps(_ program: String, in directory: String) -> String {
        var telemetry = Telemetry()
        telemetry.command = RunCommand(
            program: program, arguments: ["send"], directory: directory)
        var data = ReportPageTests.data(accepted: 9, rejected: 1, telemetry: telemetry)
        data.summary.counts.reasons.add(text: "Unregistered", count: 1)
        return steps(data)
    }

    @Test(
        arguments: [
            ("broadside", "/run", "broadside"), ("/opt/b/broadside", "/run", "/opt/b/broadside"),
            ("bin/broadside", "/run", "/run/bin/broadside"), ("bin/broadside", "", "bin/broadside"),
        ])
    func `The commands of a page call the program that sent the campaign`(
        program: String, directory: String, expected: String
    ) {
        let steps = Self.steps(program, in: directory)
        for command in ["prune --ledger tonight ", "ledger export --ledger tonight "] {
            #expect(steps.contains(".\(expected) \(command)"), "\(steps)")
        }
        let here = Self.steps("./broadside", in: RunCommand.workingDirectory)
        #expect(here.contains("./broadside prune ") && !here.contains("/./"), "\(here)")
    }

    @Test func `A page without a ledger has no command that reads it`() {
        var data = ReportPageTests.data(.error, remaining: 3)
        #expect(Self.steps(data).contains("broadside ledger export"))
        data.hasLedger = false
        #expect(!Self.steps(data).contains("broadside"))
        let page = String(decoding: ReportPage(data: data).html, as: UTF8.self)
        #expect(page.contains("No ledger is left.</footer>"))
    }
}
