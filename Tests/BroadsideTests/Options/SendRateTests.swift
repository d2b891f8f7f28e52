import BroadsideAPNs
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

    @Test func `The plan says if the rate is too low for the deadline or the expiration`() {
        var options = SendOptions()
        options.rate = 20
        func time(_ rows: UInt64, isExact: Bool = true) -> String {
            options.sendingTime(of: RowsAhead(listed: rows, options), isExact: isExact)
        }
        #expect(time(1_000_000).isEmpty, "there is nothing to compare with")
        options.deadline = 60_000_000_000
        // 60 s, and one for bursts.
        #expect(time(1220).isEmpty)
        #expect(
            time(1221) == ": at least 1 m 01 s for these rows, which is longer than --deadline")
        #expect(time(1221, isExact: false).isEmpty, "an estimate may be wrong")
        options.expiration = .after(2)
        #expect(time(61) == ": at least 3 s for these rows, which is longer than --expiration")
        #expect(time(2000).hasSuffix("which is longer than --deadline and --expiration"))
        options.suppress = "suppressed.txt"
        #expect(
            time(61)
                == ": at least 3 s if all these rows are sent, which is longer than --expiration")
        options.expiration = .at(0)
        #expect(time(61).isEmpty)
        options.rate = SendRate(from: 10, to: 30, withinNanoseconds: 10_000_000_000)
        #expect(time(200) == ": at least 10 s if all these rows are sent")
    }

    @Test func `The first request does not wait for the rate`() {
        var options = SendOptions()
        options.rate = 0.01
        options.deadline = 60_000_000_000
        #expect(options.sendingTime(of: RowsAhead(listed: 1, options), isExact: true).isEmpty)
        #expect(!options.sendingTime(of: RowsAhead(listed: 2, options), isExact: true).isEmpty)
    }
}
