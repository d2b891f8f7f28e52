import Testing

@testable import BroadsideCampaigns

@Suite struct SendRateTests {
    @Test func `The plan names the rate limits of the run and of each connection`() {
        var options = SendOptions()
        #expect(options.rateDescription == "no rate limit")
        options.ratePerConnection = 4
        #expect(options.rateDescription == "4 requests per second per connection")
        options.rate = 1000
        #expect(
            options.rateDescription
                == "1,000 requests per second, at most 4 requests per second per connection")
        options.ratePerConnection = nil
        #expect(options.rateDescription == "1,000 requests per second")
    }

    @Test func `A rate limit is named exactly`() {
        #expect(SendRate(0.04).words == "0.04 requests per second")
        #expect(SendRate(50.5).words == "50.5 requests per second")
        #expect(SendRate(0.001).words == "0.001 requests per second")
        #expect(SendRate(2500.125).words == "2,500.125 requests per second")
        #expect(SendRate(100_000_000).words == "100,000,000 requests per second")
        #expect(
            SendRate(from: 0.5, to: 12.25, withinNanoseconds: 60_000_000_000)?.words
                == "from 0.5 to 12.25 requests per second within 1 m 00 s of sending")
    }

    @Test func `The operator sets a rate, lets it rise, or removes the limit`() {
        let rising = SendRate(from: 30, to: 31, withinNanoseconds: 30_000_000_000)
        #expect(
            rising.changeText
                == "set the rate to rise from 30 to 31 requests per second within 30 s of sending")
        #expect((80 as SendRate?).changeText == "set the rate to 80 requests per second")
        #expect((nil as SendRate?).changeText == "set the rate to unlimited")
    }
}
