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
            let size = isExact ? ListSize.exact(rows) : .about(rows, fromBytes: 1)
            return options.sendingTime(of: RowsAhead(size, options))
        }
        #expect(time(1_000_000).isEmpty, "there is nothing to compare with")
        options.deadline = 60_000_000_000
        // 60 s, and one for bursts.
        #expect(time(1220).isEmpty)
        #expect(
            time(1221) == ": at least 1 m 01 s for these rows, which is longer than --deadline")
        // An estimate may be wrong by a fifth: 1,221 of 1,526 rows.
        #expect(time(1525, isExact: false).isEmpty)
        #expect(
            time(1526, isExact: false)
                == ": about 1 m 16 s for these rows, which is longer than --deadline")
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

    @Test func `The plan of a resume compares the time with what is left of the deadline`() {
        var options = SendOptions()
        options.rate = 10
        options.deadline = 12_000_000_000
        func time(_ size: ListSize, settled: UInt64, elapsed: Double) -> String {
            options.sendingTime(
                of: RowsAhead(
                    leftOf: size, settled: settled, sentSeconds: 0, elapsedSeconds: elapsed,
                    options))
        }
        #expect(time(.exact(100), settled: 29, elapsed: 5).isEmpty)
        #expect(
            time(.exact(100), settled: 29, elapsed: 8)
                == ": at least 7 s for the rows that are left, which is longer than what is left of "
                + "--deadline")
        #expect(time(.exact(100), settled: 29, elapsed: 12).isEmpty, "the deadline has passed")
        // At least 800 rows were listed, so at least 51 are left.
        #expect(time(.about(1000, fromBytes: 1), settled: 749, elapsed: 7).isEmpty)
        #expect(
            time(.about(1000, fromBytes: 1), settled: 749, elapsed: 8)
                == ": about 25 s for the rows that are left, which is longer than what is left of "
                + "--deadline")
        #expect(time(.about(1000, fromBytes: 1), settled: 900, elapsed: 8).isEmpty)
        #expect(time(.unknown, settled: 0, elapsed: 8).isEmpty)
        let ahead = RowsAhead(sendable: 71, of: 100, elapsedSeconds: 8)
        #expect(options.sendingTime(of: ahead).hasPrefix(": at least 7 s for the rows to send, "))
    }

    @Test func `The first request does not wait for the rate`() {
        var options = SendOptions()
        options.rate = 0.01
        options.deadline = 60_000_000_000
        #expect(options.sendingTime(of: RowsAhead(.exact(1), options)).isEmpty)
        #expect(!options.sendingTime(of: RowsAhead(.exact(2), options)).isEmpty)
    }
}
