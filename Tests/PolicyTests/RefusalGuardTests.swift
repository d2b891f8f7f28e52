import Testing

@testable import BroadsideAPNs
@testable import BroadsidePolicy

@Suite struct RefusalGuardTests {
    /// The cause after each signal, given as (signal, how often).
    func causes(
        abortAfter: Int = 50, percent: Double = 50,
        _ signals: [(ResponseClass.CampaignSignal, Int)]
    ) -> (cause: RefusalGuard.Cause?, answers: Int) {
        var watch = RefusalGuard(
            abortAfter: abortAfter, maximumBadTokensPercent: percent)
        var answers = 0
        for (signal, count) in signals {
            for _ in 0..<count {
                answers += 1
                if let cause = watch.note(signal) { return (cause, answers) }
            }
        }
        return (nil, answers)
    }

    @Test
    func `A run of refusals as long as --abort-after stops, and an acceptance restarts the count`()
    {
        #expect(causes([(.refusesRequest, 60)]) == (.refusedInARow, 50))
        #expect(
            causes([(.accepted, 1), (.refusesRequest, 30), (.refusesCredential, 30)])
                == (.refusedInARow, 51))
        let good: [(ResponseClass.CampaignSignal, Int)] = [
            (.refusesRequest, 49), (.accepted, 1), (.refusesRequest, 49),
        ]
        #expect(causes(good).cause == nil)
        #expect(causes(abortAfter: 0, [(.refusesRequest, 9_000)]).cause == nil)
        #expect(causes(abortAfter: 1, [(.refusesRequest, 1)]) == (.refusedInARow, 1))
    }

    @Test func `Late refusals of first notifications count in a row despite acceptances between`() {
        func cause(
            _ signal: ResponseClass.CampaignSignal, lastIsFirst: Bool = true,
            between: ResponseClass.CampaignSignal = .accepted
        ) -> RefusalGuard.Cause? {
            var watch = RefusalGuard(abortAfter: 3, maximumBadTokensPercent: 50)
            for _ in 0..<2 {
                _ = watch.note(.accepted)
                _ = watch.noteLate(signal, isFirst: true)
            }
            _ = watch.note(between)
            return watch.noteLate(signal, isFirst: lastIsFirst)
        }
        #expect(cause(.refusesCredential) == .refusedInARow)
        #expect(cause(.refusesRequest) == .refusedInARow)
        // A connection on which rows were accepted, or an error that came in time.
        #expect(cause(.refusesCredential, lastIsFirst: false) == nil)
        #expect(cause(.refusesCredential, between: .deadToken) == nil)
        #expect(cause(.badDeviceToken) == nil && cause(.none) == nil)
    }

    @Test func `Where a canary passed elsewhere, only bad tokens at first do not stop the run`() {
        var watch = RefusalGuard(
            abortAfter: 50, maximumBadTokensPercent: 50, judgesFirst: false)
        for _ in 0..<9_999 {
            let cause = watch.note(.badDeviceToken)
            #expect(cause == nil)
        }
        #expect(watch.refusalCount == 0)
        let cause = watch.note(.badDeviceToken)
        #expect(cause == .tooManyBadTokens)
        var other = RefusalGuard(
            abortAfter: 50, maximumBadTokensPercent: 50, judgesFirst: false)
        for _ in 0..<49 { _ = other.note(.refusesRequest) }
        let refused = other.note(.refusesRequest)
        #expect(refused == .refusedInARow)
    }

    @Test func `Where a canary passed elsewhere, only wrong topics at first still stop the run`() {
        var watch = RefusalGuard(
            abortAfter: 50, maximumBadTokensPercent: 50, judgesFirst: false)
        for _ in 0..<49 { #expect(watch.note(.wrongTopicToken) == nil) }
        #expect(watch.refusalCount == 49)
        #expect(watch.note(.wrongTopicToken) == .onlyBadTokens)
        // Bad tokens among them are what the canary has spoken for.
        var mixed = RefusalGuard(
            abortAfter: 50, maximumBadTokensPercent: 50, judgesFirst: false)
        #expect(mixed.note(.badDeviceToken) == nil)
        for _ in 0..<100 { #expect(mixed.note(.wrongTopicToken) == nil) }
    }

    @Test func `The counts are those of responses, refusals in a row and bad tokens so far`() {
        var watch = RefusalGuard(abortAfter: 50, maximumBadTokensPercent: 50)
        #expect(
            watch.counts
                == RefusalCounts(
                    responses: 0, consecutiveRefusals: 0, areOnlyBadTokens: nil, badTokens: 0,
                    windowResponses: 0))
        for _ in 0..<3 { _ = watch.note(.badDeviceToken) }
        #expect(
            watch.counts
                == RefusalCounts(
                    responses: 3, consecutiveRefusals: 0, areOnlyBadTokens: true, badTokens: 3,
                    windowResponses: 3))
        for _ in 0..<2 { _ = watch.note(.refusesRequest) }
        #expect(
            watch.counts
                == RefusalCounts(
                    responses: 5, consecutiveRefusals: 2, areOnlyBadTokens: false, badTokens: 3,
                    windowResponses: 5))
        for _ in 0..<10_000 { _ = watch.note(.accepted) }
        #expect(
            watch.counts
                == RefusalCounts(
                    responses: 10_005, consecutiveRefusals: 0, areOnlyBadTokens: false,
                    badTokens: 0, windowResponses: 10_000))
    }

    @Test func `Rows with too large payloads stop a campaign only until something was accepted`() {
        #expect(causes([(.refusesPayload, 60)]) == (.refusedInARow, 50))
        #expect(causes([(.refusesPayload, 20), (.refusesRequest, 40)]) == (.refusedInARow, 50))
        #expect(causes([(.accepted, 1), (.refusesPayload, 9_000)]).cause == nil)
        #expect(
            causes([
                (.accepted, 1), (.refusesRequest, 40), (.refusesPayload, 1), (.refusesRequest, 40),
            ])
            .cause == nil)
        #expect(causes(abortAfter: 0, [(.refusesPayload, 9_000)]).cause == nil)
    }

    @Test
    func
        `Only bad tokens in the first responses stop the run, and one other response prevents that`()
    {
        #expect(causes([(.badDeviceToken, 25), (.wrongTopicToken, 30)]) == (.onlyBadTokens, 50))
        #expect(
            causes([(.badDeviceToken, 49), (.accepted, 1), (.badDeviceToken, 500)]).cause == nil)
        #expect(
            causes([(.badDeviceToken, 49), (.refusesRequest, 1), (.badDeviceToken, 500)]).cause
                == nil)
        #expect(causes([(.accepted, 1), (.badDeviceToken, 5_000)]).cause == nil)
        #expect(causes(abortAfter: 0, [(.badDeviceToken, 500)]).cause == nil)
    }

    private static let silent: [ResponseClass.CampaignSignal] = [
        .none, .pauseAddress, .renewProviderToken, .freezeRenewal,
    ]

    @Test(arguments: silent)
    func `A response whose row is retried does not restart the count of refusals`(
        signal: ResponseClass.CampaignSignal
    ) {
        for refusal: ResponseClass.CampaignSignal in [.refusesRequest, .refusesCredential] {
            #expect(
                causes([(.accepted, 1), (refusal, 49), (signal, 7), (refusal, 1)])
                    == (.refusedInARow, 58))
            #expect(causes([(signal, 7), (refusal, 50)]) == (.refusedInARow, 57))
        }
        #expect(causes([(signal, 100), (.refusesRequest, 49)]).cause == nil)
        #expect(
            causes([(signal, 3), (.badDeviceToken, 49), (signal, 3), (.wrongTopicToken, 1)])
                == (.onlyBadTokens, 56))
        var watch = RefusalGuard(abortAfter: 50, maximumBadTokensPercent: 50)
        for _ in 0..<30 { _ = watch.note(signal) }
        #expect(watch.refusalCount == 0 && watch.counts.areOnlyBadTokens == nil)
    }

    @Test func `A dead token proves nothing before the first acceptance`() {
        #expect(
            causes([(.badDeviceToken, 49), (.deadToken, 1), (.badDeviceToken, 1)])
                == (.onlyBadTokens, 51))
        #expect(causes([(.deadToken, 5_000), (.badDeviceToken, 49)]).cause == nil)
        for token: ResponseClass.CampaignSignal in [.deadToken, .badDeviceToken, .wrongTopicToken] {
            #expect(
                causes([(.refusesRequest, 49), (token, 1), (.refusesRequest, 1)])
                    == (.refusedInARow, 51))
            #expect(
                causes([
                    (.accepted, 1), (.refusesRequest, 49), (token, 1), (.refusesRequest, 49),
                ]).cause == nil)
        }
    }

    @Test
    func `More than the allowed share of bad tokens among the last 10,000 responses stops the run`()
    {
        // Not before 10,000 answers, whatever their share.
        #expect(
            causes([(.accepted, 1), (.badDeviceToken, 20_000)]) == (.tooManyBadTokens, 10_000))
        // 5,000 of 10,000 are not more than 50 percent; one more is.
        #expect(
            causes([(.accepted, 5_000), (.badDeviceToken, 5_000), (.accepted, 5_000)]).cause == nil)
        #expect(
            causes([(.accepted, 5_000), (.badDeviceToken, 5_001)]) == (.tooManyBadTokens, 10_001))
        // Old answers are forgotten.
        #expect(
            causes([
                (.accepted, 1), (.badDeviceToken, 4_000), (.accepted, 6_000),
                (.badDeviceToken, 1_000), (.accepted, 20_000), (.badDeviceToken, 5_000),
            ]).cause == nil)
        #expect(causes(percent: 100, [(.accepted, 1), (.badDeviceToken, 30_000)]).cause == nil)
        #expect(
            causes(percent: 0, [(.accepted, 10_000), (.badDeviceToken, 1)])
                == (.tooManyBadTokens, 10_001))
        #expect(
            causes([(.wrongTopicToken, 1), (.accepted, 1), (.wrongTopicToken, 20_000)]).cause == nil
        )
    }
}
