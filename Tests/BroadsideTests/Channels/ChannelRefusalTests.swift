import Testing

@testable import BroadsideCampaigns

/// When requests about channels and broadcasts are repeated.
struct ChannelRefusalTests {
    @Test(
        arguments: [
            (429, .busy), (500, .busy), (503, .busy), (408, .busy), (421, .busy), (425, .busy),
            (501, .lost), (502, .lost), (504, .lost), (505, .lost), (524, .lost), (204, .lost),
        ] as [(UInt16, ChannelRefusal.Class)])
    func `Only a status that excludes processing permits a repeat of each request`(
        _ status: UInt16, _ expected: ChannelRefusal.Class
    ) {
        let response = BlockingConnection.Response(status: status, reason: nil)
        #expect(ChannelRefusal.classify(response) == expected)
    }

    @Test func `Advice about an expired token names a file only for tokens from elsewhere`() {
        let response = BlockingConnection.Response(status: 403, reason: .expiredProviderToken)
        let advice = ChannelRefusal.advice(response, app: "com.example", environment: .production)
        #expect(advice.hasPrefix("correct this machine's clock; with --auth-token-file or "))
    }

    @Test(arguments: [(404, true), (403, true), (429, false)] as [(UInt16, Bool)])
    func `The advice about a reason that this version does not know is to look it up`(
        _ status: UInt16, _ isLookedUp: Bool
    ) {
        func advice(_ reasonText: String?) -> String {
            var response = BlockingConnection.Response(status: status, reason: nil)
            response.reasonText = reasonText
            return ChannelRefusal.advice(response, app: "a", environment: .production)
        }
        #expect(advice("Newish").hasPrefix("look up this reason") == isLookedUp)
        #expect(!advice(nil).contains("look up"))
    }

    @Test(arguments: [(nil, 4), (0, 1), (1, 1), (60, 60), (61, nil)] as [(UInt64?, UInt64?)])
    func `Retry-After decides on a delay of 1 to 60 seconds, and a longer one is not waited for`(
        _ retryAfter: UInt64?, _ seconds: UInt64?
    ) {
        #expect(RepeatDelay.seconds(after: 3, retryAfter: retryAfter) == seconds)
    }
}
