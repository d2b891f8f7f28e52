import BroadsideAPNs
import BroadsidePolicy
import BroadsideRows
import Testing

@testable import BroadsideObservability

/// Advice after a run of `night`, whose date names its ledger.
@Suite struct NightAdviceTests {
    private static let command = RunCommand(
        program: "broadside",
        arguments: ["night", "--campaign", "c.json5", "--date", "2026-11-20"],
        directory: RunCommand.workingDirectory)
    private static let night = "broadside night --campaign c.json5 --date 2026-11-20"

    @Test(
        arguments: [
            .complete, .signal, .control, .keyboard, .deadline, .gaveUp(.init(.connect, "refused")),
            .noResponse(seconds: 60, last: nil), .brokenServer(.init(.protocol, "x")),
            .heldBack(rows: 1, nil), .heldBack(rows: 3, StopAdviceTests.refusal(nil, 404)),
            .onlyBadTokens(StopAdviceTests.refusal(.badDeviceToken, 400, isCredential: false)),
            .allRefused(rows: 3, nil), .tooManyBadTokens, .topicsRefused(detail: "a", nil),
            .topicsRefused(detail: "a", StopAdviceTests.refusal(.topicDisallowed, 400)),
            .tooManyInvalid(count: 5, rows: 9), .canaryRefused(count: 4, answered: 5),
            .canaryWithoutResponses, .expiredToken(isSupplied: true),
            .expiredToken(isSupplied: false), .signingFailed, .ledgerFailed(detail: "full"),
            .ledgerGone, .superseded, .listFailed(detail: "cut"), .listFaulty(detail: "line 9"),
            .listChanged(detail: "grown"), .failed(detail: "ring"),
            .refused(StopAdviceTests.refusal(nil, 202, isCredential: false)),
            .refused(StopAdviceTests.refusal(.invalidProviderToken)),
            .refused(StopAdviceTests.refusal(.missingProviderToken)),
            .refused(StopAdviceTests.refusal(.badCertificate)),
            .refused(StopAdviceTests.refusal(.badEnvironmentKeyInToken)),
            .refused(StopAdviceTests.refusal(.badPriority, 400, isCredential: false)),
        ] as [StopCause], [(false, false), (true, false), (true, true)])
    func `Advice to a night never names --resume, which night lacks`(
        cause: StopCause, run: (wasAnswered: Bool, isBinary: Bool)
    ) {
        let circumstances = StopAdvice.Circumstances(
            wasAnswered: run.wasAnswered, hasEndpoint: true, environment: "production",
            isBinary: run.isBinary, ledger: "nights/c/2026-11-20", command: Self.command,
            openStates: [.failed])
        let steps = StopAdvice(cause, circumstances).steps
        #expect(!steps.isEmpty)
        #expect(!"\(steps)".contains("--resume"), "\(steps)")
        #expect(!cause.message.contains("--resume"), "\(cause.message)")
    }

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
