import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import Testing

@testable import BroadsideObservability

/// Advice after the stop of a guard, which depends on the rows that were sent.
@Suite struct StopAdviceGuardTests {
    @Test(
        arguments: [
            .topicsRefused(
                detail: "a", StopAdviceTests.refusal(.badDeviceToken, 400, isCredential: false)),
            .tooManyBadTokens, .canaryRefused(count: 4, answered: 5),
        ] as [StopCause], [false, true])
    func `A refused run is advised to resume only if rows remain`(
        cause: StopCause, hasRemaining: Bool
    ) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: true, environment: "production", isBinary: false,
            ledger: "tonight", command: StopAdviceTests.command)
        circumstances.hasRemaining = hasRemaining
        let steps = StopAdvice(cause, circumstances).steps
        #expect(
            steps.contains { "\($0)".contains("--resume") } == hasRemaining, "\(steps)")
        #expect(!cause.message.contains("remain"))
    }

    @Test(arguments: [false, true])
    func `Bad tokens at a legacy gateway are blamed on the certificate`(isBinary: Bool) {
        let circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: true, environment: "production", isBinary: isBinary,
            ledger: "tonight", command: StopAdviceTests.command)
        let cause = StopCause.onlyBadTokens(
            StopAdviceTests.refusal(.badDeviceToken, 8, isCredential: false))
        let text = StopAdvice(cause, circumstances).steps[0].text
        #expect(
            text.contains(
                "check \(isBinary ? "--certificate and --endpoint" : "--environment and --topic") "),
            "\(text)")
        #expect(text.contains("--topic") == !isBinary, "\(text)")
    }

    @Test func `A server without HTTP/2 at a port of the legacy services leads to their options`() {
        func text(_ problem: String, hint: String?) -> String {
            var circumstances = StopAdvice.Circumstances(
                wasAnswered: false, hasEndpoint: true, environment: "production", isBinary: false,
                ledger: "tonight", command: StopAdviceTests.command)
            circumstances.legacyHint = hint
            return StopAdvice(.gaveUp(.init(.tls, problem)), circumstances).steps[0].text
        }
        let problem = "it did not select h2 by ALPN"
        let usual = "check --endpoint, --ca-file"
        #expect(text(problem, hint: "add --protocol binary") == "add --protocol binary")
        #expect(text(problem, hint: nil).hasPrefix(usual))
        #expect(text("the certificate has expired", hint: "x").hasPrefix(usual))
    }

    /// `doctor` refuses a campaign for a legacy gateway.
    @Test(
        arguments: [
            .refused(StopAdviceTests.refusal(.missingTopic, 3)),
            .refused(StopAdviceTests.refusal(.invalidTopicSize, 6)), .tooManyBadTokens,
            .gaveUp(.init(.refused, "does not accept the client certificate")),
            .gaveUp(.init(.silent, "x")), .gaveUp(.init(.connect, "x")),
            .gaveUp(.init(.resolve, "x")), .gaveUp(.init(.tls, "x")), .gaveUp(.init(.proxy, "x")),
            .noResponse(seconds: 60, last: nil), .failed(detail: "x"),
        ] as [StopCause], [nil, "HTTPS_PROXY is set"])
    func `Advice about a legacy gateway never names doctor`(cause: StopCause, hint: String?) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: false, hasEndpoint: true, environment: "production", isBinary: true,
            ledger: "tonight", command: StopAdviceTests.command)
        circumstances.credential = .certificate
        circumstances.proxyHint = hint
        let steps = StopAdvice(cause, circumstances).steps
        #expect(steps.count == 2, "\(steps)")
        for step in steps {
            #expect(
                !step.text.contains("doctor") && step.command?.contains("doctor") != true,
                "\(step)")
            #expect(
                !step.text.contains("--environment") && !step.text.contains("--topic"), "\(step)")
        }
        guard case .refused = cause else { return }
        #expect(steps[0].text == "use a --certificate for this app and this gateway")
    }

    @Test(
        arguments: [.badDeviceToken, .deviceTokenNotForTopic] as [Reason], [0, 1_282] as [UInt64])
    func `Bad tokens of a later start are not blamed on what earlier starts had too`(
        reason: Reason, accepted: UInt64
    ) {
        var summary = Summary(campaign: 1, outcome: .aborted)
        summary.counts[.accepted] = accepted
        summary.counts[.rejected] = 50
        summary.remaining = 10
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: true, environment: "production", isBinary: false,
            ledger: "tonight", command: StopAdviceTests.command)
        circumstances.take(summary)
        let cause = StopCause.onlyBadTokens(
            StopAdviceTests.refusal(reason, 400, isCredential: false))
        let text = StopAdvice(cause, circumstances).steps[0].text
        #expect(text.contains("begin a new ledger") == (accepted == 0), "\(text)")
        #expect(text.contains("--resume continues (with a higher") || accepted == 0, "\(text)")
        #expect(text.contains("were accepted (1,282)") == (accepted > 0), "\(text)")
    }

    @Test(arguments: [false, true])
    func `A wrong list whose rows are all settled is recorded as complete, not continued`(
        hasRemaining: Bool
    ) {
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: true, environment: "production", isBinary: false,
            ledger: "tonight", command: StopAdviceTests.command)
        circumstances.hasRemaining = hasRemaining
        let cause = StopCause.tooManyInvalid(count: 5, rows: 9)
        let step = StopAdvice(cause, circumstances).steps.last
        #expect(step?.command == StopAdviceTests.resume + " --max-invalid 100")
        #expect(step?.text.hasSuffix("continue without this guard") == hasRemaining)
        #expect(step?.text.hasSuffix("record the campaign as complete") == !hasRemaining)
    }

    /// Refusals of a campaign whose canary of 10 rows was refused, and whether they are those of
    /// another environment or app.
    @Test(
        arguments: [
            (0, 0, 10, [.badDeviceToken: 10], true),
            (0, 0, 10, [.badDeviceToken: 4, .deviceTokenNotForTopic: 6], true),
            (0, 5, 5, [.badDeviceToken: 5], true), (0, 6, 4, [.badDeviceToken: 4], false),
            (0, 0, 10, [.badDeviceToken: 9, .unregistered: 1], false),
            (1, 0, 9, [.badDeviceToken: 9], false), (0, 10, 0, [:], false),
        ] as [(UInt64, UInt64, UInt64, [Reason: UInt64], Bool)])
    func `A canary of foreign tokens leads to the advice of a run without it`(
        accepted: UInt64, invalid: UInt64, rejected: UInt64, reasons: [Reason: UInt64],
        isForeign: Bool
    ) {
        var summary = Summary(campaign: 1, outcome: .aborted)
        for (state, count) in [
            (RowState.accepted, accepted), (.invalid, invalid), (.rejected, rejected),
        ] {
            summary.counts[state] = count
        }
        for (reason, count) in reasons {
            summary.counts.reasons.add(code: reason.rawValue, count: count)
        }
        summary.remaining = 990
        var circumstances = StopAdvice.Circumstances(
            wasAnswered: true, hasEndpoint: false, environment: "production", isBinary: false,
            ledger: "tonight", command: StopAdviceTests.command)
        circumstances.take(summary)
        let cause = StopCause.canaryRefused(count: 10 - accepted, answered: 10)
        let steps = StopAdvice(cause, circumstances).steps
        #expect(
            steps.contains { $0.command?.contains("--canary-max-rejected 100") == true }
                != isForeign, "\(steps)")
        #expect(steps[0].text.contains("begin a new ledger") == isForeign, "\(steps)")
        #expect(
            steps[0].text.contains("against the list")
                && steps[0].text.contains("APNs accepted none of them") || !isForeign)
    }
}
