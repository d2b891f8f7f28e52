import BroadsideAPNs
import BroadsidePolicy
import Testing

@testable import BroadsideObservability

/// Advice after a run of `night`, whose date names its ledger.
@Suite struct NightAdviceTests {
    private static let command = RunCommand(
        program: "broadside",
        arguments: ["night", "--campaign", "c.json5", "--date", "2026-11-20"],
        directory: RunCommand.workingDirectory)
    private static let night = "broadside night --campaign c.json5 --date 2026-11-20"

    /// A new ledger's rows would be sent again by the next start of the night.
    @Test(arguments: [0, 3] as [UInt64], [false, true])
    func `A night that a relay refuses without a content-length is never sent with a new ledger`(
        reached: UInt64, hasRemaining: Bool
    ) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: true, environment: "production", isBinary: false,
            ledger: "nights/c/2026-11-20", command: Self.command)
        circumstances.reachedCount = reached
        circumstances.hasRemaining = hasRemaining
        let refusal = StopAdviceTests.refusal(.badPath, 411, isCredential: false)
        for cause: StopCause in [.refused(refusal), .allRefused(rows: 3, refusal)] {
            let steps = StopAdvice(cause, circumstances).steps
            #expect(
                steps.map(\.command) == [
                    hasRemaining
                        ? "\(Self.night) --content-length"
                        : "broadside ledger export --ledger nights/c/2026-11-20 --state rejected"
                ])
            let text = steps[0].text
            #expect(text.contains("rows refused so far stay rejected"), "\(text)")
            #expect(text.contains("--date 2026-11-20 sends those") == hasRemaining, "\(text)")
            #expect(text.contains("a night under another --name") != hasRemaining, "\(text)")
            #expect(!text.contains("new ledger"), "\(text)")
        }
    }
}
