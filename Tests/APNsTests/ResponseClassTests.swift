import Testing

@testable import BroadsideAPNs

@Suite struct ResponseClassTests {
    typealias Expected = (
        ResponseClass.RowAction, ResponseClass.ConnectionAction, ResponseClass.CampaignSignal
    )

    func check(
        _ status: UInt16, _ reason: Reason?, _ expected: Expected,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let text = reason.map { #"{"reason":"\#($0.text)"}"# } ?? ""
        check(status, body: text, expected, sourceLocation: sourceLocation)
    }

    func check(
        _ status: UInt16, body: String, _ expected: Expected,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let body = ReasonBody.parse(Array(body.utf8).span.bytes)
        let answer = ResponseClass.classify(status: status, body: body)
        #expect(answer.row == expected.0, sourceLocation: sourceLocation)
        #expect(answer.connection == expected.1, sourceLocation: sourceLocation)
        #expect(answer.campaign == expected.2, sourceLocation: sourceLocation)
    }

    @Test func `Statuses about one token reject its row and leave the connection open`() {
        check(200, nil, (.accepted, .none, .accepted))
        check(200, .shutdown, (.accepted, .none, .accepted))
        check(410, .unregistered, (.rejected, .none, .deadToken))
        check(410, nil, (.rejected, .none, .refusesRequest))
        check(400, .expiredToken, (.rejected, .none, .deadToken))
        check(400, .badDeviceToken, (.rejected, .none, .badDeviceToken))
        check(400, .deviceTokenNotForTopic, (.rejected, .none, .wrongTopicToken))
        check(400, .missingDeviceToken, (.rejected, .none, .deadToken))
        check(413, .payloadTooLarge, (.rejected, .none, .refusesPayload))
        check(413, nil, (.rejected, .none, .refusesPayload))
    }

    @Test
    func `Statuses that refuse the request reject the row and count as refusals of the request`() {
        for reason: Reason in [
            .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic,
            .duplicateHeaders, .invalidPushType, .missingTopic, .payloadEmpty,
        ] {
            check(400, reason, (.rejected, .none, .refusesRequest))
        }
        check(404, .badPath, (.rejected, .none, .refusesRequest))
        check(405, .methodNotAllowed, (.rejected, .none, .refusesRequest))
        for status: UInt16 in [400, 411, 431] {
            check(status, nil, (.rejected, .none, .refusesRequest))
        }
        for status: UInt16 in [400, 402, 404, 405, 418] {
            check(status, body: #"{"reason":"NewReason"}"#, (.rejected, .none, .refusesRequest))
        }
    }

    @Test func `A response that APNs never sends leaves the row and counts as a refusal`() {
        for body in ["", "<html>Login</html>", #"{"error":"x"}"#, #"{"reason":""}"#] {
            for status: UInt16 in [300, 302, 308, 401, 402, 404, 405, 407, 418, 451] {
                check(status, body: body, (.remainUnsettled, .none, .refusesCredential))
            }
        }
        for status: UInt16 in [302, 401, 407] {
            check(
                status, body: #"{"reason":"NewReason"}"#,
                (.remainUnsettled, .none, .refusesCredential))
            check(status, .unregistered, (.rejected, .none, .deadToken))
        }
    }

    @Test func `Statuses that refuse the credential leave the row unsettled or retry it once`() {
        for reason: Reason in [
            .forbidden, .missingProviderToken, .badEnvironmentKeyIDInToken,
            .badEnvironmentKeyInToken,
        ] {
            check(403, reason, (.remainUnsettled, .none, .refusesCredential))
        }
        check(403, .badCertificate, (.remainUnsettled, .close, .refusesCredential))
        check(403, .badCertificateEnvironment, (.remainUnsettled, .close, .refusesCredential))
        check(400, .topicDisallowed, (.remainUnsettled, .none, .refusesCredential))
        check(403, nil, (.remainUnsettled, .none, .refusesCredential))
        check(403, .invalidProviderToken, (.retryOnceThenRemain, .none, .refusesCredential))
        check(403, .expiredProviderToken, (.retryWithRenewedToken, .close, .renewProviderToken))
        check(429, .tooManyProviderTokenUpdates, (.retryWithPreviousToken, .none, .freezeRenewal))
    }

    @Test func `Statuses of an overloaded or failing server retry the row after a delay`() {
        check(429, .tooManyRequests, (.retryAfterDelay, .none, .none))
        check(429, nil, (.retryAfterDelay, .none, .none))
        check(425, nil, (.retryAfterDelay, .none, .none))
        for status: UInt16 in [408, 421] {
            check(status, nil, (.retryAfterDelay, .replaceAtOnce, .none))
        }
        for (status, reason): (UInt16, Reason?) in [
            (500, .internalServerError), (500, nil), (501, nil), (503, .serviceUnavailable),
            (503, .shutdown), (503, .badDeviceToken), (400, .idleTimeout), (600, nil), (999, nil),
            (403, .unrelatedKeyIDInToken),
        ] {
            check(status, reason, (.retryAfterDelay, .drainAndReplace, .pauseAddress))
        }
        #expect(ResponseClass.notProcessed.row == .retryNotCounted)
    }

    @Test func `A 502 or 504 may have been processed, whatever its body says`() {
        for status: UInt16 in [502, 504] {
            for reason: Reason? in [nil, .serviceUnavailable, .badDeviceToken] {
                check(status, reason, (.responseLost, .drainAndReplace, .pauseAddress))
            }
        }
    }

    @Test
    func `A status from 201 to 299 makes the row unknown and counts as a refusal of the request`() {
        for status: UInt16 in 201..<300 {
            for reason: Reason? in [nil, .badDeviceToken, .unregistered, .tooManyRequests] {
                check(status, reason, (.responseLost, .none, .refusesRequest))
            }
        }
    }

    @Test func `GOAWAY refuses the credential only if its reason is BadCertificateEnvironment`() {
        #expect(
            ResponseClass.classify(goAwayReason: .badCertificateEnvironment) == .refusesCredential)
        #expect(ResponseClass.classify(goAwayReason: .shutdown) == .none)
        #expect(ResponseClass.classify(goAwayReason: .badDeviceToken) == .none)
        #expect(ResponseClass.classify(goAwayReason: nil) == .none)
    }

    @Test func `Only two reasons of a GOAWAY refuse the certificate for good`() {
        let refusing = Reason.allCases.filter {
            ResponseClass.refusesCertificate(goAwayReason: $0)
        }
        #expect(Set(refusing) == [.badCertificate, .badCertificateEnvironment])
        #expect(!ResponseClass.refusesCertificate(goAwayReason: nil))
    }
}
