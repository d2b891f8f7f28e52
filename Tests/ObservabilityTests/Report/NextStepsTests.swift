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
        let cards = ReportPage(data: data).cards
        #expect(
            cards.contains("<li class=\"alarm\"><b>0</b><span>rows need a decision"), "\(cards)")
        #expect(cards.contains("see what to do next"), "\(cards)")
        data.isInProgress = true
        #expect(!Self.steps(data).contains("No row was left"))
        let sent = ReportPage(data: ReportPageTests.data(accepted: 5)).cards
        #expect(sent.contains("nothing is left to decide"), "\(sent)")
    }
}
