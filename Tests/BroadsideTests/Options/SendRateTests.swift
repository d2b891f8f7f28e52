import Testing

@testable import BroadsideCampaigns

@Suite struct SendRateTests {
    @Test func `The plan names the rate limits of the run and of each connection`() {
        var options = SendOptions()
        #expect(options.rateDescription == "no rate limit")
        options.ratePerConnection = 4
        #expect(options.rateDescription == "4.0 requests per second per connection")
        options.rate = 1000
        #expect(
            options.rateDescription
                == "1,000 requests per second, at most 4.0 requests per second per connection")
        options.ratePerConnection = nil
        #expect(options.rateDescription == "1,000 requests per second")
    }
}
